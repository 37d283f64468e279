"""Every error says what was expected, what came, where, and what to do."""

import ast
import builtins
import pickle

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
    MalformedJson,
    NewerStore,
    NotRunning,
    StoreFailed,
    SummedUsage,
    UnexpectedJson,
    UnknownAgent,
    UnknownSession,
    UnreadableTranscript,
    UnrecognisedFormat,
    UnrecognisedObject,
    UnsafeFolder,
    WorkerFailed,
)
from source_trees import parse_modules

EVERY: list[BrimlineError] = [
    AlreadyRunning("127.0.0.1:8420", "Address already in use"),
    NotRunning("the socket"),
    InvalidUsage("output", -1),
    SummedUsage("requests", 3, "Pass the last answer."),
    MalformedJson("nested too deeply"),
    UnexpectedJson("Expected `int`, got `str`"),
    InvalidSettings("user file", "since", "expected a span"),
    UnknownAgent("emacs", ("claude", "codex")),
    UnknownSession("abc"),
    UnreadableTranscript("x.jsonl", "Is a directory"),
    WorkerFailed(),
    UnrecognisedFormat("stdin", ("claude", "codex")),
    UnrecognisedObject("builtins.int", ("an Anthropic message", "a dict of one")),
    InvalidState("tracker", "it is no JSON"),
    InvalidPolicy("at", 0, "more than 0"),
    BaselineFailed("claude", "it is not installed", "Install it."),
    CommandFailed("claude", "No such file or directory"),
    InvalidRequest("no session given", "Pass --session ID."),
    InvalidHandoff("handoff.md", "it is empty", "Write it."),
    StoreFailed("brimline.db", "disk I/O error", "Is that disk full?"),
    NewerStore("brimline.db", 17, 16),
    UnsafeFolder("state", "it belongs to another user", "Remove it."),
]


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_error_survives_pickling(error: BrimlineError) -> None:
    """A process pool sends errors to its parent by pickle."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_every_error_has_the_common_base(error: BrimlineError) -> None:
    assert isinstance(error, BrimlineError)
    assert str(error)


def test_docstring_of_errors_names_every_class() -> None:
    tree = errors.__doc__ or ""
    own = {name for name, value in vars(errors).items() if value.__class__ is type}
    assert own == {type(error).__name__ for error in EVERY} | {"BrimlineError"}
    assert all(name in tree for name in own)


def exception_classes(bases: set[str]) -> set[str]:
    """Return the name of every exception class of the package that derives from a base."""
    classes = {
        node.name: {each.id for each in node.bases if isinstance(each, ast.Name)}
        for path, tree in parse_modules().items()
        if not path.startswith("testing/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    ours: set[str] = set()
    while new := {name for name, own in classes.items() if own & (bases | ours)} - ours:
        ours |= new
    return ours


def _builtin_exceptions() -> set[str]:
    return {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }


def test_every_exception_class_of_the_package_is_in_the_tree() -> None:
    lines = (errors.__doc__ or "").splitlines()
    drawn = {line.split("── ")[1].split()[0] for line in lines if "── " in line}
    assert drawn == exception_classes(_builtin_exceptions()) - {"BrimlineError"}


def test_every_exception_class_has_the_common_base() -> None:
    others = exception_classes(_builtin_exceptions()) - exception_classes({"BrimlineError"})
    assert others == {"BrimlineError"}


def test_missing_count_is_called_missing() -> None:
    error = InvalidUsage("input_tokens", None)
    assert (error.field, error.value) == ("input_tokens", None)
    assert str(error) == (
        "usage field 'input_tokens' must be an integer of 0 or more: it is missing"
    )


def test_wrong_count_is_shown_with_what_was_expected() -> None:
    error = InvalidUsage("reasoning", "7", "at most the output, 3")
    assert error.expected == "at most the output, 3"
    assert str(error) == "usage field 'reasoning' must be at most the output, 3: got '7'"


def test_wrong_setting_names_file_and_field() -> None:
    error = InvalidSettings("environment", "limits.*", "expected more than 0: got 0")
    assert (error.place, error.field) == ("environment", "limits.*")
    assert error.problem == "expected more than 0: got 0"
    assert str(error) == "environment: limits.*: expected more than 0: got 0"


def test_unknown_agent_lists_the_known_ones() -> None:
    error = UnknownAgent("emacs", ("claude", "codex"))
    assert (error.name, error.known) == ("emacs", ("claude", "codex"))
    assert str(error) == "unknown agent 'emacs'\nhint: Known agents: claude, codex."


def test_unknown_session_says_how_to_list_sessions() -> None:
    error = UnknownSession("abc")
    assert (error.name, error.candidates) == ("abc", ())
    assert str(error).startswith("no file or session named 'abc'\n")
    assert "brimline status --all" in str(error)


def test_ambiguous_session_lists_the_matches() -> None:
    error = UnknownSession("ab", ("abc", "abd"))
    assert error.candidates == ("abc", "abd")
    hint = "Give more of the id or title."
    assert str(error) == f"more than one session matches 'ab':\n   abc\n   abd\nhint: {hint}"


def test_unknown_session_suggests_a_near_one() -> None:
    error = UnknownSession("ab", near="abc Fix it (pi)")
    assert error.near == "abc Fix it (pi)"
    assert "hint: Did you mean abc Fix it (pi)? `brimline status" in str(error)


def test_hint_is_on_its_own_line_and_optional() -> None:
    assert str(UnreadableTranscript("x", "No such file")) == "cannot read x: No such file"
    hinted = UnreadableTranscript("x", "locked", "Try again.")
    assert (hinted.path, hinted.reason, hinted.hint) == ("x", "locked", "Try again.")
    assert str(hinted) == "cannot read x: locked\nhint: Try again."


def test_unrecognised_stream_says_how_to_name_the_agent() -> None:
    error = UnrecognisedFormat("stdin", ("claude", "pi"))
    assert (error.place, error.known) == ("stdin", ("claude", "pi"))
    assert str(error).endswith("If it is a known agent's, name it with --agent (claude, pi).")


def test_unrecognised_file_says_what_it_resembles() -> None:
    error = UnrecognisedFormat("a.jsonl", ("pi",), "Pi's stream, but its header has version 0")
    assert error.resembles == "Pi's stream, but its header has version 0"
    assert ". It resembles Pi's stream, but its header has version 0\n" in str(error)


def test_unknown_object_is_named_by_its_type_with_what_is_supported() -> None:
    error = UnrecognisedObject("builtins.int", ("an Anthropic message", "an OpenAI response"))
    assert (error.kind, len(error.supported)) == ("builtins.int", 2)
    assert str(error) == (
        "cannot observe builtins.int: no usage in a known shape\n"
        "hint: Pass the answer of the provider's own client, as frameworks keep it in `raw` or "
        "`inner_content`, or its usage. Supported: an Anthropic message; an OpenAI response."
    )


def test_invalid_state_says_what_to_do() -> None:
    error = InvalidState("tracker", "it is no JSON")
    assert error.problem == "it is no JSON"
    assert str(error).startswith("not a tracker state: it is no JSON\nhint: Start with")


def test_invalid_policy_names_field_value_and_expectation() -> None:
    error = InvalidPolicy("at", -1, "more than 0")
    assert (error.field, error.value, error.expected) == ("at", -1, "more than 0")
    assert str(error) == "at must be more than 0: got -1"


def test_failed_baseline_names_client_reason_and_hint() -> None:
    error = BaselineFailed("claude", "it is not installed", "Install it.")
    assert (error.agent, error.reason) == ("claude", "it is not installed")
    assert str(error) == (
        "cannot get the baseline of claude: it is not installed\nhint: Install it."
    )


def test_failed_command_is_named_with_the_reason() -> None:
    error = CommandFailed("claude", "No such file or directory")
    assert (error.command, error.reason) == ("claude", "No such file or directory")
    assert str(error) == "cannot start 'claude': No such file or directory"
    failed = CommandFailed("tmux capture-pane", "no such pane", "Look.", was_started=True)
    assert (failed.was_started, error.was_started) == (True, False)
    assert str(failed) == "'tmux capture-pane' failed: no such pane\nhint: Look."


def test_invalid_handoff_is_named_with_the_reason() -> None:
    error = InvalidHandoff("handoff.md", "it is empty", "Write it.")
    assert (error.path, error.reason, error.hint) == ("handoff.md", "it is empty", "Write it.")
    message = "cannot use handoff.md as a handoff: it is empty\nhint: Write it."
    assert str(error) == message


def test_daemon_errors_say_what_to_do() -> None:
    running = AlreadyRunning("127.0.0.1:8420", "Address already in use")
    assert (running.place, running.reason) == ("127.0.0.1:8420", "Address already in use")
    assert str(running).startswith("127.0.0.1:8420 is in use: Address already in use\n")
    assert "brimline serve --status" in str(AlreadyRunning("the lock"))
    assert str(NotRunning("the socket")) == (
        "the daemon is not running (no answer at the socket)\n"
        "hint: `brimline serve --background` starts it."
    )
