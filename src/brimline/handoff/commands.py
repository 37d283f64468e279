"""What kind of command an agent ran: a check, whose result matters, or no more than a look."""

import re

import msgspec

LONGEST = 4_000
"""So much of a command is looked at."""

CHECKERS = frozenset(
    {"biome", "ctest", "cypress", "doctest", "eslint", "flake8", "golangci-lint", "jest", "mocha"}
    | {"mypy", "nox", "phpunit", "playwright", "pre-commit", "pylint", "pyright", "pytest", "rspec"}
    | {"ruff", "shellcheck", "tox", "tsc", "unittest", "vitest"}
)
"""Programs that check something."""

RUNNERS = frozenset(
    {"bazel", "bun", "bundle", "cargo", "composer", "deno", "dotnet", "go", "gradle", "gradlew"}
    | {"hatch", "just", "make", "mise", "mix", "mvn", "node", "npm", "pnpm", "poetry", "rake"}
    | {"swift", "uv", "yarn", "zig"}
)
"""Programs that check something where one of their first words is a task's name."""

TASKS = frozenset(
    {"build", "check", "clippy", "lint", "test", "tests", "typecheck", "verify", "vet"}
)

LOOKERS = frozenset(
    {"awk", "basename", "bat", "cat", "cd", "column", "cut", "date", "df", "diff", "dirname", "du"}
    | {"eza", "fd", "file", "find", "grep", "head", "id", "jq", "less", "ls", "nl", "ps", "pwd"}
    | {"readlink", "realpath", "rg", "sed", "sleep", "sort", "stat", "tail", "test", "tr"}
    | {"tree", "true", "type", "uname", "uniq", "wc", "which", "whoami", "xxd"}
)
"""Programs that are run to see something, unless CHANGES says otherwise."""

CHANGES = {"find": ("-delete", "-exec", "-ok"), "sed": ("-i", "--in-place")}
"""How an argument begins with which such a program changes something."""

GIT_LOOKS = frozenset(
    {"blame", "check-ignore", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status"}
)

WRAPPERS = frozenset({"command", "env", "exec", "nice", "nohup", "sudo", "time"})
"""Programs that run the one behind them."""

SPEAKERS = frozenset({"echo", "gh", "git", "printf"})
"""Programs that may name a check without running it."""

EVERYTHING = frozenset({".", "./...", "src", "test", "tests", "tests/"})
"""What a check of everything is given."""

NO_CHECK: tuple[str, list[str]] = ("", [])

FIRST_WORDS = 5
"""A checker, or a task behind its runner, is among so many words."""

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_AWAY = re.compile(r"\d?>&\d|&?\d?>\s*/dev/null")
"""Output that goes nowhere, or with other output, is written to no file."""

_PIECES = re.compile(r"&&|\|\||[|;\n]")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_SET = re.compile(r"[A-Za-z_]\w*=\S*")
_HIDES = re.compile(r"\|\|\s*(?:true|:|echo)|;\s*(?:echo|true)\b|&\s*$")
"""What leaves an exit code that is not the command's."""


class Command(msgspec.Struct, frozen=True):
    """A command and what can be seen of it without running it."""

    text: str
    core: str
    """What makes two commands the same: all but what their output is piped through."""
    check: str
    """The tests, linter or build that it runs, as `go test`; empty where it runs none."""
    checks_all: bool
    """Whether it checks everything, so that its success is that of every narrower check."""
    is_read_only: bool
    """Whether every program in it merely shows something: whether it failed tells little."""
    has_own_exit_code: bool
    """Whether its exit code is that of what it runs, and not that of `tail` or `echo` behind it."""

    @classmethod
    def parse(cls, text: str) -> "Command":
        """What a command is, by its first LONGEST characters."""
        shown = text[:LONGEST]
        bare = _bare(shown)
        pipe = _PIPE.search(bare)
        programs = _programs(_landed(bare))
        check, given = next(filter(None, map(_check, programs)), NO_CHECK)
        return cls(
            text=text,
            core=" ".join(_landed(shown[: pipe.start()] if pipe else shown).split()),
            check=check,
            checks_all=bool(check) and _wide(given),
            is_read_only=not _writes(bare, shown) and all(map(_looks, programs)),
            has_own_exit_code="pipefail" in bare or not (pipe or _HIDES.search(bare)),
        )


def _bare(command: str) -> str:
    """A command with what is quoted in it made one long word; every place stays where it was."""
    if "<<" in command:
        command = _HEREDOC.sub(lambda found: "q" * len(found[0]), command)
    return _QUOTED.sub(lambda found: "q" * len(found[0]), command)


def _landed(command: str) -> str:
    """A command without what is said about where its output goes, unless that is a file."""
    return _AWAY.sub("", command) if ">" in command else command


def _writes(bare: str, shown: str) -> bool:
    return ">" in _landed(bare) or "<<" in shown


def _programs(command: str) -> list[list[str]]:
    """The words of each program that a command runs, without what is set or put before it."""
    pieces = [piece.split() for piece in _PIECES.split(command)]
    return [words for piece in pieces if (words := _unset(piece))]


def _unset(words: list[str]) -> list[str]:
    while words and (words[0] in WRAPPERS or _SET.fullmatch(words[0])):
        words = words[1:]
    return words


def _check(words: list[str]) -> tuple[str, list[str]] | None:
    """The check that a program is, and what it is given; None where it is none.

    It may stand behind others: `uv run --no-sync pytest`, `timeout 60 go test`.
    """
    if words[0] in LOOKERS | SPEAKERS:
        return None
    words = [words[0].rpartition("/")[2], *words[1:]]
    for place, word in enumerate(words[:FIRST_WORDS]):
        if word in CHECKERS:
            return word, words[place + 1 :]
        if word in RUNNERS and (task := _task(words, place + 1)):
            return f"{word} {words[task]}", words[task + 1 :]
    return None


def _task(words: list[str], start: int) -> int | None:
    """Where the name of a task stands, as in `npm run test:ci`."""
    for place, word in enumerate(words[start : start + FIRST_WORDS], start):
        if TASKS.intersection(re.split(r"[:_-]", word)):
            return place
    return None


def _wide(given: list[str]) -> bool:
    """Whether a check is given nothing to choose by: neither a file nor a name."""
    return all(word.startswith("-") or word in EVERYTHING for word in given)


def _looks(words: list[str]) -> bool:
    program, *rest = words
    if program == "git":
        return next((word for word in rest if not word.startswith("-")), "") in GIT_LOOKS
    changes = CHANGES.get(program, ())
    return program in LOOKERS and not any(word.startswith(changes) for word in rest)
