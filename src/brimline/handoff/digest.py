"""What a transcript tells, as far as a draft needs it, in bounded memory."""

import re
from typing import TypeVar

import msgspec

from brimline.handoff.commands import Command
from brimline.handoff.truncate import UTF8

WORDS = 16_384
"""So many bytes of what somebody said are kept."""

WORD = 1_000
"""A longer word than this is no credential, and may be cut through."""

GAP = "\n[...]\n"
"""What stands where a text was cut."""

OUTPUT = 8_192
"""So many bytes of the end of an output are kept: more than are shown, so that a key in it that
would be cut through is seen whole and redacted."""

MANY = 200
"""So many of a kind are kept, the last ones."""

API = "the API"
"""What failed when a call itself did."""

_NOISE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|^(?:Exit code \d+|Command exited with code \d+"
    r"|\(no output\)|\(Bash completed with no output\))$",
    re.MULTILINE,
)
"""What is no output of a command: colours, and what a client says in the place of one."""

_SPACE = re.compile(r"\s")
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Todo(msgspec.Struct, frozen=True):
    """Something to do, as the agent wrote it down."""

    text: str
    state: str = "pending"

    @property
    def done(self) -> bool:
        """Whether nothing is left of it."""
        return self.state in ("completed", "cancelled", "deleted", "done")

    @property
    def begun(self) -> bool:
        """Whether the agent is at it."""
        return self.state == "in_progress"


class ToolUse(msgspec.Struct, frozen=True):
    """A tool that an agent used: a command, a change of files, or something else."""

    tool: str
    command: Command | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: str, command: str = "", files: tuple[str, ...] = ()) -> "ToolUse":
        """A deed with its command as it was typed; an empty one is none."""
        typed = kept(command.strip())
        return cls(tool, Command.of(typed) if typed else None, tuple(map(kept, files[:MANY])))

    @property
    def key(self) -> str:
        """What makes a later deed the same again."""
        return self.command.core if self.command else "\n".join(self.files) or self.tool

    @property
    def shown(self) -> str:
        """What it is called."""
        return self.command.text if self.command else " ".join([self.tool, *self.files])


class Run(msgspec.Struct, frozen=True):
    """A command and how it came out the last time; `ok` is None where nothing tells."""

    command: str
    check: bool = False
    ended: bool = False
    ok: bool | None = None
    output: str = ""


class Failure(msgspec.Struct, frozen=True):
    """Something that failed, and the end of what it said; `check` names the check that it was."""

    what: str
    why: str
    check: str = ""


class TranscriptDigest:
    """What the user asked, what the agent did and said, and what came of it; the last one counts.

    An agent's listener writes it, record by record.
    """

    def __init__(self) -> None:
        self.first = ""
        self.latest = ""
        self.said = ""
        self.plan = ""
        self.folder = ""
        self.branch = ""
        self.todos: dict[str, Todo] = {}
        self.files: dict[str, float | None] = {}
        """Each file that was changed, and when for the last time; the last one last."""
        self.runs: dict[str, Run] = {}
        self.troubles: dict[str, Failure] = {}
        """What failed and did not work since."""
        self._pending: dict[str, ToolUse] = {}

    def asked(self, text: str) -> None:
        """The user said something."""
        words = kept(text.strip())
        if words and self.first:
            self.latest = words
        elif words:
            self.first = words

    def spoke(self, text: str) -> None:
        """The agent said something; so the last call worked."""
        if words := kept(text.strip()):
            self.troubles.pop(API, None)
            self.said = words

    def planned(self, text: str) -> None:
        """The agent made a plan."""
        self.plan = kept(text.strip()) or self.plan

    def stands(self, folder: str | None, branch: str | None = None) -> None:
        """Where the agent is at work."""
        self.folder = folder or self.folder
        self.branch = branch or self.branch

    def listed(self, todos: list[Todo]) -> None:
        """The agent wrote its list of to-dos anew."""
        last = enumerate(todos[-MANY:])
        self.todos = {str(place): Todo(kept(todo.text), todo.state) for place, todo in last}

    def todo(self, key: str, text: str | None, state: str | None) -> None:
        """The agent wrote down one thing to do, or what became of it."""
        before = self.todos.get(key, Todo(""))
        now = Todo(kept(text or before.text), state or before.state)
        if key in self.todos:
            self.todos[key] = now
        else:
            renew(self.todos, key, now)

    def begins(self, id: str, deed: ToolUse) -> None:
        """A tool is used; how it came out is told later, or never."""
        self.troubles.pop(API, None)
        if (command := deed.command) and not command.looks:
            renew(self.runs, deed.key, Run(command.text, bool(command.check)))
        renew(self._pending, id, deed)

    def ends(self, id: str, ok: bool | None, output: str, at: float | None = None) -> None:
        """A tool that was begun came out so; one that was not is passed over."""
        deed = self._pending.pop(id, None)
        if deed is None:
            return
        if ok and deed.command and not deed.command.tells:
            ok = None
        if run := self.runs.get(deed.key):
            end = UTF8.last(output, OUTPUT)
            renew(self.runs, deed.key, Run(run.command, run.check, True, ok, end))
        if ok is False:
            self._failed(deed, output)
            return
        if ok:
            self._worked(deed)
        for file in deed.files:
            renew(self.files, file, at)

    def drops(self, id: str) -> None:
        """A tool that was begun was not carried out after all."""
        deed = self._pending.pop(id, None)
        if deed is not None:
            self.runs.pop(deed.key, None)

    def goes_on(self, id: str) -> ToolUse | None:
        """A tool that was begun is still at work: how it came out will be told under another id."""
        return self._pending.pop(id, None)

    def fails(self, what: str, why: str) -> None:
        """Something failed; where nothing says why, it may have found nothing."""
        if said := plain(why):
            renew(self.troubles, what, Failure(what, said))

    def _failed(self, deed: ToolUse, output: str) -> None:
        """A command that only looks fails when it finds nothing: that is no trouble."""
        said = plain(output)
        if said and not (deed.command and deed.command.looks):
            check = deed.command.check if deed.command else ""
            renew(self.troubles, deed.key, Failure(deed.shown, said, check))

    def _worked(self, deed: ToolUse) -> None:
        """What works takes back that it failed; a check of everything does for every part of it."""
        self.troubles.pop(deed.key, None)
        if deed.command and deed.command.wide:
            check = deed.command.check
            left = {key: one for key, one in self.troubles.items() if one.check != check}
            self.troubles = left


def plain(output: str) -> str:
    """The end of an output, without colours and without what a client adds to it.

    It begins with a whole word: half a credential would not be recognised.
    """
    end = UTF8.last(output, OUTPUT)
    return _NOISE.sub("", end if end == output else _from_a_word(end)).strip()


def kept(text: str) -> str:
    """What is kept of a text: all, or both its ends, neither of them cut through a word."""
    if len(text) <= WORDS and UTF8.size(text) <= WORDS:
        return text
    half = (WORDS - len(GAP)) // 2
    end = _from_a_word(UTF8.last(text, half))
    beginning = _from_a_word(UTF8.first(text, half)[::-1])[::-1]
    return beginning + GAP + end


def _from_a_word(text: str) -> str:
    """A text from the first space in it on, if there is one soon."""
    space = _SPACE.search(text, 0, WORD)
    return text[space.start() :] if space else text


def renew(held: dict[KeyT, ValueT], key: KeyT, value: ValueT) -> None:
    """Put it last, and forget the first when there are MANY."""
    held.pop(key, None)
    held[key] = value
    if len(held) > MANY:
        del held[next(iter(held))]
