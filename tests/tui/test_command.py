"""`brimline watch` as people type it: a frame, JSON, and what it does not import."""

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
    """A user with two sessions, and a state folder of their own."""
    made = User(tmp_path)
    made.env["BRIMLINE_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))
    made.session("s1", made.call("m1", 54_000, 120))
    made.session("s2", made.call("n1", 150_000, 60, sessionId="s2", cwd="/srv/other"))
    return made


def fresh(user: User, id: str, sent: int) -> Json:
    """A session with a recent event."""
    return view(id, sent, main={"at": user.now}, seen_at=user.now)


AT_80 = """\
no daemon, read from transcripts  2 sessions
  agent    project                         model          state      unread  age
  claude   /srv/other                      sonnet-4-5                     ?   1m
  █████████████╎██╎██▌░┃░░░░   75.0% medium   150K/200K  limit 90% handoff ?
  claude   ~/project                       sonnet-4-5                     ?   2m
  ███████░░░░░░╎░░╎░░░░┃░░░░   27.0% low       54K/200K  limit 32% handoff ?
"""


def test_once_prints_a_frame_from_transcripts(user: User) -> None:
    """Without a daemon the frame is from the transcripts, and says so."""
    assert user.run("watch", "--once", COLUMNS="80") == (0, AT_80, "")


def test_pipe_gets_one_frame(user: User) -> None:
    """Where there is no terminal, there is one frame, and it ends."""
    assert user.run("watch", COLUMNS="80").out == AT_80


def test_frame_has_colours_on_request(user: User) -> None:
    """`--colour always` colours the frame."""
    done = user.run("watch", "--once", "--colour", "always")
    assert "\x1b[33m" in done.out


def test_frame_of_a_daemon_matches_its_api(user: User) -> None:
    """With a daemon the frame has its sessions, fullest first; --files reads the transcripts."""
    with serving(Path(user.env["BRIMLINE_STATE_DIR"]) / "http.sock") as daemon:
        daemon.put(fresh(user, "low", 20_000), fresh(user, "high", 190_000))
        done = user.run("watch", "--once")
        assert done.lines[0] == "live  2 sessions"
        assert done.out.index("high") < done.out.index("low")
        told = user.run("watch", "--once", "--json").json
        assert [one["session"]["id"] for one in told] == ["high", "low"]
        assert told[0]["threads"][0]["percent"] == 95.0
        assert "/srv/other" in user.run("watch", "--once", "--files").out


def test_json_has_null_for_unknown(user: User) -> None:
    """The JSON has the API's shape; fields that transcripts lack are null."""
    told = user.run("watch", "--once", "--json").json
    assert [one["session"]["id"] for one in told] == ["s2", "s1"]
    main = told[0]["threads"][0]
    assert (main["sent"], main["percent"], main["calls"]) == (150_000, 75.0, None)
    assert (told[0]["unread"], told[0]["handoff"]) == (None, None)


def test_narrow_terminal_gets_the_minimum_width(user: User) -> None:
    """A frame has at least the minimum width."""
    shown = user.run("watch", "--once", COLUMNS="20").lines
    assert max(len(line) for line in shown[1:]) <= 60
    assert "75.0% medium" in "".join(shown)


def test_agent_option_hides_other_agents(user: User) -> None:
    """--agent narrows; one that we do not know is refused."""
    shown = user.run("watch", "--once", "--agent", "codex").lines
    assert shown[:2] == ["no daemon, read from transcripts  0 sessions", "  No sessions yet."]
    assert any("`brimline setup`" in line for line in shown)
    done = user.run("watch", "--once", "--agent", "vim")
    assert (done.code, done.out) == (2, "")


def test_old_sessions_need_all(user: User) -> None:
    """--since and --all reach further back."""
    user.session("s3", user.call("o1", 9_000, 90_000, sessionId="s3"), age=90_000)
    assert len(user.run("watch", "--once", "--json").json) == 2
    assert len(user.run("watch", "--once", "--json", "--since", "2d").json) == 3
    assert len(user.run("watch", "--once", "--json", "--all").json) == 3


def imported(user: User, *words: str) -> str:
    """All modules that a command imports, by Python's own account."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "brimline", *words],
        capture_output=True, text=True, cwd=user.cwd, env=user.env, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    return done.stderr


def test_frame_does_not_import_textual(user: User) -> None:
    """A frame needs no Textual, and other commands nothing of `watch`."""
    frame = imported(user, "watch", "--once")
    assert "brimline.tui.rows" in frame
    for name in ("textual", " rich", " asyncio"):
        assert name not in frame
    assert "brimline.tui" not in imported(user, "status")


def test_terminal_is_restored_on_exit(user: User) -> None:
    """An interrupt from outside ends it cleanly: the other screen is left, the cursor shown."""
    done = user.on_terminal("watch", columns=80, interrupt="other")
    assert done.code == 0
    assert "Traceback" not in done.out
    assert done.out.rindex("\x1b[?1049l") > done.out.rindex("\x1b[?1049h")
    assert done.out.rindex("\x1b[?25h") > done.out.rindex("\x1b[?25l")


def test_frame_of_a_real_daemon(user: User, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The frame has the session that a real daemon knows."""
    daemon = Running(tmp_path_factory.mktemp("d"))
    daemon.start()
    try:
        path = user.projects / "-p" / "s2.jsonl"
        start = {"session_id": "s2", "transcript_path": str(path), "cwd": "/srv/other"}
        daemon.hook({**start, "hook_event_name": "SessionStart", "source": "startup"})
        daemon.hook({**start, "hook_event_name": "UserPromptSubmit", "prompt": "go on"})
        daemon.until("/v1/sessions", lambda told: told and told[0]["threads"])
        done = daemon.command("watch", "--once", COLUMNS="80")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("live  1 session\n")
        assert "75.0% medium   150K/200K" in done.stdout
    finally:
        daemon.close()
