"""Every error says what was expected, what came, where, and what to do."""

import ast
import builtins
from pathlib import Path

import pytest

from brimline import errors
from brimline.errors import (
    AlreadyRunning,
    BaselineFailed,
    BrimlineError,
    CommandFailed,
    InvalidHandoff,
    InvalidPolicy,
    InvalidRequest,
    InvalidSettings,
    InvalidState,
    InvalidUsage,
    NotRunning,
    UnknownAgent,
    UnknownSession,
    UnreadableTranscript,
    UnrecognisedFormat,
    UnrecognisedObject,
    UnsafeFolder,
    WorkerFailed,
)

EVERY: list[BrimlineError] = [
    AlreadyRunning("127.0.0.1:8420", "Address already in use"),
    NotRunning("the socket"),
    InvalidUsage("output", -1),
    InvalidSettings("user file", "since", "expected a span"),
    UnknownAgent("emacs", ("claude", "codex")),
    UnknownSession("abc"),
    UnreadableTranscript("x.jsonl", "Is a directory"),
    WorkerFailed(),
    UnrecognisedFormat("stdin", ("claude", "codex")),
    UnrecognisedObject("builtins.int", ("an Anthropic message", "a dict of one")),
    InvalidState("it is no JSON"),
    InvalidPolicy("at", 0, "more than 0"),
    BaselineFailed("claude", "it is not installed", "Install it."),
    CommandFailed("claude", "No such file or directory"),
    InvalidRequest("no session given", "Pass --session ID."),
    InvalidHandoff("handoff.md", "it is empty", "Write it."),
    UnsafeFolder("state", "it belongs to another user", "Remove it."),
]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_one_base(error: BrimlineError) -> None:
    """One except clause catches them all."""
    assert isinstance(error, BrimlineError)
    assert str(error)


def test_tree_is_drawn() -> None:
    """The docstring of the module names every class of the tree."""
    drawn = errors.__doc__ or ""
    own = {name for name, value in vars(errors).items() if value.__class__ is type}
    assert own == {type(error).__name__ for error in EVERY} | {"BrimlineError"}
    assert all(name in drawn for name in own)


def exception_classes() -> set[str]:
    """Return the name of every exception class that the package defines."""
    source = Path(errors.__file__).parent
    classes = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for path in source.rglob("*.py")
        if "testing" not in path.relative_to(source).parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    known = {name for name, value in vars(builtins).items() if _is_exception(value)}
    ours: set[str] = set()
    while new := {name for name, bases in classes.items() if bases & (known | ours)} - ours:
        ours |= new
    return ours


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def test_exception_class_missing_in_the_tree() -> None:
    """Every exception class of the package is in the docstring of `errors`."""
    drawn = errors.__doc__ or ""
    assert {name for name in exception_classes() if name not in drawn} == set()
    assert "StoreFailed" in exception_classes()


def test_usage_that_is_missing() -> None:
    """A count that is not there is called missing, not None."""
    error = InvalidUsage("input_tokens", None)
    assert (error.field, error.value) == ("input_tokens", None)
    assert str(error) == (
        "usage field 'input_tokens' must be an integer of 0 or more: it is missing"
    )


def test_usage_that_came_wrong() -> None:
    """A wrong count is shown as it came, with what was expected."""
    error = InvalidUsage("reasoning", "7", "at most the output, 3")
    assert error.expected == "at most the output, 3"
    assert str(error) == "usage field 'reasoning' must be at most the output, 3: got '7'"


def test_setting() -> None:
    """A wrong setting names its place and its field."""
    error = InvalidSettings("environment", "limits.*", "expected more than 0: got 0")
    assert (error.place, error.field) == ("environment", "limits.*")
    assert error.problem == "expected more than 0: got 0"
    assert str(error) == "environment: limits.*: expected more than 0: got 0"


def test_agent() -> None:
    """An unknown agent is told which ones are known."""
    error = UnknownAgent("emacs", ("claude", "codex"))
    assert (error.name, error.known) == ("emacs", ("claude", "codex"))
    assert str(error) == "unknown agent 'emacs'\nhint: Known agents: claude, codex."


