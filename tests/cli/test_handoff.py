"""`brimline handoff`: drafts without a daemon, stored documents, and what happened since."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from brimline.agents.observations import Pane
from brimline.daemon.tmux.clear_requests import ClearRequest, save_request
from daemon.tmux.terminal import Terminal
from server.filled_session import write_filled_session
from server.running import Running

from .terminal import Json, User, cells, iso

SESSION = "11111111-1111-4111-8111-111111111111"
NO_HOOKS = (
    "No hooks of Brimline are installed for Claude Code. `brimline setup claude` installs them. "
    "Open sessions may need a restart."
)
PROMPT = "and continue from where you left off."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A running daemon for all tests; each has its own session."""
    running = Running(tmp_path_factory.mktemp("daemon"))
    running.start()
    yield running
    running.close()


@pytest.fixture
def session() -> str:
    return str(uuid4())


def user_prompt(user: User, text: str) -> Json:
    return user.record("user", message={"role": "user", "content": text})


def file_edit(at: float, path: str, id: str) -> list[Json]:
    """A file that the agent's tool changed, as in the transcript."""
    call = {"type": "tool_use", "id": id, "name": "Write"} | {"input": {"file_path": path}}
    message = {"role": "assistant", "model": "m", "id": id, "content": [call]}
    result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
    base = {"sessionId": SESSION, "timestamp": iso(at), "isSidechain": False, "uuid": id}
    return [
        base | {"type": "assistant", "message": message},
        base | {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


def stand_in(folder: Path) -> str:
    """A folder with a `claude` that prints its arguments."""
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@"\nsleep 600\n')
    program.chmod(0o755)
    return str(folder)


def status(session: str, transcript: Path) -> dict[str, Any]:
    """Status-line input of a session."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0,
             "cache_read_input_tokens": 1_000}  # fmt: skip
    window = {"context_window_size": 200_000, "current_usage": usage}
    return {"session_id": session, "cwd": "/project", "version": "2.1.325",
            "transcript_path": str(transcript), "model": {"id": "claude-sonnet-4-5"},
            "context_window": window}  # fmt: skip


def test_draft_is_printed_or_written_from_the_transcript_alone(user: User) -> None:
    user.session("s1", user_prompt(user, "Fix the parser."), user.call("m1", 1_000))
    completed = user.run("handoff", "--draft", "s1")
    assert completed.code == 0, completed.err
    assert completed.out.startswith("# Draft handoff")
    assert "> Fix the parser." in completed.out
    again = user.run("handoff", "--draft", "s1", "--output", "draft.md")
    assert (again.code, again.out) == (0, "")
    assert (user.cwd / "draft.md").read_text() == completed.out
    output = user.run("handoff", "--draft", "s1", "--json").json
    assert (output["session"], output["agent"], output["text"]) == ("s1", "claude", completed.out)


def test_draft_of_a_file_equals_that_of_its_session(user: User) -> None:
    """The file may be anywhere, and on standard input; what looks like a credential is masked."""
    prompt = user_prompt(user, "Fix the parser. password=hunter2hunter2")
    path = user.session("s1", prompt, user.call("m1", 1_000))
    by_session = user.run("handoff", "--draft", "s1").out
    assert "password=***" in by_session
    assert user.run("handoff", "--draft", str(path)).out == by_session
    copied = user.cwd / "copy.jsonl"
    copied.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    by_copy = user.run("handoff", "--draft", "copy.jsonl", "--json").json
    assert (by_copy["agent"], by_copy["transcript"]) == ("claude", "copy.jsonl")
    piped = user.run("handoff", "--draft", "-", stdin=copied.read_bytes())
    assert (piped.code, piped.err) == (0, "")
    for text in (by_copy["text"], piped.out):
        assert text.partition("## Session")[0] == by_session.partition("## Session")[0]
    assert "- transcript: standard input" in piped.out


def test_draft_of_a_stream_or_an_unknown_file_is_an_error(user: User) -> None:
    line = b'{"type":"system","subtype":"init","session_id":"s","claude_code_version":"2.1.325"}'
    streamed = user.run("handoff", "--draft", "-", stdin=line)
    assert (streamed.code, "it is a client's stream" in streamed.err) == (2, True)
    (user.cwd / "notes.md").write_text("Notes.")
    unknown = user.run("handoff", "--draft", "notes.md")
    assert (unknown.code, "notes.md" in unknown.err) == (2, True)
    assert "no such file" in user.run("handoff", "--draft", "none/s1.jsonl").err


def test_draft_inside_an_agent_is_of_its_own_session(user: User) -> None:
    user.session("s1", user_prompt(user, "Fix the parser."))
    assert "Fix the parser." in user.run("handoff", "--draft", CLAUDE_CODE_SESSION_ID="s1").out


def test_draft_of_a_missing_or_unnamed_session_is_an_error(user: User) -> None:
    assert "no sessions found" in user.run("handoff", "--draft").err
    user.session("s1", user_prompt(user, "Fix the parser."))
    assert "no file or session" in user.run("handoff", "--draft", "nobody").err
    assert "no session given" in user.run("handoff", "--draft").err


@pytest.mark.parametrize("words", [("--clear",), ("--spawn",)])
def test_continuing_needs_a_document(user: User, words: tuple[str, ...]) -> None:
    completed = user.run("handoff", *words, "--session", "s1")
    assert (completed.code, "no document given" in completed.err) == (2, True)


def test_show_and_list_count_calls_and_files_since_the_handoff(
    daemon: Running, session: str, tmp_path: Path
) -> None:
    transcript, notes = tmp_path / "session.jsonl", tmp_path / "notes.md"
    transcript.write_text("")
    notes.write_text("The parser is half done.")
    daemon.hook(status(session, transcript), "statusline")
    none = daemon.command("handoff", "--list", "--session", session)
    assert none.stdout == "no handoff yet\n", none.stderr
    assert daemon.command("handoff", str(notes), "--session", session).returncode == 0
    records = file_edit(time.time() - 600, "/a.py", "m1") + file_edit(
        time.time() + 1, "/b.py", "m2"
    )
    transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    text = daemon.command("handoff", "--show", "--session", session).stdout
    assert text.startswith(f"{notes}\nby the user, ")
    assert "; since then: 0 calls, 1 file changed\n\nThe parser is half done.\n" in text
    listed = daemon.command("handoff", "--list", "--session", session).stdout
    assert str(notes)[-20:] in listed
    documents = json.loads(
        daemon.command("handoff", "--list", "--json", "--session", session).stdout
    )
    (row,) = documents["handoffs"]
    assert row["text"] == "The parser is half done."
    assert row["freshness"]["files"] == 1
    assert documents["clear"] is None


def test_document_for_a_session_without_hooks_is_saved_and_says_that_nothing_delivers_it(
    daemon: Running, session: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("Go on.")
    words = ("handoff", str(tmp_path / "notes.md"), "--session", session)
    write_filled_session(daemon.home, session)
    daemon.until("/v1/sessions", lambda views: session in {view["session"]["id"] for view in views})
    saved = daemon.command(*words)
    assert (saved.returncode, saved.stdout.splitlines()) == (
        1,
        [
            f"Saved 6 characters for session {session[:8]}, but nothing will deliver them.",
            NO_HOOKS,
        ],
    )
    saved = daemon.command(*words, "--json")
    assert (saved.returncode, json.loads(saved.stdout)["undeliverable"] is None) == (1, False)
    daemon.hook({"session_id": session, "hook_event_name": "SessionStart", "source": "startup"})
    saved = daemon.command(*words, "--json")
    assert (saved.returncode, json.loads(saved.stdout)["undeliverable"]) == (0, None)


# Prints how often a command opens a file.
COUNTED = """
import sys
from brimline.cli import main
path, opened = sys.argv.pop(1), []
sys.addaudithook(lambda name, args: opened.append(1) if name == "open" and args[0] == path else 0)
main()
print(len(opened), file=sys.stderr)
"""


def test_list_reads_the_transcript_once_for_all_handoffs(
    daemon: Running, session: str, tmp_path: Path
) -> None:
    transcript, notes = tmp_path / "session.jsonl", tmp_path / "notes.md"
    records = file_edit(time.time() + 60, "/a.py", "m1")
    transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    daemon.hook(status(session, transcript), "statusline")
    for number in range(3):
        notes.write_text(f"Step {number} is done.")
        assert daemon.command("handoff", str(notes), "--session", session).returncode == 0
    words = [str(transcript), "handoff", "--list", "--json", "--session", session]
    completed = subprocess.run(
        [sys.executable, "-c", COUNTED, *words],
        capture_output=True, text=True, env=daemon.environment, check=True,
    )  # fmt: skip
    handoffs = json.loads(completed.stdout)["handoffs"]
    assert [row["freshness"]["files"] for row in handoffs] == [1, 1, 1]
    assert completed.stderr == "1\n"


@pytest.mark.parametrize(
    ("intent", "line"),
    [
        (("waiting", None, None), "will be cleared when the turn ends, requested 5m ago (/n.md)"),
        (("clearing", None, None), "clearing now (/n.md)"),
        (("failed", None, "the agent is busy"), "not cleared, 5m ago: the agent is busy (/n.md)"),
        (
            ("done", "22222222-x", None),
            "cleared 5m ago; continues from /n.md as session 22222222",
        ),
    ],
)
def test_list_has_the_result_of_clear(
    daemon: Running,
    session: str,
    tmp_path: Path,
    intent: tuple[Any, str | None, str | None],
    line: str,
) -> None:
    daemon.hook(status(session, tmp_path / "none.jsonl"), "statusline")
    step, after, why = intent
    ago = time.time() - 300
    pane = Pane("/tmp/nobody", "%1")
    save_request(
        daemon.state, ClearRequest(session, "claude", pane, "/n.md", ago, step, ago, after, why)
    )
    assert line in daemon.command("handoff", "--list", "--session", session).stdout


def test_spawn_in_tmux_opens_a_window_in_the_current_folder(user: User, tmp_path: Path) -> None:
    (user.cwd / "notes.md").write_text("Go on.")
    path = f"{stand_in(tmp_path / 'bin')}:{os.environ['PATH']}"
    terminal = Terminal(["cat"], user.cwd)
    try:
        user.env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id, "PATH": path}
        completed = user.run("handoff", "notes.md", "--spawn", "--json", CLAUDE_CODE_SESSION_ID="s")
        assert completed.code == 0, completed.err
        shows = ("capture-pane", "-p", "-J", "-t", completed.json["pane"])
        terminal.until(lambda: PROMPT.split()[-1] in terminal.tmux(*shows))
        assert completed.json["folder"] == str(user.cwd)
        assert f"Read {user.cwd / 'notes.md'} {PROMPT}" == completed.json["command"][-1]
    finally:
        terminal.close()


def test_spawn_on_a_terminal_replaces_the_command(user: User, tmp_path: Path) -> None:
    """The client gets the user's environment without the variables of a calling agent."""
    (user.cwd / "notes.md").write_text("Go on.")
    path = f"{stand_in(tmp_path / 'bin')}:{os.environ['PATH']}"
    program = tmp_path / "bin" / "claude"
    own = 'printf "%s" "$CLAUDE_CODE_SHELL"'
    program.write_text(program.read_text().replace("sleep 600", own))
    words = ("handoff", "notes.md", "--spawn", "--agent", "claude")
    expected = f"{user.cwd}|Read {user.cwd / 'notes.md'} {PROMPT}|"
    user.env |= {"PATH": path, "CLAUDE_CODE_SHELL": "mine"}
    assert user.on_terminal(*words).out == f"{expected}mine"
    assert user.on_terminal(*words, CLAUDECODE="1").out == expected


def test_spawn_without_a_terminal_prints_the_command(user: User) -> None:
    (user.cwd / "notes.md").write_text("Go on.")
    completed = user.run("handoff", "notes.md", "--spawn", "--agent", "gemini")
    assert completed.code == 2
    assert (
        f"cd {user.cwd} && gemini --prompt-interactive 'Read {user.cwd}/notes.md" in completed.err
    )
    assert "no agent given" in user.run("handoff", "notes.md", "--spawn").err
    bad = user.run("handoff", "nothing.md", "--spawn", "--agent", "gemini")
    assert "cannot use" in bad.err


def nested(daemon: Running, outer: dict[str, str], inner: dict[str, str], *words: str) -> str:
    """The output of a command that one agent runs inside another."""
    code = "import json, os, subprocess, sys; inner, *words = json.loads(sys.argv[1]); "
    code += "sys.exit(subprocess.call(words, env=os.environ | inner))"
    arguments = json.dumps([inner, sys.executable, "-m", "brimline", *words])
    env = daemon.environment | outer
    command = [sys.executable, "-c", code, arguments]
    completed = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return completed.stdout + completed.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere our own order decides")
def test_nested_agent_hands_over_its_own_session(daemon: Running, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("Go on.")
    claude = {"CLAUDE_CODE_SESSION_ID": "aaaa"}
    output = nested(daemon, claude, {"CODEX_THREAD_ID": "bbbb"}, "handoff", str(notes))
    assert output.startswith("Saved 6 characters for session bbbb")
    output = nested(daemon, claude, {"GEMINI_CLI": "test"}, "handoff", str(notes))
    assert "no session given" in output


@pytest.mark.parametrize(
    ("env", "author"),
    [
        ({}, "the user"),
        ({"GEMINI_CLI": "1"}, "the agent itself"),
        ({"CLAUDE_CODE_SESSION_ID": SESSION}, "the agent itself"),
        ({"CODEX_THREAD_ID": "other"}, "another agent"),
    ],
)
def test_author_is_the_user_the_agent_or_another_agent(
    daemon: Running, tmp_path: Path, env: dict[str, str], author: str
) -> None:
    (tmp_path / "notes.md").write_text("Go on.")
    words = ("handoff", str(tmp_path / "notes.md"), "--session", SESSION, "--json")
    assert json.loads(daemon.command(*words, **env).stdout)["author"] == author


def test_document_for_an_unknown_session_is_stored_with_a_hint(
    daemon: Running, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("Go on.")
    completed = daemon.command("handoff", str(tmp_path / "notes.md"), "--session", "nosuch")
    assert completed.stdout == (
        "Saved 6 characters for session nosuch\n"
        "unknown session: the document is kept in case a session with this id starts\n"
    )
    shown = daemon.command("handoff", "--show", "--session", "nosuch")
    assert shown.stdout.endswith("; since then: calls unknown, files unknown\n\nGo on.\n")
    listed = daemon.command("handoff", "--list", "--session", "nosuch", "--json")
    assert json.loads(listed.stdout)["handoffs"][0]["text"] == "Go on."
    unknown = daemon.command("handoff", "--show", "--session", "other")
    assert unknown.returncode == 2
    assert "no session 'other'\nhint: `brimline status --all` lists" in unknown.stderr
    assert "/v1/" not in unknown.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["x.md", "--session", ""], "argument --session: expected a session id"),
        (["--draft", ""], "argument --draft: expected a session id"),
        (["x.md", "--show"], "argument PATH: not allowed with --show"),
        (["x.md", "--list"], "argument PATH: not allowed with --show"),
        (["--draft", "s1", "--", "x.md"], "argument PATH: not allowed with --show"),
        (["x.md", "--output", "y.md"], "argument --output: not allowed without --draft"),
        (["x.md", "--agent", "pi"], "argument --agent: not allowed without --draft"),
        (["--draft", "s1", "--session", "s2"], "argument --session: not allowed with --draft"),
        (["a\nb"], "argument PATH: expected a path on one line: got 'a\\nb'"),
        ([""], "argument PATH: expected a path on one line: got ''"),
    ],
)
def test_conflicting_or_missing_options_are_refused_with_the_usage(
    user: User, words: list[str], why: str
) -> None:
    completed = user.run("handoff", *words, CLAUDE_CODE_SESSION_ID="s1")
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith("usage: brimline handoff")
    assert f"brimline handoff: error: {why}" in completed.err


def test_missing_document_is_an_error_with_a_hint(daemon: Running, user: User) -> None:
    hint = "hint: Name a file that exists and that you can read.\n"
    refused = daemon.command("handoff", "/none/x.md", "--session", SESSION)
    assert refused.returncode == 2
    assert refused.stderr.endswith(f"No such file or directory\n{hint}")
    # The file comes first: without a session and without a daemon too.
    for words in ((), ("--session", "s1"), ("--clear",), ("--spawn", "--agent", "pi")):
        refused = user.run("handoff", "none.md", *words)
        why = f"cannot use {user.cwd}/none.md as a handoff: No such file or directory"
        assert (refused.code, refused.err) == (2, f"brimline: {why}\n{hint}")


@pytest.mark.parametrize(
    ("path", "why"), [("none/x.md", "No such file or directory"), (".", "Is a directory")]
)
def test_unwritable_draft_is_an_error_with_the_reason(user: User, path: str, why: str) -> None:
    user.session("s1", user_prompt(user, "Fix the parser."))
    completed = user.run("handoff", "--draft", "s1", "--output", path)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"brimline: cannot write {path}: {why}\n")


