"""The daemon: one per user, its socket, its API, its shutdown, and recovery after a kill."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.hook_adapter import RequestKind
from brimline.context.inbox import DELIVERY_LEASE_S
from brimline.hooks.client.autostart import LOG_NAME
from brimline.monitor.hook_reply import SENT_AGAIN
from reserved_port import ReservedPort

from .running import MAX_WAIT_S, Running

pytestmark = pytest.mark.slow

SESSION = "11111111-1111-4111-8111-111111111111"


def status_input(sent: int | None, window: int = 200_000) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": (sent or 10) - 10,
    }
    return {
        "session_id": SESSION,
        "cwd": "/project",
        "version": "2.1.325",
        "model": {"id": "claude-sonnet-4-5"},
        "context_window": {
            "context_window_size": window,
            "current_usage": None if sent is None else usage,
            "used_percentage": 1_794_714_107,
        },
    }


def hook_input(event: str, **more: Any) -> dict[str, Any]:
    return {"session_id": SESSION, "hook_event_name": event, "cwd": "/project", **more}


def stop_and_read_log(daemon: Running, by: signal.Signals = signal.SIGTERM) -> str:
    """Stop the daemon by a signal and return all its output."""
    assert daemon.process is not None
    daemon.process.send_signal(by)
    assert daemon.process.stdout is not None
    text = daemon.process.stdout.read()  # `communicate` loses what earlier reads have buffered
    assert daemon.wait_for_exit() == 0
    return text


def test_status_line_respects_no_color_and_columns(daemon: Running) -> None:
    assert "\x1b[33m" in daemon.hook(status_input(110_000), "statusline", TERM="xterm")
    short = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", COLUMNS="24")
    assert short == "45.0%* 90K/200K window\n"


def test_limit_follows_the_environment_of_the_client(daemon: Running) -> None:
    lower = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", **lower)
    assert "27K to compaction" in line
    assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["limit"] == 117_000


def test_limit_follows_the_last_environment_of_the_client(daemon: Running) -> None:
    """A posted hook has no environment."""

    def limit() -> int:
        return daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["limit"]

    daemon.hook(status_input(90_000), "statusline", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    daemon.post("/hooks/claude", hook_input("Stop"))
    assert limit() == 117_000
    daemon.hook(status_input(91_000), "statusline")
    assert limit() == 167_000
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", DISABLE_COMPACT="1")
    assert "110K to window's end, auto-compaction off" in line


def test_limit_follows_the_configuration_folder_of_the_client(daemon: Running) -> None:
    (daemon.folder / "settings.json").write_text('{"autoCompactWindow": 150000}')
    there = {"CLAUDE_CONFIG_DIR": str(daemon.folder)}
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", **there)
    assert "27K to compaction" in line


def test_user_status_line_gets_the_same_input_and_stands_above_ours(daemon: Running) -> None:
    settings = daemon.home / ".claude/settings.json"
    settings.parent.mkdir()
    # A second run may be at work when the first one's output is shown.
    own = "cat > seen.tmp && mv seen.tmp seen.json; echo mine"
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": own}}))
    assert daemon.command("setup", "claude").returncode == 0
    line_input = {**status_input(90_000), "cwd": str(daemon.folder)}
    end = time.monotonic() + MAX_WAIT_S
    while len(lines := daemon.hook(line_input, "statusline", NO_COLOR="1").splitlines()) < 2:
        assert time.monotonic() < end
    assert lines[0] == "mine"
    assert "45.0%* 90K/200K" in lines[1]
    assert json.loads((daemon.folder / "seen.json").read_text()) == line_input


def test_posted_hook_gets_the_same_reply(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    reply = daemon.post("/hooks/claude?by=brimline", hook_input("UserPromptSubmit"))
    assert "60%" in reply["hookSpecificOutput"]["additionalContext"]
    assert daemon.post("/hooks/claude", hook_input("UserPromptSubmit")) == {}


def test_message_for_a_disconnected_posted_hook_goes_to_the_next(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    body = json.dumps(hook_input("UserPromptSubmit")).encode()
    head = f"POST /hooks/claude HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
    head += f"Authorization: Bearer {daemon.secret}\r\n"
    with socket.create_connection(("127.0.0.1", daemon.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    daemon.until(
        f"/v1/sessions/{SESSION}/messages",
        lambda messages: messages[0]["handed_at"] and messages[0]["state"] == "queued",
    )
    reply = daemon.post("/hooks/claude", hook_input("UserPromptSubmit"))
    assert "60%" in reply["hookSpecificOutput"]["additionalContext"]


def test_level_reached_by_the_status_line_comes_once_with_the_next_prompt(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    reply = json.loads(daemon.hook(hook_input("UserPromptSubmit")))
    specific = reply["hookSpecificOutput"]
    assert specific["hookEventName"] == "UserPromptSubmit"
    assert "at 60%" in specific["additionalContext"]
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def call_record(sent: int) -> bytes:
    usage = {"input_tokens": sent, "output_tokens": 5}
    message = {"id": f"msg_{sent}", "model": "claude-sonnet-4-5", "usage": usage}
    when = {"timestamp": "2026-11-15T10:00:00.000Z", "version": "2.1.325"}
    record = {"type": "assistant", "sessionId": SESSION, **when, "message": message}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def test_call_in_the_transcript_of_a_hook_is_read_and_stored(daemon: Running) -> None:
    transcript = daemon.folder / "t.jsonl"
    hook = hook_input("PostToolBatch", transcript_path=str(transcript))

    def add_call(sent: int) -> str:
        with transcript.open("ab") as file:
            file.write(call_record(sent))
        return daemon.hook(hook)

    assert [add_call(sent) for sent in (60_000, 61_000, 62_000)] == ["", "", ""]
    path = f"/v1/sessions/{SESSION}"
    daemon.until(path, lambda view: view["threads"][0]["sent"] == 62_000)
    assert "at 70%" in add_call(140_000)
    assert add_call(141_000) == ""
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.get(path)["threads"][0]["sent"] == 141_000


def test_level_does_not_keep_a_turn_from_ending(daemon: Running) -> None:
    """It comes with the next tool result."""
    daemon.hook(status_input(150_000), "statusline")
    assert daemon.hook(hook_input("Stop", stop_hook_active=False)) == ""
    reply = json.loads(daemon.hook(hook_input("PostToolBatch")))
    assert "75%" in reply["hookSpecificOutput"]["additionalContext"]


def test_sent_message_reaches_the_next_tool_result(daemon: Running) -> None:
    result = daemon.command("send", SESSION, "Look at the tests.", "--urgent")
    assert result.returncode == 0, result.stderr
    reply = json.loads(daemon.hook(hook_input("PostToolBatch")))
    context = reply["hookSpecificOutput"]["additionalContext"]
    assert context == "[message from user] Look at the tests."
    shown = daemon.command("inbox", SESSION)
    assert "delivered" in shown.stdout
    assert "Look at the tests." in shown.stdout


def test_messages_for_a_cleared_session_reach_its_successor(daemon: Running) -> None:
    """Both pending messages and later ones."""
    fresh = "22222222-2222-4222-8222-222222222222"

    def run_hook(event: str, session: str = fresh, **more: str) -> str:
        return daemon.client({**hook_input(event, **more), "session_id": session})

    run_hook("SessionStart", SESSION, source="startup")
    assert daemon.command("send", SESSION, "Before.").returncode == 0
    run_hook("SessionEnd", SESSION, reason="clear")
    run_hook("SessionStart", source="clear")
    assert "Before." in run_hook("UserPromptSubmit")
    row = daemon.get(f"/v1/sessions/{SESSION}")["session"]
    assert (row["became"], row["ended_at"] is not None) == (fresh, True)
    sent = daemon.command("send", SESSION, "After.")
    assert f"it was cleared and continues as {fresh}: delivered there" in sent.stdout
    daemon.until(f"/v1/sessions/{fresh}/messages", lambda messages: len(messages) == 2)
    assert "After." in run_hook("UserPromptSubmit")
    run_hook("SessionStart", SESSION, source="resume")
    run_hook("SessionEnd", SESSION, reason="other")
    row = daemon.get(f"/v1/sessions/{SESSION}")["session"]
    assert (row["became"], row["ended_at"] is not None) == (None, True)
    assert "it has ended" in daemon.command("send", SESSION, "Its own.").stdout


def test_sender_is_warned_that_the_session_has_ended(daemon: Running) -> None:
    daemon.hook(hook_input("UserPromptSubmit"))
    assert "ended" not in daemon.command("send", SESSION, "Now.").stdout
    daemon.hook(hook_input("SessionEnd"))
    output = daemon.command("send", SESSION, "Later.").stdout
    assert "it has ended: the message is kept for 24 hours in case it is resumed" in output


def test_messages_follow_a_clear_that_was_spooled(daemon: Running) -> None:
    daemon.client(hook_input("SessionStart", source="startup"))
    assert daemon.command("send", SESSION, "Before.").returncode == 0
    daemon.kill()
    daemon.client(hook_input("SessionEnd", reason="clear"))
    daemon.client({**hook_input("SessionStart", source="clear"), "session_id": "fresh"})
    daemon.start()
    daemon.until("/v1/sessions/fresh/messages", lambda messages: len(messages) == 1)


def test_session_can_be_named_by_an_unambiguous_prefix(daemon: Running, tmp_path: Path) -> None:
    daemon.hook(hook_input("UserPromptSubmit"))
    daemon.hook({**hook_input("UserPromptSubmit"), "session_id": "22222222-a"})
    daemon.hook({**hook_input("UserPromptSubmit"), "session_id": "22222222-b"})
    assert f"queued for {SESSION}:" in daemon.command("send", SESSION[:8], "short").stdout
    assert "short" in daemon.command("inbox", "1").stdout
    document = tmp_path / "handoff.md"
    document.write_text("# Next\n")
    handed_over = daemon.command("handoff", str(document), "--session", SESSION[:8])
    assert handed_over.returncode == 0, handed_over.stderr
    assert "handoff.md" in daemon.command("handoff", "--list", "--session", "111").stdout
    twice = daemon.command("send", "2222", "to whom?")
    assert twice.returncode == 2
    assert "more than one session matches '2222'" in twice.stderr
    listed = [line.split() for line in twice.stderr.splitlines()[1:3]]
    assert sorted(line[0] for line in listed) == ["22222222-a", "22222222-b"]
    missing = daemon.command("inbox", "22222223").stdout
    assert missing.startswith("no messages: unknown session; did you mean 22222222-")


def test_session_can_be_named_by_its_title_or_left_out_inside_an_agent(
    daemon: Running, tmp_path: Path
) -> None:
    transcript = tmp_path / f"{SESSION}.jsonl"
    message = {"role": "user", "content": "Fix the login"}
    record = {"type": "user", "sessionId": SESSION, "cwd": "/p", "message": message}
    transcript.write_text(json.dumps(record) + "\n")
    daemon.hook({**hook_input("UserPromptSubmit"), "transcript_path": str(transcript)})
    assert f"queued for {SESSION}:" in daemon.command("send", "login", "by title").stdout
    own = daemon.command("send", "to itself", CLAUDE_CODE_SESSION_ID=SESSION)
    assert f"queued for {SESSION}:" in own.stdout
    listed = daemon.command("inbox", "fix login").stdout
    assert "by title" in listed
    assert "to itself" in listed
    assert "no session given" in daemon.command("send", "to whom?").stderr


def test_message_for_an_unknown_session_is_queued_with_a_note(daemon: Running) -> None:
    result = daemon.command("send", "a b/c", "welcome")
    assert result.returncode == 0, result.stderr
    assert "unknown session" in result.stdout
    assert "24 hours" in result.stdout
    assert "welcome" in daemon.command("inbox", "a b/c").stdout
    assert daemon.command("inbox", "nobody").stdout == "no messages: unknown session\n"


def test_handoff_by_the_command_comes_back_after_a_compaction(
    daemon: Running, tmp_path: Path
) -> None:
    path = tmp_path / "handoff.md"
    path.write_text("The parser is half done; see src/parse.py.")
    daemon.hook(status_input(120_000), "statusline")
    result = daemon.command("handoff", str(path), CLAUDE_CODE_SESSION_ID=SESSION)
    assert result.returncode == 0, result.stderr
    path.unlink()
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    reply = json.loads(daemon.hook(hook_input("SessionStart", source="compact")))
    assert "The parser is half done" in reply["hookSpecificOutput"]["additionalContext"]
    assert reply["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "The parser is half done" in daemon.command("handoff", "--session", SESSION).stdout


def test_unreadable_handoff_exits_with_2_and_the_reason(daemon: Running, tmp_path: Path) -> None:
    result = daemon.command("handoff", str(tmp_path / "nothing.md"), "--session", SESSION)
    assert result.returncode == 2
    assert "nothing.md" in result.stderr


@pytest.mark.parametrize("text", ["", "garbage", "[1]", '{"session_id": 5}', "{" * 1_000])
@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_invalid_hook_input_is_counted_and_gets_no_reply(
    daemon: Running, text: str, kind: RequestKind
) -> None:
    assert daemon.ask(text.encode(), kind) == ""
    assert daemon.get("/v1/daemon")["malformed"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b'{"session_id": "s", "hook_event_name": "Stop", "cwd": "/caf\xe9"}',
        b'{"session_id": "s", "hook_event_name": "Stop", "deep": ' + b"[" * 100_000,
        b'{"session_id": "s", "hook_event_name": "Stop", "transcript_path": "/a\xff"}',
    ],
    ids=["no UTF-8", "nested without an end", "no UTF-8 in a path"],
)
def test_invalid_utf8_and_endless_nesting_are_counted_without_a_traceback(
    daemon: Running, body: bytes
) -> None:
    known = json.dumps(hook_input("Stop", session_id="s")).encode()
    assert daemon.ask(known) == ""
    assert daemon.ask(body) == ""
    status, _ = daemon.refused(f"/v1/sessions/{SESSION}/messages", b'{"text": ' + body)
    assert status == 422
    assert daemon.get("/v1/daemon")["malformed"] == 1
    assert "Traceback" not in stop_and_read_log(daemon)


def test_late_hook_input_is_counted_apart_and_reported(daemon: Running) -> None:
    with subprocess.Popen(daemon.hook_command("hook"), stdin=subprocess.PIPE) as late:
        assert late.wait(MAX_WAIT_S) == 0
    status = daemon.until("/v1/daemon", lambda status: status["late"])
    assert (status["late"], status["malformed"], status["heard"]) == (1, 0, 0)
    counts = "0 malformed, 0 dropped, 1 came late"
    assert counts in daemon.command("serve", "--status").stdout
    assert counts in daemon.command("doctor").stdout
    assert "brimline_hooks_late_total 1\n" in daemon.get_text("/metrics")[1]


def test_message_of_a_hook_that_died_goes_to_the_next_and_is_marked_so(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    prompt = json.dumps(hook_input("UserPromptSubmit")).encode()
    first = daemon.ask(prompt, passed_on=False)
    assert "60%" in first
    now = time.time()
    daemon.until(
        f"/v1/sessions/{SESSION}/messages",
        lambda messages: messages[0]["handed_at"] <= now - DELIVERY_LEASE_S,
    )
    again = daemon.ask(prompt)
    assert SENT_AGAIN in again  # it may have printed the message
    assert again.replace(json.dumps(f"{SENT_AGAIN}\n")[1:-1], "") == first
    assert daemon.ask(prompt) == ""


def test_hook_of_a_subagent_gets_no_message_of_the_session(daemon: Running) -> None:
    daemon.hook(status_input(150_000), "statusline")
    assert daemon.hook(hook_input("PostToolBatch", agent_id="a1")) == ""
    assert "75%" in daemon.hook(hook_input("PostToolBatch"))


def test_doctor_reports_missing_hooks_and_a_missing_daemon(daemon: Running) -> None:
    (daemon.home / ".claude/projects").mkdir(parents=True)
    report = daemon.command("doctor")
    assert report.returncode == 0, "hooks are optional"
    assert "`brimline setup claude` installs them." in report.stdout
    assert "sessions       none yet" in report.stdout
    daemon.command("setup", "claude")
    daemon.hook(status_input(90_000), "statusline")
    report = daemon.command("doctor", "--json")
    checks = {check["about"]: check for check in json.loads(report.stdout)}
    assert report.returncode == 0, report.stdout
    assert checks["sessions"]["told"].startswith("1 session, the last")
    daemon.stop()
    report = daemon.command("doctor")
    assert (report.returncode, "\n--  daemon" in report.stdout) == (0, True)
    assert "`brimline serve --background` starts it." in report.stdout
    daemon.command("setup", "claude", "--no-autostart")
    report = daemon.command("doctor")
    assert (report.returncode, "\n!!  daemon" in report.stdout) == (1, True)


# Its life.


def test_second_daemon_reports_the_first_and_exits(daemon: Running) -> None:
    result = daemon.command("serve", "--port", str(ReservedPort().number))
    assert result.returncode == 0
    assert f"already running at http://127.0.0.1:{daemon.port}" in result.stdout


@pytest.mark.parametrize("port", ["0", "99999", "-1", "http"])
def test_invalid_port_is_rejected(tmp_path: Path, port: str) -> None:
    result = Running(tmp_path).command("serve", f"--port={port}")
    assert result.returncode == 2
    assert "expected a port from 1 to 65535" in result.stderr


def test_port_in_use_is_reported_and_leaves_no_socket(tmp_path: Path) -> None:
    running = Running(tmp_path)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", running.port))
        other.listen()
        result = running.command("serve", "--port", str(running.port))
    assert result.returncode == 2
    assert f"127.0.0.1:{running.port} is in use" in result.stderr
    assert not running.socket.exists()


def test_status_reports_a_running_and_a_stopped_daemon(daemon: Running) -> None:
    daemon.hook(hook_input("UserPromptSubmit"))
    status = daemon.command("serve", "--status")
    assert "1 hooks and status lines received" in status.stdout
    assert json.loads(daemon.command("serve", "--status", "--json").stdout)["running"] is True
    assert daemon.command("serve", "--stop").stdout == "stopped\n"
    assert daemon.process is not None
    assert daemon.process.wait(20) == 0
    assert daemon.command("serve", "--status").returncode == 3
    assert not daemon.socket.exists()


def test_signal_ends_the_daemon_with_0_and_no_socket(daemon: Running) -> None:
    assert daemon.stop() == 0
    assert not daemon.socket.exists()


@pytest.mark.parametrize("place", ["/proc/nowhere/state", "/dev/null"])
def test_impossible_state_folder_is_reported_with_a_hint(tmp_path: Path, place: str) -> None:
    result = Running(tmp_path).command("serve", "--port", "any", BRIMLINE_STATE_DIR=place)
    assert result.returncode == 2
    assert result.stderr.startswith(f"brimline: {place}: ")
    assert "set BRIMLINE_STATE_DIR" in result.stderr
    assert "Traceback" not in result.stderr


def test_state_folder_that_others_can_replace_is_rejected_with_a_hint(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    place = str(shared / "state")
    for words in (("serve", "--port", "any"), ("serve", "--background")):
        result = Running(tmp_path).command(*words, BRIMLINE_STATE_DIR=place)
        assert result.returncode == 2
        assert result.stderr.startswith(f"brimline: {place} is not safe to use: other users can")
        assert f"`chmod go-w {shared}`" in result.stderr
    assert not (shared / "state").exists()


def test_write_permission_of_others_on_the_state_folder_is_removed(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.state.mkdir()
    running.state.chmod(0o777)
    words = ("serve", "--background", "--port", "any")
    result = running.command(*words)
    try:
        assert result.returncode == 0, result.stderr
        assert stat.S_IMODE(running.state.stat().st_mode) == 0o755
        assert f"{running.state}: removed the permissions 022 of other users" in result.stderr
    finally:
        running.command("serve", "--stop")


def test_fifo_in_place_of_the_log_is_rejected_without_waiting(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.state.mkdir(mode=0o700)
    os.mkfifo(running.state / LOG_NAME)
    result = running.command("serve", "--background", "--port", "any")
    assert result.returncode == 2
    assert str(running.state / LOG_NAME) in result.stderr


def test_state_folder_and_its_files_are_private(daemon: Running) -> None:
    assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in daemon.state.iterdir()}
    assert all(mode == 0o600 for mode in modes.values()), modes


def test_restart_after_a_kill_replaces_the_socket_and_repeats_no_level(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    assert "60%" in daemon.hook(hook_input("UserPromptSubmit"))
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start()
    daemon.hook(status_input(121_000), "statusline")
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def test_spooled_events_are_processed_in_order_at_start(daemon: Running) -> None:
    daemon.stop()
    assert "daemon off" in daemon.client(status_input(120_000), "statusline")
    assert daemon.client(hook_input("PreCompact", trigger="auto")) == ""
    assert daemon.client(hook_input("SessionStart", source="compact")) == ""
    daemon.start()
    timeline = daemon.until(
        f"/v1/sessions/{SESSION}/timeline", lambda timeline: timeline["signals"]
    )
    assert [s["kind"] for s in timeline["signals"]] == ["compacting", "compacted"]
    (thread,) = daemon.get(f"/v1/sessions/{SESSION}/context")
    assert (thread["cycle"], thread["state"], thread["sent"]) == (1, "unknown", None)
    assert not (daemon.state / "spool").exists()


# The API.


def test_api_returns_the_session_and_404_for_an_unknown_one(daemon: Running) -> None:
    daemon.hook(status_input(90_000), "statusline")
    (view,) = daemon.get("/v1/sessions")
    assert view["session"]["id"] == SESSION
    assert view["threads"][0]["percent"] == 45.0
    assert daemon.get(f"/v1/sessions/{SESSION}") == view
    assert daemon.get(f"/v1/sessions/{SESSION}/messages") == []
    assert daemon.get(f"/v1/sessions/{SESSION}/handoff") == {"handoffs": []}
    assert daemon.refused("/v1/sessions/nothing")[0] == 404


def test_foreign_host_or_origin_is_refused_on_every_route(daemon: Running) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        for path in ("/healthz", "/v1/sessions", "/hooks/context-usage"):
            assert daemon.refused(path, headers=headers)[0] == 403
    assert daemon.get("/healthz", Origin=f"http://127.0.0.1:{daemon.port}")["status"] == "ok"


def test_invalid_body_is_rejected_with_the_reason(daemon: Running) -> None:
    path = f"/v1/sessions/{SESSION}/messages"
    code, error = daemon.refused(path, json.dumps({"texts": "hi"}).encode())
    assert (code, "text" in error["error"]) == (422, True)
    for body in (b"garbage", b'{"session_id": 5}'):
        assert daemon.refused("/hooks/context-usage", body)[0] == 422


def test_project_settings_do_not_apply_to_the_daemon(daemon: Running) -> None:
    daemon.stop()
    (daemon.folder / ".brimline.toml").write_text('levels = [10]\n[notify]\ncommand = ["x"]\n')
    daemon.start(daemon.folder)
    daemon.hook(status_input(90_000), "statusline")
    assert daemon.get("/v1/sessions")[0]["levels"] == [50.0, 65.0]


def test_unknown_route_and_wrong_method_point_to_the_openapi_document(daemon: Running) -> None:
    code, error = daemon.refused("/nothing")
    assert (code, error["error"]) == (404, "Not Found: GET /nothing")
    assert error["hint"] == "See /openapi.json for all endpoints."
    code, error = daemon.refused("/v1/history", b"{}")
    assert (code, error["error"]) == (405, "Method Not Allowed: POST /v1/history")
    assert error["hint"] == "See /openapi.json for all endpoints."


def test_last_hook_of_each_agent_is_reported(daemon: Running) -> None:
    assert daemon.get("/v1/daemon")["hooks"] == {}
    daemon.post("/v1/events", {"events": []})
    daemon.hook(status_input(90_000), "statusline")
    first = daemon.get("/v1/daemon")["hooks"]["claude"]
    daemon.hook(hook_input("UserPromptSubmit"))
    daemon.hook(hook_input("UserPromptSubmit"))
    assert list(daemon.get("/v1/daemon")["hooks"]) == ["claude"]
    assert daemon.get("/v1/daemon")["hooks"]["claude"] > first


@pytest.mark.parametrize("name", ["hook", "http"])
def test_daemon_without_its_socket_exits_with_a_failure(daemon: Running, name: str) -> None:
    """So that another is started."""
    daemon.socket.with_name(f"{name}.sock").unlink()
    assert daemon.wait_for_exit() == 1
    daemon.start()
    assert daemon.hook(status_input(90_000), "statusline")


def test_daemon_does_not_remove_the_socket_of_another(daemon: Running) -> None:
    daemon.socket.unlink()
    daemon.socket.touch()
    daemon.stop()
    assert daemon.socket.exists()


def test_old_endpoints_work_as_designed(daemon: Running, tmp_path: Path) -> None:
    path = "/hooks/context-usage"
    assert daemon.post(path, {"session_id": "nobody"}) == {"status": "unknown_session"}
    daemon.hook(status_input(90_000), "statusline")
    usage = {"session_id": SESSION, "used_percentage": 60, "total_input_tokens": 120_000,
             "total_output_tokens": 50, "context_window_size": 200_000}  # fmt: skip
    assert daemon.post(path, usage) == {"status": "ok", "used_percentage": 60}
    assert "60%" in daemon.hook(hook_input("UserPromptSubmit"))
    compaction = {"session_id": SESSION, "event": "compaction", "trigger": "auto"}
    assert daemon.post(path, compaction) == {"status": "compaction_logged"}
    complete = {"session_id": SESSION, "event": "compaction_complete"}
    assert daemon.post(path, complete) == {"status": "compaction_complete"}
    daemon.post(path, {**usage, "used_percentage": 55, "total_input_tokens": 110_000})
    assert "55%" in daemon.hook(hook_input("UserPromptSubmit"))
    document = tmp_path / "handoff.md"
    document.write_text("Go on.")
    daemon.hand_over(SESSION, document)
    view = daemon.get(f"/sessions/{SESSION}")
    assert (view["last_handoff_path"], view["tokens_used"]) == (str(document), 110_000)
    assert daemon.get("/sessions") == [view]
    daemon.hook({**hook_input("SessionEnd"), "reason": "other"})
    assert daemon.get("/sessions") == []


def test_old_endpoints_take_the_orchestrators_id_of_a_session(
    daemon: Running, tmp_path: Path
) -> None:
    """Also after a restart and a clear; not of a session that the agent started."""
    named, path = {"CLAUDE_SESSION_MANAGER_ID": "sm-1"}, "/hooks/context-usage"
    usage = {"session_id": "sm-1", "used_percentage": 30, "context_window_size": 200_000}
    assert daemon.refused("/sessions/sm-1")[0] == 404
    for id in (SESSION, "after-a-clear"):
        start = {**hook_input("SessionStart", source="startup"), "session_id": id}
        daemon.hook(start, "hook", **named)
        child = {**start, "session_id": f"child of {id}"}
        daemon.hook(child, "hook", **named, BRIMLINE_PARENT=id)
        assert daemon.post(path, usage) == {"status": "ok", "used_percentage": 30}
        daemon.kill()
        daemon.start()
        view = daemon.get("/sessions/sm-1")
        assert (view["id"], view["tokens_used"]) == (id, 60_000)
    assert daemon.get(f"/v1/sessions/{SESSION}")["session"]["manager_id"] == "sm-1"


def test_change_is_streamed_with_an_event_id(daemon: Running) -> None:
    import http.client

    daemon.hook(status_input(90_000), "statusline")
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=20)
    connection.request("GET", "/v1/stream", headers={"Authorization": f"Bearer {daemon.secret}"})
    answer = connection.getresponse()
    lines = [answer.readline() for _ in range(6)]
    assert lines[:2] == [b": connected\n", b"retry: 1000\n"]
    assert lines[3].startswith(b"id: ")
    assert lines[4] == b"event: session\n"
    assert json.loads(lines[5].removeprefix(b"data: "))["session"]["id"] == SESSION
    connection.close()
