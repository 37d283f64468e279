"""Where a client's headless command has its prompt, so that it can be started with another."""

from collections.abc import Sequence

import msgspec

from brimline.errors import InvalidRequest

LAST = "--last"  # instead of a session's id


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True):
    """How a headless command line of a client gives the prompt: as the one word of no option.

    The command is headless by one of the `subcommands` or of the `headless_options`. An option of
    `value_options` takes the next word, one of `optional_values` a next word that is no option, and
    one of `list_options` all of them. `resume_options` and `resume_words`, which stand behind the
    subcommand, continue an older session. With one of `foreign_words` there is no prompt that can
    be replaced.
    """

    subcommands: tuple[str, ...] = ()
    headless_options: tuple[str, ...] = ()
    value_options: frozenset[str] = frozenset()
    optional_values: frozenset[str] = frozenset()
    list_options: frozenset[str] = frozenset()
    resume_options: frozenset[str] = frozenset()
    resume_words: tuple[str, ...] = ()
    foreign_words: tuple[str, ...] = ()


class PromptPlace(msgspec.Struct, frozen=True):
    """A command without its prompt and without what resumes a session; `prompt` None if unseen."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    prompt: str | None = None

    def with_prompt(self, text: str) -> tuple[str, ...]:
        return (*self.before, text, *self.after)


class _Words:
    """The words behind a program: those that stay, and those that are no option's, with places."""

    def __init__(self, rule: PromptArgument) -> None:
        self._rule = rule
        self.kept: list[str] = []
        self.free: list[tuple[int, str]] = []
        self.start = 0  # where a prompt may be inserted
        self.is_headless = False
        self.resumes = False

    def read(self, words: Sequence[str]) -> None:
        left, options_end = list(words), False
        while left:
            word = left.pop(0)
            if not options_end and word.startswith("-") and word != "-":
                options_end = word == "--"
                self._add_option(word, left)
            else:
                self._add_word(word)

    def _add_option(self, word: str, left: list[str]) -> None:
        rule, name = self._rule, word.partition("=")[0]
        taken = [word]
        if name == word and name in rule.value_options:
            taken += [left.pop(0)] if left else []
        elif name == word and name in rule.list_options | rule.optional_values:
            while left and not left[0].startswith("-"):
                taken.append(left.pop(0))
                if name in rule.optional_values:
                    break
        if name not in rule.resume_options:
            self.kept += taken
        self.is_headless = self.is_headless or name in rule.headless_options

    def _add_word(self, word: str) -> None:
        if not self.is_headless and word in self._rule.subcommands:
            self.kept.append(word)
            self.start, self.is_headless = len(self.kept), True
        elif not self.free and not self.resumes and word in self._rule.resume_words:
            self.resumes = True
        else:
            self.free.append((len(self.kept), word))


def find_prompt(words: Sequence[str], rule: PromptArgument) -> PromptPlace:
    """Return where the words behind a client's program have the prompt; raises InvalidRequest.

    A prompt that comes through standard input is not seen; its place is then the first possible.
    """
    for word in words:
        if word in rule.foreign_words:
            raise InvalidRequest(f"the prompt cannot be replaced with {word}", f"Drop {word}.")
    read = _Words(rule)
    read.read(words)
    if not read.is_headless:
        expected = " or ".join((*rule.subcommands, *rule.headless_options))
        hint = "Only a headless run can continue in a new session."
        raise InvalidRequest(f"the command does not run headless: expected {expected}", hint)
    free = read.free[1:] if read.resumes and LAST not in words else read.free
    if len(free) > 1:
        shown = ", ".join(repr(word) for _, word in free)
        hint = "Quote the prompt as one word, and join options and values with `=`."
        raise InvalidRequest(f"cannot tell which of these words is the prompt: {shown}", hint)
    place, prompt = free[0] if free else (read.start, None)
    kept = tuple(read.kept)
    return PromptPlace(kept[:place], kept[place:], None if prompt == "-" else prompt)
