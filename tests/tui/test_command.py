"""`brimline watch`: a frame, JSON, and its imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli.terminal import PATIENCE_S, User
from server.running import Running

from .daemon import serving
from .sample_views import Json, view


@pytest.fixture
def user(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    """A user with two sessions and their own state folder."""
    filled = User(tmp_path)
    filled.env["BRIMLINE_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))
    filled.session("s1", filled.call("m1", 54_000, 120))
    filled.session("s2", filled.call("n1", 150_000, 60, sessionId="s2", cwd="/srv/other"))
    return filled


def fresh(user: User, id: str, sent: int) -> Json:
    return view(id, sent, main={"at": user.now}, seen_at=user.now)


AT_80 = """\
no daemon, read from transcripts  2 sessions
  session                 project        agent    model          state       age
  other                   /srv/other     claude   sonnet-4-5                  1m
  ██████████╎██╎█▊░┃░░░   75.0% high     150K/200K  of limit 89.8% handoff ?
  At 89.8% of its limit: have it write down where it stands.

  project                 ~/project      claude   sonnet-4-5                  2m
  █████▋░░░░╎░░╎░░░┃░░░   27.0% low       54K/200K  of limit 32.3% handoff ?
"""


def test_once_prints_a_frame_from_transcripts(user: User) -> None:
    assert user.run("watch", "--once", COLUMNS="80") == (0, AT_80, "")


def test_pipe_gets_one_frame(user: User) -> None:
    assert user.run("watch", COLUMNS="80").out == AT_80


def test_frame_has_colours_on_request(user: User) -> None:
    completed = user.run("watch", "--once", "--colour", "always")
    assert "\x1b[31m" in completed.out


def test_frame_of_a_daemon_matches_its_api(user: User) -> None:
    """--files reads the transcripts instead."""
    with serving(Path(user.env["BRIMLINE_STATE_DIR"]) / "http.sock") as daemon:
        daemon.put(fresh(user, "low", 20_000), fresh(user, "high", 190_000))
        completed = user.run("watch", "--once")
        assert completed.lines[0] == "live  2 sessions"
        assert completed.out.index("high") < completed.out.index("low")
        views = user.run("watch", "--once", "--json").json
        assert [view_["session"]["id"] for view_ in views] == ["high", "low"]
        assert views[0]["threads"][0]["percent"] == 95.0
        assert "/srv/other" in user.run("watch", "--once", "--files").out


def test_json_has_null_for_unknown(user: User) -> None:
    views = user.run("watch", "--once", "--json").json
    assert [row["session"]["id"] for row in views] == ["s2", "s1"]
    main = views[0]["threads"][0]
    assert (main["sent"], main["percent"], main["calls"]) == (150_000, 75.0, None)
    assert (views[0]["unread"], views[0]["handoff"]) == (None, None)


def test_narrow_terminal_gets_the_minimum_width(user: User) -> None:
    lines = user.run("watch", "--once", COLUMNS="20").lines
    assert max(len(line) for line in lines[1:]) <= 40
    assert "75.0% 150K/200K" in "".join(lines)


def test_agent_option_hides_other_agents_and_refuses_unknown_ones(user: User) -> None:
    lines = user.run("watch", "--once", "--agent", "codex").lines
    assert lines[:2] == ["no daemon, read from transcripts  0 sessions", "  No sessions yet."]
    assert any("`brimline setup`" in line for line in lines)
    completed = user.run("watch", "--once", "--agent", "vim")
    assert (completed.code, completed.out) == (2, "")


def test_old_sessions_need_all(user: User) -> None:
    user.session("s3", user.call("o1", 9_000, 90_000, sessionId="s3"), age=90_000)
    assert len(user.run("watch", "--once", "--json").json) == 2
    assert len(user.run("watch", "--once", "--json", "--since", "2d").json) == 3
    assert len(user.run("watch", "--once", "--json", "--all").json) == 3


def imported(user: User, *words: str) -> str:
    """The modules that a command imports."""
    completed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "brimline", *words],
        capture_output=True, text=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    return completed.stderr


def test_frame_does_not_import_textual(user: User) -> None:
    frame = imported(user, "watch", "--once")
    assert "brimline.tui.rows" in frame
    for name in ("textual", " rich", " asyncio"):
        assert name not in frame
    assert "brimline.tui" not in imported(user, "status")


def test_terminal_is_restored_after_an_interrupt(user: User) -> None:
    completed = user.on_terminal("watch", columns=80, interrupt="other")
    assert completed.code == 0
    assert "Traceback" not in completed.out
    assert completed.out.rindex("\x1b[?1049l") > completed.out.rindex("\x1b[?1049h")
    assert completed.out.rindex("\x1b[?25h") > completed.out.rindex("\x1b[?25l")


def test_frame_of_a_real_daemon(user: User, tmp_path_factory: pytest.TempPathFactory) -> None:
    daemon = Running(tmp_path_factory.mktemp("d"))
    daemon.start()
    try:
        path = user.projects / "-p" / "s2.jsonl"
        start = {"session_id": "s2", "transcript_path": str(path), "cwd": "/srv/other"}
        daemon.hook({**start, "hook_event_name": "SessionStart", "source": "startup"})
        daemon.hook({**start, "hook_event_name": "UserPromptSubmit", "prompt": "go on"})
        daemon.until("/v1/sessions", lambda views: views and views[0]["threads"])
        completed = daemon.command("watch", "--once", COLUMNS="80")
        assert (completed.returncode, completed.stderr) == (0, "")
        assert completed.stdout.startswith("live  1 session\n")
        assert "75.0% high     150K/200K" in completed.stdout
    finally:
        daemon.close()
