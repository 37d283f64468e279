"""`brimline handoff`: drafted without a daemon, kept by it, shown with what happened since."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.channels.intents import Intent, keep
from brimline.monitor.heard import Pane
from channels.terminal import Terminal
from server.running import Running

from .terminal import Json, User, iso

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
    assert "which session?" in user.run("handoff", "--draft").err


@pytest.mark.parametrize("words", [("--clear",), ("--spawn",)])
def test_which_document(user: User, words: tuple[str, ...]) -> None:
    """What goes on from a document needs one."""
    done = user.run("handoff", *words, "--session", "s1")
    assert (done.code, "which document?" in done.err) == (2, True)


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
        (("waiting", None, None), "to be cleared when the turn ends, asked for 5m ago (/n.md)"),
        (("clearing", None, None), "is being cleared (/n.md)"),
        (("failed", None, "it is at work"), "not cleared, 5m ago: it is at work (/n.md)"),
        (
            ("done", "22222222-x", None),
            "cleared 5m ago, and goes on from /n.md as session 22222222",
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
    keep(daemon.state, Intent(SESSION, "claude", pane, "/n.md", ago, step, ago, after, why))
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
    """On a terminal outside of tmux the client takes the place of the command."""
    (user.cwd / "notes.md").write_text("Go on.")
    path = f"{stand_in(tmp_path / 'bin')}:{os.environ['PATH']}"
    program = tmp_path / "bin" / "claude"
    program.write_text(program.read_text().replace("sleep 600\n", ""))
    done = user.on_terminal("handoff", "notes.md", "--spawn", "--agent", "claude", PATH=path)
    assert done.out == f"{user.cwd}|Read {user.cwd / 'notes.md'} {PROMPT}|"


def test_spawn_without_a_terminal(user: User) -> None:
    """Where there is no terminal the user is told what to type."""
    (user.cwd / "notes.md").write_text("Go on.")
    done = user.run("handoff", "notes.md", "--spawn", "--agent", "gemini")
    assert done.code == 2
    assert f"cd {user.cwd} && gemini --prompt-interactive 'Read {user.cwd}/notes.md" in done.err
    assert "which agent?" in user.run("handoff", "notes.md", "--spawn").err
    bad = user.run("handoff", "nothing.md", "--spawn", "--agent", "gemini")
    assert "cannot take" in bad.err
