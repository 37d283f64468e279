"""`brimline here`: the session that a process belongs to, with real processes and a daemon."""

import json
import sys
from pathlib import Path

import pytest

from brimline.context.short_status import ShortStatus
from server.filled_session import write_filled_session
from server.running import Running

from .terminal import User

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
LINE = "35K of 200K (17.7%), 21.2% of the limit 167K"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems hide environments")


def start(daemon: Running, session: str, source: str = "startup", **env: str) -> None:
    """Report a session's start by the real hook client: its parent is this process."""
    path = write_filled_session(daemon.home, session)
    hook = {
        "session_id": session,
        "hook_event_name": "SessionStart",
        "source": source,
        "transcript_path": str(path),
        "cwd": "/project",
    }
    daemon.client(hook, "hook", **env)
    daemon.until("/v1/sessions", lambda views: session in str(views))


def here(daemon: Running, *words: str, **env: str) -> str:
    done = daemon.command("here", *words, **env)
    return done.stdout + done.stderr


def session_here(daemon: Running, **env: str) -> str:
    return json.loads(daemon.command("here", "--json", **env).stdout)["session"]


def test_session_is_that_of_the_process_above(daemon: Running) -> None:
    start(daemon, FIRST)
    assert here(daemon).startswith(LINE)
    assert here(daemon, "--short") == "17.7% 35K/200K\n"
    assert here(daemon, "--format", "{agent} {limit} {state}") == "claude 167K measured\n"


def test_status_has_less_than_40_tokens() -> None:
    longest = ShortStatus(
        agent="claude",
        session=FIRST,
        state="measured",
        sent=988_000,
        window=1_000_000,
        limit=987_000,
        percent=98.8,
        percent_raw=98.8,
        percent_of_limit=100.1,
        calls_left=123,
        handoff="old",
        is_near_limit=True,
    )
    assert longest.text.endswith("about 123 calls left: save a handoff now")
    assert len(longest.text) / 3 < 40


def test_session_after_a_clear_is_the_new_one(daemon: Running) -> None:
    """Also for a process that was started with the id of the old one, such as an MCP server."""
    start(daemon, FIRST)
    start(daemon, SECOND, source="clear")
    assert session_here(daemon) == SECOND
    assert session_here(daemon, CLAUDE_CODE_SESSION_ID=FIRST) == SECOND


def test_session_is_known_after_a_restart_of_the_daemon_before_its_next_hook(
    daemon: Running,
) -> None:
    """The environment of what was started before the clear names the old session."""
    start(daemon, FIRST)
    start(daemon, SECOND, source="clear")
    daemon.stop()
    daemon.start()
    assert session_here(daemon, CLAUDE_CODE_SESSION_ID=FIRST) == SECOND


def test_two_sessions_of_a_process_are_an_error_unless_the_environment_names_one(
    daemon: Running,
) -> None:
    start(daemon, FIRST)
    start(daemon, SECOND)
    refused = daemon.command("here")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("brimline: this may be any of 2 sessions: ")
    assert FIRST in refused.stderr
    assert SECOND in refused.stderr
    assert session_here(daemon, CLAUDE_CODE_SESSION_ID=FIRST) == FIRST


@LINUX
def test_agent_without_hooks_inside_another_is_not_taken_for_that(daemon: Running) -> None:
    start(daemon, FIRST)
    write_filled_session(daemon.home, SECOND)
    daemon.until("/v1/sessions", lambda views: len(views) == 2)
    assert session_here(daemon, CLAUDE_CODE_SESSION_ID=SECOND) == SECOND


def test_ended_session_is_not_found(daemon: Running) -> None:
    start(daemon, FIRST)
    daemon.client({"session_id": FIRST, "hook_event_name": "SessionEnd", "reason": "other"})
    assert here(daemon).startswith("brimline: no session found here\n")


def test_session_of_the_pane_is_found_from_the_status_bar(daemon: Running) -> None:
    """Tmux runs the command itself, so that no process above it is an agent's."""
    pane = {"TMUX": "/tmp/tmux/default,1,0", "TMUX_PANE": "%3"}
    path = write_filled_session(daemon.home, FIRST)
    hook = {"session_id": FIRST, "hook_event_name": "UserPromptSubmit",
            "transcript_path": str(path)}  # fmt: skip
    daemon.hook(hook)  # its process is not above the command's
    assert "no session found" in here(daemon, **pane)
    body = json.dumps(hook | {"hook_event_name": "SessionStart"}).encode()
    daemon.ask(body, env=pane, pid=2)
    assert session_here(daemon, **pane) == FIRST
    assert "no session found" in here(daemon, **pane | {"TMUX_PANE": "%4"})


def test_other_session_can_be_read(daemon: Running) -> None:
    write_filled_session(daemon.home, FIRST)
    daemon.until("/v1/sessions", bool)
    assert here(daemon, FIRST[:8]).startswith(LINE)


def test_unknown_field_is_refused_with_the_known_ones(daemon: Running) -> None:
    start(daemon, FIRST)
    refused = daemon.command("here", "--format", "{percentage}")
    assert refused.returncode == 2
    assert "unknown field {percentage}" in refused.stderr
    assert "{percent}, {sent}" in refused.stderr


def test_files_answer_without_a_daemon(user: User) -> None:
    write_filled_session(user.home, FIRST)
    user.env["CLAUDE_CONFIG_DIR"] = str(user.home / ".claude")
    done = user.run("here", CLAUDE_CODE_SESSION_ID=FIRST)
    assert (done.code, done.out[: len(LINE)]) == (0, LINE), done.err


def test_files_find_the_one_session_of_a_folder(user: User) -> None:
    """Two are ambiguous."""
    path = write_filled_session(user.home, FIRST)
    path.write_text(path.read_text().replace('"/project"', json.dumps(str(user.cwd))))
    user.env["CLAUDE_CONFIG_DIR"] = str(user.home / ".claude")
    done = user.run("here", "--json")
    assert json.loads(done.out)["session"] == FIRST, done.err
    other = path.with_name(f"{SECOND}.jsonl")
    other.write_text(path.read_text().replace(FIRST, SECOND))
    done = user.run("here")
    assert (done.code, "any of 2 sessions" in done.err) == (2, True)


@pytest.mark.parametrize("template", ["{percent} {sent}/{window}", "{limit}"])
def test_hook_client_prints_the_status(daemon: Running, template: str) -> None:
    start(daemon, FIRST)
    expected = here(daemon, "--format", template)
    assert daemon.ask_here(template) == expected


def test_hook_client_prints_nothing_without_a_session_or_a_daemon(daemon: Running) -> None:
    assert daemon.ask_here("{percent}") == ""
    daemon.stop()
    assert daemon.ask_here("{percent}") == ""
    assert not Path(daemon.state / "spool").exists()