def test_escapes_in_a_draft_reach_a_pipe_but_no_terminal(user: User) -> None:
    user.session("s1", user_prompt(user, "Fix\tthe \x1b]0;evil\x07parser.\nNow."))
    text = user.on_terminal("handoff", "--draft", "s1").out
    assert not set(text) & {"\x1b", "\x07"}
    assert "> Fix\tthe \ufffd]0;evil\ufffdparser.\n> Now." in text
    assert "\x1b]0;evil\x07" in user.run("handoff", "--draft", "s1").out


def test_escapes_in_a_stored_document_do_not_reach_the_terminal(
    daemon: Running, session: str, user: User, tmp_path: Path
) -> None:
    daemon.hook(status(session, tmp_path / "none.jsonl"), "statusline")
    (tmp_path / "notes.md").write_bytes(b"a\tb\x1b[2J\r\nnext\n")
    daemon.command("handoff", str(tmp_path / "notes.md"), "--session", session)
    words = ("handoff", "--show", "--session", session)
    text = user.on_terminal(*words, BRIMLINE_STATE_DIR=str(daemon.state)).out
    assert "a\tb\ufffd[2J\nnext\n" in text
    assert "a\tb\x1b[2J" in daemon.command(*words).stdout


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_list_fits_the_terminal_and_keeps_the_path(
    daemon: Running, session: str, tmp_path: Path, columns: int
) -> None:
    daemon.hook(status(session, tmp_path / "none.jsonl"), "statusline")
    (tmp_path / "notes.md").write_text("Go on.")
    daemon.command("handoff", str(tmp_path / "notes.md"), "--session", session)
    words = ("handoff", "--list", "--session", session)
    lines = daemon.command(*words, COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(cells, lines)) <= columns
    assert lines[-1].endswith("notes.md")