def test_session_that_is_not_there() -> None:
    """An unknown session is told how to list them."""
    error = UnknownSession("abc")
    assert (error.name, error.candidates) == ("abc", ())
    assert str(error).startswith("no file or session named 'abc'\n")
    assert "brimline status --all" in str(error)


def test_session_that_is_not_clear() -> None:
    """A beginning that fits several sessions names them."""
    error = UnknownSession("ab", ("abc", "abd"))
    assert error.candidates == ("abc", "abd")
    told = "Matches: abc, abd. Give a longer prefix, or pass --agent."
    assert str(error) == f"more than one session starts with 'ab'\nhint: {told}"


def test_transcript_with_and_without_a_hint() -> None:
    """A hint stands on a line of its own, and none leaves no empty line."""
    assert str(UnreadableTranscript("x", "No such file")) == "cannot read x: No such file"
    hinted = UnreadableTranscript("x", "locked", "Try again.")
    assert (hinted.path, hinted.reason, hinted.hint) == ("x", "locked", "Try again.")
    assert str(hinted) == "cannot read x: locked\nhint: Try again."


def test_format() -> None:
    """An unrecognised stream is told how to say whose it is."""
    error = UnrecognisedFormat("stdin", ("claude", "pi"))
    assert (error.place, error.known) == ("stdin", ("claude", "pi"))
    assert str(error).endswith("Name its agent with --agent (claude, pi).")


def test_object() -> None:
    """An object of an unknown shape is named by its type, with what is supported."""
    error = UnrecognisedObject("builtins.int", ("an Anthropic message", "an OpenAI response"))
    assert (error.kind, len(error.supported)) == ("builtins.int", 2)
    assert str(error) == (
        "cannot observe builtins.int: no usage in a known shape\n"
        "hint: Supported: an Anthropic message; an OpenAI response."
    )


def test_state() -> None:
    """A state that is none says what to do."""
    error = InvalidState("it is no JSON")
    assert error.problem == "it is no JSON"
    assert str(error).startswith("not a tracker state: it is no JSON\nhint: Start with")


def test_policy() -> None:
    """A policy that could never hold names the field, what came and what was expected."""
    error = InvalidPolicy("at", -1, "more than 0")
    assert (error.field, error.value, error.expected) == ("at", -1, "more than 0")
    assert str(error) == "at must be more than 0: got -1"


def test_baseline() -> None:
    """A client that does not tell its baseline is named, with the reason and what to do."""
    error = BaselineFailed("claude", "it is not installed", "Install it.")
    assert (error.agent, error.reason) == ("claude", "it is not installed")
    assert str(error) == (
        "cannot get the baseline of claude: it is not installed\nhint: Install it."
    )


def test_command() -> None:
    """A command that does not start is named, with the reason."""
    error = CommandFailed("claude", "No such file or directory")
    assert (error.command, error.reason) == ("claude", "No such file or directory")
    assert str(error) == "cannot start 'claude': No such file or directory"


def test_handoff() -> None:
    """A file that is no handoff is named, with the reason and what to do."""
    error = InvalidHandoff("handoff.md", "it is empty", "Write it.")
    assert (error.path, error.reason, error.hint) == ("handoff.md", "it is empty", "Write it.")
    told = "cannot use handoff.md as a handoff: it is empty\nhint: Write it."
    assert str(error) == told


def test_daemon() -> None:
    """A place that is taken, or where nobody answers, says what to do."""
    taken = AlreadyRunning("127.0.0.1:8420", "Address already in use")
    assert (taken.place, taken.reason) == ("127.0.0.1:8420", "Address already in use")
    assert str(taken).startswith("127.0.0.1:8420 is in use: Address already in use\n")
    assert "brimline serve --status" in str(AlreadyRunning("the lock"))
    assert str(NotRunning("the socket")) == (
        "the daemon is not running (no answer at the socket)\n"
        "hint: `brimline serve --background` starts it."
    )
