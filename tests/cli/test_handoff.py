"""`brimline handoff`: drafted without a daemon, kept by it, shown with what happened since."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.observations import Pane
from brimline.tmux.clear_requests import ClearRequest, save_request
from server.running import Running
from tmux.terminal import Terminal

from .terminal import Json, User, cells, iso

SESSION = "11111111-1111-4111-8111-111111111111"
PROMPT = "and continue from where you left off."


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon that runs, and is gone afterwards."""
    running = Running(tmp_path / "daemon")
    running.start()
    yield running
    running.close()


def user_said(user: User, text: str) -> Json:
    """What the user typed."""
    return user.record("user", message={"role": "user", "content": text})


def wrote(at: float, path: str, id: str) -> list[Json]:
    """A file that the agent's tool changed at a time, as the transcript has it."""
    call = {"type": "tool_use", "id": id, "name": "Write"} | {"input": {"file_path": path}}
    message = {"role": "assistant", "model": "m", "id": id, "content": [call]}
    result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
    base = {"sessionId": SESSION, "timestamp": iso(at), "isSidechain": False, "uuid": id}
    return [
        base | {"type": "assistant", "message": message},
        base | {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


def stand_in(folder: Path) -> str:
    """A folder with a `claude` that says what it was started with."""
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@"\nsleep 600\n')
    program.chmod(0o755)
    return str(folder)


def status(transcript: Path) -> dict[str, Any]:
    """What the status line tells of a session."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0,
             "cache_read_input_tokens": 1_000}  # fmt: skip
    window = {"context_window_size": 200_000, "current_usage": usage}
    return {"session_id": SESSION, "cwd": "/project", "version": "2.1.325",
            "transcript_path": str(transcript), "model": {"id": "claude-sonnet-4-5"},
            "context_window": window}  # fmt: skip


def test_draft(user: User) -> None:
    """A draft is printed, or written to a file, from the transcript alone."""
    user.session("s1", user_said(user, "Fix the parser."), user.call("m1", 1_000))
    done = user.run("handoff", "--draft", "s1")
    assert done.code == 0, done.err
    assert done.out.startswith("# Draft handoff")
    assert "> Fix the parser." in done.out
    again = user.run("handoff", "--draft", "s1", "--output", "draft.md")
    assert (again.code, again.out) == (0, "")
    assert (user.cwd / "draft.md").read_text() == done.out
    told = user.run("handoff", "--draft", "s1", "--json").json
    assert (told["session"], told["agent"], told["text"]) == ("s1", "claude", done.out)


def test_draft_of_the_session_itself(user: User) -> None:
    """Inside an agent the draft is of its own session."""
    user.session("s1", user_said(user, "Fix the parser."))
    assert "Fix the parser." in user.run("handoff", "--draft", CLAUDE_CODE_SESSION_ID="s1").out


def test_draft_of_nothing(user: User) -> None:
    """A session that is not there, and one that is not named, is told so."""
    assert "no file or session" in user.run("handoff", "--draft", "nobody").err
    assert "no session given" in user.run("handoff", "--draft").err


@pytest.mark.parametrize("words", [("--clear",), ("--spawn",)])
def test_which_document(user: User, words: tuple[str, ...]) -> None:
    """What goes on from a document needs one."""
    done = user.run("handoff", *words, "--session", "s1")
    assert (done.code, "no document given" in done.err) == (2, True)


def test_show_and_list(daemon: Running, tmp_path: Path) -> None:
    """What was handed over is shown with how much happened since, in calls and in files."""
    transcript, notes = tmp_path / "session.jsonl", tmp_path / "notes.md"
    transcript.write_text("")
    notes.write_text("The parser is half done.")
    daemon.hook(status(transcript), "statusline")
    none = daemon.command("handoff", "--list", "--session", SESSION)
    assert none.stdout == "no handoff yet\n", none.stderr
    assert daemon.command("handoff", str(notes), "--session", SESSION).returncode == 0
    records = wrote(time.time() - 600, "/a.py", "m1") + wrote(time.time() + 1, "/b.py", "m2")
    transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    shown = daemon.command("handoff", "--show", "--session", SESSION).stdout
    assert shown.startswith(f"{notes}\nby the user, ")
    assert "; since then: 0 calls, 1 file changed\n\nThe parser is half done.\n" in shown
    listed = daemon.command("handoff", "--list", "--session", SESSION).stdout
    assert str(notes)[-20:] in listed
    told = json.loads(daemon.command("handoff", "--list", "--json", "--session", SESSION).stdout)
    (row,) = told["handoffs"]
    assert row["text"] == "The parser is half done."
    assert row["freshness"]["files"] == 1
    assert told["clear"] is None


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
def test_what_became_of_a_clear(
    daemon: Running, tmp_path: Path, intent: tuple[Any, str | None, str | None], line: str
) -> None:
    """The outcome of `--clear` is listed."""
    daemon.hook(status(tmp_path / "none.jsonl"), "statusline")
    step, after, why = intent
    ago = time.time() - 300
    pane = Pane("/tmp/nobody", "%1")
    save_request(
        daemon.state, ClearRequest(SESSION, "claude", pane, "/n.md", ago, step, ago, after, why)
    )
    assert line in daemon.command("handoff", "--list", "--session", SESSION).stdout


def test_spawn_in_tmux(user: User, tmp_path: Path) -> None:
    """Inside tmux the client is started in a new window, in the folder of now, without a daemon."""
    (user.cwd / "notes.md").write_text("Go on.")
    path = f"{stand_in(tmp_path / 'bin')}:{os.environ['PATH']}"
    terminal = Terminal(["cat"], user.cwd)
    try:
        user.env |= {"TMUX": f"{terminal.socket},1,0", "TMUX_PANE": terminal.pane.id, "PATH": path}
        done = user.run("handoff", "notes.md", "--spawn", "--json", CLAUDE_CODE_SESSION_ID="s")
        assert done.code == 0, done.err
        shows = ("capture-pane", "-p", "-J", "-t", done.json["pane"])
        terminal.until(lambda: PROMPT.split()[-1] in terminal.tmux(*shows))
        assert done.json["folder"] == str(user.cwd)
        assert f"Read {user.cwd / 'notes.md'} {PROMPT}" == done.json["command"][-1]
    finally:
        terminal.close()


def test_spawn_on_a_terminal(user: User, tmp_path: Path) -> None:
    """On a terminal outside of tmux the client takes the place of the command.

    It has the user's own environment; where an agent runs the command, without what that set.
    """
    (user.cwd / "notes.md").write_text("Go on.")
    path = f"{stand_in(tmp_path / 'bin')}:{os.environ['PATH']}"
    program = tmp_path / "bin" / "claude"
    own = 'printf "%s" "$CLAUDE_CODE_SHELL"'
    program.write_text(program.read_text().replace("sleep 600", own))
    words = ("handoff", "notes.md", "--spawn", "--agent", "claude")
    told = f"{user.cwd}|Read {user.cwd / 'notes.md'} {PROMPT}|"
    user.env |= {"PATH": path, "CLAUDE_CODE_SHELL": "mine"}
    assert user.on_terminal(*words).out == f"{told}mine"
    assert user.on_terminal(*words, CLAUDECODE="1").out == told


def test_spawn_without_a_terminal(user: User) -> None:
    """Where there is no terminal the user is told what to type."""
    (user.cwd / "notes.md").write_text("Go on.")
    done = user.run("handoff", "notes.md", "--spawn", "--agent", "gemini")
    assert done.code == 2
    assert f"cd {user.cwd} && gemini --prompt-interactive 'Read {user.cwd}/notes.md" in done.err
    assert "no agent given" in user.run("handoff", "notes.md", "--spawn").err
    bad = user.run("handoff", "nothing.md", "--spawn", "--agent", "gemini")
    assert "cannot use" in bad.err


def nested(daemon: Running, outer: dict[str, str], inner: dict[str, str], *words: str) -> str:
    """What a command prints that one agent runs inside another."""
    code = "import json, os, subprocess, sys; inner, *words = json.loads(sys.argv[1]); "
    code += "sys.exit(subprocess.call(words, env=os.environ | inner))"
    told = json.dumps([inner, sys.executable, "-m", "brimline", *words])
    env = daemon.environment | outer
    command = [sys.executable, "-c", code, told]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere our own order decides")
def test_agent_inside_an_agent(daemon: Running, tmp_path: Path) -> None:
    """An agent that another one started hands over for itself, and never for the other."""
    notes = tmp_path / "notes.md"
    notes.write_text("Go on.")
    claude = {"CLAUDE_CODE_SESSION_ID": "aaaa"}
    told = nested(daemon, claude, {"CODEX_THREAD_ID": "bbbb"}, "handoff", str(notes))
    assert told.startswith("Saved 6 characters for session bbbb")
    told = nested(daemon, claude, {"GEMINI_CLI": "test"}, "handoff", str(notes))
    assert "no session given" in told


@pytest.mark.parametrize(
    ("env", "author"),
    [
        ({}, "the user"),
        ({"GEMINI_CLI": "1"}, "the agent itself"),
        ({"CLAUDE_CODE_SESSION_ID": SESSION}, "the agent itself"),
        ({"CODEX_THREAD_ID": "other"}, "another agent"),
    ],
)
def test_author(daemon: Running, tmp_path: Path, env: dict[str, str], author: str) -> None:
    """Whoever runs the command wrote it: the user, the agent, or another one for it."""
    (tmp_path / "notes.md").write_text("Go on.")
    words = ("handoff", str(tmp_path / "notes.md"), "--session", SESSION, "--json")
    assert json.loads(daemon.command(*words, **env).stdout)["author"] == author


def test_session_to_come(daemon: Running, tmp_path: Path) -> None:
    """A document is kept for a session that was not heard of, and that is said; hints are ours."""
    (tmp_path / "notes.md").write_text("Go on.")
    done = daemon.command("handoff", str(tmp_path / "notes.md"), "--session", "nosuch")
    assert done.stdout == (
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
def test_refused(user: User, words: list[str], why: str) -> None:
    """What has no meaning together, or none at all, is refused with the usage."""
    done = user.run("handoff", *words, CLAUDE_CODE_SESSION_ID="s1")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: brimline handoff")
    assert f"brimline handoff: error: {why}" in done.err


def test_missing_document(daemon: Running, user: User) -> None:
    """A document that is not there is told with what to do, handed over or gone on from."""
    hint = "hint: Name a file that exists and that you can read.\n"
    kept = daemon.command("handoff", "/none/x.md", "--session", SESSION)
    assert kept.returncode == 2
    assert kept.stderr.endswith(f"No such file or directory\n{hint}")
    assert user.run("handoff", "none.md", "--spawn", "--agent", "pi").err.endswith(hint)


@pytest.mark.parametrize(
    ("path", "why"), [("none/x.md", "No such file or directory"), (".", "Is a directory")]
)
def test_draft_that_cannot_be_written(user: User, path: str, why: str) -> None:
    """A file that cannot be written is told with the reason."""
    user.session("s1", user_said(user, "Fix the parser."))
    done = user.run("handoff", "--draft", "s1", "--output", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"brimline: cannot write {path}: {why}\n")


def test_escapes_in_a_draft(user: User) -> None:
    """A terminal is given nothing to obey; a pipe is given the text as it is."""
    user.session("s1", user_said(user, "Fix\tthe \x1b]0;evil\x07parser.\nNow."))
    shown = user.on_terminal("handoff", "--draft", "s1").out
    assert not set(shown) & {"\x1b", "\x07"}
    assert "> Fix\tthe \ufffd]0;evil\ufffdparser.\n> Now." in shown
    assert "\x1b]0;evil\x07" in user.run("handoff", "--draft", "s1").out


def test_escapes_in_what_is_shown(daemon: Running, user: User, tmp_path: Path) -> None:
    """The same for a document that was handed over: its lines and tabs are kept."""
    daemon.hook(status(tmp_path / "none.jsonl"), "statusline")
    (tmp_path / "notes.md").write_bytes(b"a\tb\x1b[2J\r\nnext\n")
    daemon.command("handoff", str(tmp_path / "notes.md"), "--session", SESSION)
    words = ("handoff", "--show", "--session", SESSION)
    shown = user.on_terminal(*words, BRIMLINE_STATE_DIR=str(daemon.state)).out
    assert "a\tb\ufffd[2J\nnext\n" in shown
    assert "a\tb\x1b[2J" in daemon.command(*words).stdout


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_list_fits(daemon: Running, tmp_path: Path, columns: int) -> None:
    """The list is no wider than the terminal, and tells where a document is."""
    daemon.hook(status(tmp_path / "none.jsonl"), "statusline")
    (tmp_path / "notes.md").write_text("Go on.")
    daemon.command("handoff", str(tmp_path / "notes.md"), "--session", SESSION)
    words = ("handoff", "--list", "--session", SESSION)
    shown = daemon.command(*words, COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(cells, shown)) <= columns
    assert shown[-1].endswith("notes.md")
