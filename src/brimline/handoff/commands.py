"""Classify shell commands: checks such as tests and linters, and commands that only read."""

import re

import msgspec

MAX_COMMAND_CHARS = 4_000  # what follows is not looked at

# Programs that are checks.
CHECKERS = frozenset(
    {"biome", "ctest", "cypress", "doctest", "eslint", "flake8", "golangci-lint", "jest", "mocha"}
    | {"mypy", "nox", "phpunit", "playwright", "pre-commit", "pylint", "pyright", "pytest", "rspec"}
    | {"ruff", "shellcheck", "tox", "tsc", "unittest", "vitest"}
)

# Programs that run a check if one of their first words is in TASKS.
RUNNERS = frozenset(
    {"bazel", "bun", "bundle", "cargo", "composer", "deno", "dotnet", "go", "gradle", "gradlew"}
    | {"hatch", "just", "make", "mise", "mix", "mvn", "node", "npm", "pnpm", "poetry", "rake"}
    | {"swift", "uv", "yarn", "zig"}
)

TASKS = frozenset(
    {"build", "check", "clippy", "lint", "test", "tests", "typecheck", "verify", "vet"}
)

# Programs that only read, unless they have one of WRITING_OPTIONS.
READERS = frozenset(
    {"awk", "basename", "bat", "cat", "cd", "column", "cut", "date", "df", "diff", "dirname", "du"}
    | {"echo", "eza", "fd", "file", "find", "grep", "head", "id", "jq", "less", "ls", "nl"}
    | {"printf", "ps", "pwd", "readlink", "realpath", "rg", "sed", "sleep", "sort", "stat", "tail"}
    | {"test", "tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami", "xxd"}
)

# Prefixes of arguments with which a reader changes files.
WRITING_OPTIONS = {"find": ("-delete", "-exec", "-ok"), "sed": ("-i", "--in-place")}

GIT_READS = frozenset(
    {"blame", "check-ignore", "diff", "grep", "log", "ls-files", "ls-remote", "rev-parse", "show"}
    | {"status"}
)
GH_READS = frozenset({"checks", "diff", "list", "status", "view"})  # of `gh pr view`

# Programs that run the program behind them.
WRAPPERS = frozenset({"command", "env", "exec", "nice", "nohup", "sudo", "time"})

# Programs that may name a check without running it.
TALKERS = frozenset({"echo", "gh", "git", "printf"})

# Arguments of a check of everything.
WHOLE_TARGETS = frozenset({".", "./...", "src", "test", "tests", "tests/"})

NO_CHECK: tuple[str, list[str]] = ("", [])

MAX_CHECK_POSITION = 5  # a checker or task is among this many words

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
# Redirections that write no file.
_DISCARDED_OUTPUT = re.compile(r"\d?>&\d|&?\d?>\s*/dev/null")

_SEPARATOR = re.compile(r"&&|\|\||[|;\n]")
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
# Endings that replace the exit code of the command.
_HIDDEN_EXIT_CODE = re.compile(r"\|\|\s*(?:true|:|echo)|;\s*(?:echo|true)\b|&\s*$")


class ShellCommand(msgspec.Struct, frozen=True):
    """A shell command and its properties, as far as its text shows them."""

    text: str
    core: str  # equal for repetitions of a command: without the pipe behind it
    check: str  # the tests, linter or build that it runs, such as `go test`; or empty
    # Whether it checks everything: its success includes that of narrower checks.
    checks_all: bool
    # Whether all its programs only read: failing may mean that nothing was found.
    is_read_only: bool
    # Whether its exit code is its own, not that of a `tail` or `echo` behind it.
    has_own_exit_code: bool

    @classmethod
    def parse(cls, text: str) -> "ShellCommand":
        """Classify a command by its first MAX_COMMAND_CHARS."""
        shown = text[:MAX_COMMAND_CHARS]
        bare = _mask_quoted(shown)
        pipe = _PIPE.search(bare)
        without_redirections = _drop_redirections(bare)
        programs = _programs(without_redirections)
        writes_file = ">" in without_redirections or "<<" in shown
        check, arguments = next(filter(None, map(_find_check, programs)), NO_CHECK)
        # A check of everything has no file or test name as argument.
        checks_all = all(word.startswith("-") or word in WHOLE_TARGETS for word in arguments)
        return cls(
            text=text,
            core=" ".join(_drop_redirections(shown[: pipe.start()] if pipe else shown).split()),
            check=check,
            checks_all=bool(check) and checks_all,
            is_read_only=not writes_file and all(map(_is_reader, programs)),
            has_own_exit_code="pipefail" in bare or not (pipe or _HIDDEN_EXIT_CODE.search(bare)),
        )


def _mask_quoted(command: str) -> str:
    """Replace quoted texts and heredocs by words of equal length."""
    if "<<" in command:
        command = _HEREDOC.sub(lambda match: "q" * len(match[0]), command)
    return _QUOTED.sub(lambda match: "q" * len(match[0]), command)


def _drop_redirections(command: str) -> str:
    """Remove redirections, except those to files."""
    return _DISCARDED_OUTPUT.sub("", command) if ">" in command else command


def _programs(command: str) -> list[list[str]]:
    """Return the words of each program in a command, without assignments and wrappers."""
    programs: list[list[str]] = []
    for piece in _SEPARATOR.split(command):
        words = piece.split()
        while words and (words[0] in WRAPPERS or _ASSIGNMENT.fullmatch(words[0])):
            words = words[1:]
        if words:
            programs.append(words)
    return programs


def _find_check(words: list[str]) -> tuple[str, list[str]] | None:
    """Return the name and arguments of a check, or None.

    It may stand behind others: `uv run --no-sync pytest`, `timeout 60 go test`.
    """
    if words[0] in READERS | TALKERS:
        return None
    words = [words[0].rpartition("/")[2], *words[1:]]
    for place, word in enumerate(words[:MAX_CHECK_POSITION]):
        if word in CHECKERS:
            return word, words[place + 1 :]
        if word in RUNNERS and (task := _find_task(words, place + 1)):
            return f"{word} {words[task]}", words[task + 1 :]
    return None


def _find_task(words: list[str], start: int) -> int | None:
    """Return the position of a task's name, as in `npm run test:ci`."""
    for place, word in enumerate(words[start : start + MAX_CHECK_POSITION], start):
        if TASKS.intersection(re.split(r"[:_-]", word)):
            return place
    return None


def _is_reader(words: list[str]) -> bool:
    program, *rest = words
    if program == "git":
        return next((word for word in rest if not word.startswith("-")), "") in GIT_READS
    if program == "gh":
        return rest[1:2] != [] and rest[1] in GH_READS
    changes = WRITING_OPTIONS.get(program, ())
    return program in READERS and not any(word.startswith(changes) for word in rest)
