"""The daemon: one per user, its socket, its API, its end, and what a kill leaves."""

import json
import os
import signal
import socket
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.hook_adapter import RequestKind
from brimline.hooks.client.autostart import LOG_NAME

from .running import PATIENCE, Running, free_port

pytestmark = pytest.mark.slow

SESSION = "11111111-1111-4111-8111-111111111111"


def status_input(sent: int | None, window: int = 200_000) -> dict[str, Any]:
    """What Claude Code gives its status line."""
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
    """What Claude Code gives a hook."""
    return {"session_id": SESSION, "hook_event_name": event, "cwd": "/project", **more}


def said(daemon: Running, by: signal.Signals = signal.SIGTERM) -> str:
    """What a daemon said, from its start to its end, which a signal brings."""
    assert daemon.process is not None
    daemon.process.send_signal(by)
    text, _ = daemon.process.communicate(timeout=PATIENCE)
    assert daemon.process.returncode == 0
    daemon.process = None
    return text


def test_status_line(daemon: Running) -> None:
    """The status line is made from the usage, never from the client's own percentage."""
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1")
    assert line.startswith("████░░░░░░ 45%* 90K/200K window | 77K to compaction")
    assert "* client says 1794714107%" in line
    assert "unknown, 200K window" in daemon.hook(status_input(None), "statusline", NO_COLOR="1")


def test_status_line_colours_and_width(daemon: Running) -> None:
    """Colours unless NO_COLOR; what does not fit is left off."""
    assert "\x1b[33m" in daemon.hook(status_input(110_000), "statusline", TERM="xterm")
    short = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", COLUMNS="24")
    assert short == "45%* 90K/200K window\n"


def test_limit_of_the_agents_own_environment(daemon: Running) -> None:
    """Where a client compacts is told by the variables that it runs with, not by the daemon's."""
    lower = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", **lower)
    assert "27K to compaction" in line
    assert daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["limit"] == 117_000


def test_environment_of_now(daemon: Running) -> None:
    """A session that is resumed without a variable is not bound to what that said before; one that
    posts its hooks tells nothing of its environment."""

    def limit() -> int:
        return daemon.get(f"/v1/sessions/{SESSION}")["threads"][0]["limit"]

    daemon.hook(status_input(90_000), "statusline", CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    daemon.post("/hooks/claude", hook_input("Stop"))
    assert limit() == 117_000
    daemon.hook(status_input(91_000), "statusline")
    assert limit() == 167_000
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", DISABLE_COMPACT="1")
    assert "110K to window's end, auto-compaction off" in line


def test_settings_of_the_agents_own_folder(daemon: Running) -> None:
    """Of two configuration folders the one counts that the client is run with."""
    (daemon.folder / "settings.json").write_text('{"autoCompactWindow": 150000}')
    there = {"CLAUDE_CONFIG_DIR": str(daemon.folder)}
    line = daemon.hook(status_input(90_000), "statusline", NO_COLOR="1", **there)
    assert "27K to compaction" in line


def test_own_status_line(daemon: Running) -> None:
    """The user's own status line is run with the same input, and ours stands beside it."""
    settings = daemon.home / ".claude/settings.json"
    settings.parent.mkdir()
    own = "cat > seen.json; echo mine"
    settings.write_text(json.dumps({"statusLine": {"type": "command", "command": own}}))
    assert daemon.command("setup", "claude").returncode == 0
    told = {**status_input(90_000), "cwd": str(daemon.folder)}
    daemon.hook(told, "statusline", NO_COLOR="1")
    lines = daemon.hook(told, "statusline", NO_COLOR="1").splitlines()
    assert lines[0] == "mine"
    assert "45%* 90K/200K" in lines[1]
    assert json.loads((daemon.folder / "seen.json").read_text()) == told


def test_http_hook(daemon: Running) -> None:
    """A hook that the client posts itself is answered in the same way."""
    daemon.hook(status_input(120_000), "statusline")
    told = daemon.post("/hooks/claude?by=brimline", hook_input("UserPromptSubmit"))
    assert "60%" in told["hookSpecificOutput"]["additionalContext"]
    assert daemon.post("/hooks/claude", hook_input("UserPromptSubmit")) == {}


def test_http_hook_of_a_client_that_died(daemon: Running) -> None:
    """What a client did not wait for is told to the next one."""
    daemon.hook(status_input(120_000), "statusline")
    body = json.dumps(hook_input("UserPromptSubmit")).encode()
    head = f"POST /hooks/claude HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
    head += f"Authorization: Bearer {daemon.secret}\r\n"
    with socket.create_connection(("127.0.0.1", daemon.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    daemon.until(
        f"/v1/sessions/{SESSION}/messages",
        lambda found: found[0]["handed_at"] and found[0]["state"] == "queued",
    )
    told = daemon.post("/hooks/claude", hook_input("UserPromptSubmit"))
    assert "60%" in told["hookSpecificOutput"]["additionalContext"]


def test_level_message(daemon: Running) -> None:
    """A level that the status line reached is told at the next prompt, once."""
    daemon.hook(status_input(120_000), "statusline")
    told = json.loads(daemon.hook(hook_input("UserPromptSubmit")))
    specific = told["hookSpecificOutput"]
    assert specific["hookEventName"] == "UserPromptSubmit"
    assert "at 60%" in specific["additionalContext"]
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def call(sent: int) -> bytes:
    """A call in a transcript, as Claude Code writes it."""
    usage = {"input_tokens": sent, "output_tokens": 5}
    message = {"id": f"msg_{sent}", "model": "claude-sonnet-4-5", "usage": usage}
    when = {"timestamp": "2026-11-15T10:00:00.000Z", "version": "2.1.325"}
    told = {"type": "assistant", "sessionId": SESSION, **when, "message": message}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def test_call_that_a_hook_brings(daemon: Running) -> None:
    """It is answered at once where there is nothing to say; the call is there soon, or told of."""
    transcript = daemon.folder / "t.jsonl"
    hook = hook_input("PostToolBatch", transcript_path=str(transcript))

    def brings(sent: int) -> str:
        with transcript.open("ab") as file:
            file.write(call(sent))
        return daemon.hook(hook)

    assert [brings(sent) for sent in (60_000, 61_000, 62_000)] == ["", "", ""]
    path = f"/v1/sessions/{SESSION}"
    daemon.until(path, lambda view: view["threads"][0]["sent"] == 62_000)
    assert "at 70%" in brings(140_000)
    assert brings(141_000) == ""
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.get(path)["threads"][0]["sent"] == 141_000


def test_a_level_does_not_keep_a_turn_from_ending(daemon: Running) -> None:
    """The last level waits for the next tool result."""
    daemon.hook(status_input(150_000), "statusline")
    assert daemon.hook(hook_input("Stop", stop_hook_active=False)) == ""
    reply = json.loads(daemon.hook(hook_input("PostToolBatch")))
    assert "75%" in reply["hookSpecificOutput"]["additionalContext"]


def test_send(daemon: Running) -> None:
    """`brimline send` reaches the agent at its next tool result, `brimline inbox` tells of it."""
    done = daemon.command("send", SESSION, "Look at the tests.", "--urgent")
    assert done.returncode == 0, done.stderr
    told = json.loads(daemon.hook(hook_input("PostToolBatch")))
    assert told["hookSpecificOutput"]["additionalContext"] == "Look at the tests."
    shown = daemon.command("inbox", SESSION)
    assert "delivered" in shown.stdout
    assert "Look at the tests." in shown.stdout


def test_session_that_was_cleared(daemon: Running) -> None:
    """What waits for a session when its user clears it, and what is sent to it later, as by another
    session that has it for its parent, reaches the one that it goes on as."""
    fresh = "22222222-2222-4222-8222-222222222222"

    def told(event: str, session: str = fresh, **more: str) -> str:
        return daemon.client({**hook_input(event, **more), "session_id": session})

    told("SessionStart", SESSION, source="startup")
    assert daemon.command("send", SESSION, "Before.").returncode == 0
    told("SessionEnd", SESSION, reason="clear")
    told("SessionStart", source="clear")
    assert "Before." in told("UserPromptSubmit")
    row = daemon.get(f"/v1/sessions/{SESSION}")["session"]
    assert (row["became"], row["ended_at"] is not None) == (fresh, True)
    sent = daemon.command("send", SESSION, "After.")
    assert f"it was cleared and continues as {fresh}: delivered there" in sent.stdout
    daemon.until(f"/v1/sessions/{fresh}/messages", lambda found: len(found) == 2)
    assert "After." in told("UserPromptSubmit")
    told("SessionStart", SESSION, source="resume")
    told("SessionEnd", SESSION, reason="other")
    row = daemon.get(f"/v1/sessions/{SESSION}")["session"]
    assert (row["became"], row["ended_at"] is not None) == (None, True)
    assert "it has ended" in daemon.command("send", SESSION, "Its own.").stdout


def test_send_to_one_that_has_ended(daemon: Running) -> None:
    """Whoever sends is told that it takes a resume."""
    daemon.hook(hook_input("UserPromptSubmit"))
    assert "ended" not in daemon.command("send", SESSION, "Now.").stdout
    daemon.hook(hook_input("SessionEnd"))
    said = daemon.command("send", SESSION, "Later.").stdout
    assert "it has ended: the message is kept for 24 hours in case it is resumed" in said


def test_session_that_was_cleared_unheard(daemon: Running) -> None:
    """It is the same where no daemon was there to hear of it: the spool tells."""
    daemon.client(hook_input("SessionStart", source="startup"))
    assert daemon.command("send", SESSION, "Before.").returncode == 0
    daemon.kill()
    daemon.client(hook_input("SessionEnd", reason="clear"))
    daemon.client({**hook_input("SessionStart", source="clear"), "session_id": "fresh"})
    daemon.start()
    daemon.until("/v1/sessions/fresh/messages", lambda found: len(found) == 1)


def test_sessions_by_their_beginning(daemon: Running, tmp_path: Path) -> None:
    """A session may be named by as much of its id as tells it from the others, as it is shown."""
    daemon.hook(hook_input("UserPromptSubmit"))
    daemon.hook({**hook_input("UserPromptSubmit"), "session_id": "22222222-a"})
    daemon.hook({**hook_input("UserPromptSubmit"), "session_id": "22222222-b"})
    assert f"queued for {SESSION}:" in daemon.command("send", SESSION[:8], "short").stdout
    assert "short" in daemon.command("inbox", "1").stdout
    document = tmp_path / "handoff.md"
    document.write_text("# Next\n")
    kept = daemon.command("handoff", str(document), "--session", SESSION[:8])
    assert kept.returncode == 0, kept.stderr
    assert "handoff.md" in daemon.command("handoff", "--list", "--session", "111").stdout
    twice = daemon.command("send", "2222", "to whom?")
    assert twice.returncode == 2
    assert "more than one session starts with '2222': 22222222-a, 22222222-b" in twice.stderr
    assert "Give a longer prefix." in twice.stderr


def test_send_to_one_that_is_to_come(daemon: Running) -> None:
    """A message may wait for a session that was not heard of yet; that is said."""
    done = daemon.command("send", "a b/c", "welcome")
    assert done.returncode == 0, done.stderr
    assert "unknown session" in done.stdout
    assert "24 hours" in done.stdout
    assert "welcome" in daemon.command("inbox", "a b/c").stdout
    assert daemon.command("inbox", "nobody").stdout == "no messages: unknown session\n"


def test_handoff_after_a_compaction(daemon: Running, tmp_path: Path) -> None:
    """The agent hands a document over by its own command; after a compaction it gets it back."""
    path = tmp_path / "handoff.md"
    path.write_text("The parser is half done; see src/parse.py.")
    daemon.hook(status_input(120_000), "statusline")
    done = daemon.command("handoff", str(path), CLAUDE_CODE_SESSION_ID=SESSION)
    assert done.returncode == 0, done.stderr
    path.unlink()
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    told = json.loads(daemon.hook(hook_input("SessionStart", source="compact")))
    assert "The parser is half done" in told["hookSpecificOutput"]["additionalContext"]
    assert told["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert "The parser is half done" in daemon.command("handoff", "--session", SESSION).stdout


def test_bad_handoff(daemon: Running, tmp_path: Path) -> None:
    """A document that cannot be taken is refused with the reason, exit code 2."""
    done = daemon.command("handoff", str(tmp_path / "nothing.md"), "--session", SESSION)
    assert done.returncode == 2
    assert "nothing.md" in done.stderr


@pytest.mark.parametrize("text", ["", "garbage", "[1]", '{"session_id": 5}', "{" * 1_000])
@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_garbage(daemon: Running, text: str, kind: RequestKind) -> None:
    """What is no hook's input gets no answer, is counted, and breaks nothing."""
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
def test_what_no_client_writes(daemon: Running, body: bytes) -> None:
    """Text that is no UTF-8, and nested without an end, is answered at once, and counted."""
    known = json.dumps(hook_input("Stop", session_id="s")).encode()
    assert daemon.ask(known) == ""
    assert daemon.ask(body) == ""
    status, _ = daemon.refused(f"/v1/sessions/{SESSION}/messages", b'{"text": ' + body)
    assert status == 422
    assert daemon.get("/v1/daemon")["malformed"] == 1
    assert "Traceback" not in said(daemon)


def test_hook_that_dies(daemon: Running) -> None:
    """A message that a hook took and never passed on is there for the next one."""
    daemon.hook(status_input(120_000), "statusline")
    prompt = json.dumps(hook_input("UserPromptSubmit")).encode()
    first = daemon.ask(prompt, passed_on=False)
    assert "60%" in first
    daemon.until(f"/v1/sessions/{SESSION}/messages", lambda told: told[0]["state"] == "queued")
    assert daemon.ask(prompt) == first
    assert daemon.ask(prompt) == ""


def test_subagents_hooks_are_not_the_sessions(daemon: Running) -> None:
    """A hook that fires inside a subagent is given nothing that is for the session."""
    daemon.hook(status_input(150_000), "statusline")
    assert daemon.hook(hook_input("PostToolBatch", agent_id="a1")) == ""
    assert "75%" in daemon.hook(hook_input("PostToolBatch"))


def test_doctor(daemon: Running) -> None:
    """Doctor tells what is well and what to do about the rest."""
    (daemon.home / ".claude/projects").mkdir(parents=True)
    told = daemon.command("doctor")
    assert told.returncode == 1
    assert "`brimline setup claude` installs them." in told.stdout
    assert "nothing yet" in told.stdout
    daemon.command("setup", "claude")
    daemon.hook(status_input(90_000), "statusline")
    told = daemon.command("doctor", "--json")
    checks = {check["about"]: check for check in json.loads(told.stdout)}
    assert told.returncode == 0, told.stdout
    assert checks["heard"]["told"].startswith("1 session, the last")
    daemon.stop()
    told = daemon.command("doctor")
    assert told.returncode == 1
    assert "`brimline serve --background` starts it." in told.stdout


# Its life.


def test_one_per_user(daemon: Running) -> None:
    """A second one says that one is running, and ends."""
    done = daemon.command("serve", "--port", str(free_port()))
    assert done.returncode == 0
    assert f"already running at http://127.0.0.1:{daemon.port}" in done.stdout


@pytest.mark.parametrize("port", ["0", "99999", "-1", "http"])
def test_port_that_cannot_be(tmp_path: Path, port: str) -> None:
    """A port that cannot be is refused with what was expected."""
    done = Running(tmp_path).command("serve", f"--port={port}")
    assert done.returncode == 2
    assert "expected a port from 1 to 65535" in done.stderr


def test_port_that_is_taken(tmp_path: Path) -> None:
    """Where another program has the port, it says so and leaves no socket behind."""
    running = Running(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", running.port))
        other.listen()
        done = running.command("serve", "--port", str(running.port))
    assert done.returncode == 2
    assert f"127.0.0.1:{running.port} is in use" in done.stderr
    assert not running.socket.exists()


def test_status_and_stop(daemon: Running) -> None:
    """`--status` tells of it, `--stop` ends it; then `--status` says so."""
    daemon.hook(hook_input("UserPromptSubmit"))
    told = daemon.command("serve", "--status")
    assert "1 hooks and status lines received" in told.stdout
    assert json.loads(daemon.command("serve", "--status", "--json").stdout)["running"] is True
    assert daemon.command("serve", "--stop").stdout == "stopped\n"
    assert daemon.process is not None
    assert daemon.process.wait(20) == 0
    assert daemon.command("serve", "--status").returncode == 3
    assert not daemon.socket.exists()


def test_end(daemon: Running) -> None:
    """A signal ends it cleanly: exit code 0, no socket left."""
    assert daemon.stop() == 0
    assert not daemon.socket.exists()


def test_end_while_somebody_asks(daemon: Running) -> None:
    """Ctrl-C ends it also while a request is half sent: who sends it is told, without a fuss."""
    with socket.create_connection(("127.0.0.1", daemon.port), PATIENCE) as asking:
        head = f"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
        head += f"Authorization: Bearer {daemon.secret}\r\nContent-Length: 9\r\n\r\n{{"
        asking.sendall(head.encode())
        time.sleep(0.1)
        text = said(daemon, signal.SIGINT)
        assert asking.recv(4_096).startswith(b"HTTP/1.1 503")
    assert "Traceback" not in text


@pytest.mark.parametrize("place", ["/proc/nowhere/state", "/dev/null"])
def test_state_that_cannot_be_kept(tmp_path: Path, place: str) -> None:
    """Where there can be no state folder it says so, and what to do."""
    done = Running(tmp_path).command("serve", "--port", "any", BRIMLINE_STATE_DIR=place)
    assert done.returncode == 2
    assert done.stderr.startswith(f"brimline: {place}: ")
    assert "set BRIMLINE_STATE_DIR" in done.stderr
    assert "Traceback" not in done.stderr


def test_state_folder_that_others_could_replace(tmp_path: Path) -> None:
    """It says which folder others can write to, and how to change that."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    place = str(shared / "state")
    for words in (("serve", "--port", "any"), ("serve", "--background")):
        done = Running(tmp_path).command(*words, BRIMLINE_STATE_DIR=place)
        assert done.returncode == 2
        assert done.stderr.startswith(f"brimline: {place} is not safe to use: other users can")
        assert f"`chmod go-w {shared}`" in done.stderr
    assert not (shared / "state").exists()


def test_state_folder_that_others_could_write_to(tmp_path: Path) -> None:
    """Their permission is removed when the daemon starts, and the log says so."""
    running = Running(tmp_path)
    running.state.mkdir()
    running.state.chmod(0o777)
    words = ("serve", "--background", "--port", "any")
    done = running.command(*words)
    try:
        assert done.returncode == 0, done.stderr
        assert stat.S_IMODE(running.state.stat().st_mode) == 0o755
        assert f"{running.state}: removed the permissions 022 of other users" in done.stderr
    finally:
        running.command("serve", "--stop")


def test_log_that_is_a_fifo(tmp_path: Path) -> None:
    """A FIFO in place of the log is refused, and not waited for."""
    running = Running(tmp_path)
    running.state.mkdir(mode=0o700)
    os.mkfifo(running.state / LOG_NAME)
    done = running.command("serve", "--background", "--port", "any")
    assert done.returncode == 2
    assert str(running.state / LOG_NAME) in done.stderr


def test_modes(daemon: Running) -> None:
    """The folder is the user's own, and so is everything in it."""
    assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in daemon.state.iterdir()}
    assert all(mode == 0o600 for mode in modes.values()), modes


def test_killed_and_started_again(daemon: Running) -> None:
    """After a kill it starts onto the stale socket, and says nothing twice."""
    daemon.hook(status_input(120_000), "statusline")
    assert "60%" in daemon.hook(hook_input("UserPromptSubmit"))
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start()
    daemon.hook(status_input(121_000), "statusline")
    assert daemon.hook(hook_input("UserPromptSubmit")) == ""


def test_spool(daemon: Running) -> None:
    """What was told while it was away is taken in when it is back, in order, once."""
    daemon.stop()
    assert "60%" in daemon.client(status_input(120_000), "statusline")
    assert daemon.client(hook_input("PreCompact", trigger="auto")) == ""
    assert daemon.client(hook_input("SessionStart", source="compact")) == ""
    daemon.start()
    told = daemon.until(f"/v1/sessions/{SESSION}/timeline", lambda told: told["signals"])
    assert [s["kind"] for s in told["signals"]] == ["level", "compacting", "compacted"]
    (thread,) = daemon.get(f"/v1/sessions/{SESSION}/context")
    assert (thread["cycle"], thread["state"], thread["sent"]) == (1, "unknown", None)
    assert not (daemon.state / "spool").exists()


# The API.


def test_api(daemon: Running) -> None:
    """Sessions, readings, timeline, messages, handoffs; what is not there is said so."""
    daemon.hook(status_input(90_000), "statusline")
    (view,) = daemon.get("/v1/sessions")
    assert view["session"]["id"] == SESSION
    assert view["threads"][0]["percent"] == 45.0
    assert daemon.get(f"/v1/sessions/{SESSION}") == view
    assert daemon.get(f"/v1/sessions/{SESSION}/messages") == []
    assert daemon.get(f"/v1/sessions/{SESSION}/handoff") == {"handoffs": []}
    assert daemon.refused("/v1/sessions/nothing")[0] == 404


def test_only_this_machine(daemon: Running) -> None:
    """Another site's page, and another name for this address, are refused on every route."""
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        for path in ("/healthz", "/v1/sessions", "/hooks/context-usage"):
            assert daemon.refused(path, headers=headers)[0] == 403
    assert daemon.get("/healthz", Origin=f"http://127.0.0.1:{daemon.port}")["status"] == "ok"


def test_bad_bodies(daemon: Running) -> None:
    """A body that cannot be used is refused with what is wrong."""
    path = f"/v1/sessions/{SESSION}/messages"
    code, told = daemon.refused(path, json.dumps({"texts": "hi"}).encode())
    assert (code, "text" in told["error"]) == (422, True)
    for body in (b"garbage", b'{"session_id": 5}'):
        assert daemon.refused("/hooks/context-usage", body)[0] == 422


def test_settings_of_the_folder_that_it_starts_in(daemon: Running) -> None:
    """A daemon is the user's: a project's settings are not everyone's, wherever it is started."""
    daemon.stop()
    (daemon.folder / ".brimline.toml").write_text('levels = [10]\n[notify]\ncommand = ["x"]\n')
    daemon.start(daemon.folder)
    daemon.hook(status_input(90_000), "statusline")
    assert daemon.get("/v1/sessions")[0]["levels"] == [50.0, 65.0]


@pytest.mark.parametrize(
    ("path", "most"),
    [(f"/v1/sessions/{SESSION}/messages", 1 << 20), ("/v1/events", 16 << 20),
     ("/hooks/claude", 4 << 20), ("/hooks/context-usage", 4 << 20)],
)  # fmt: skip
def test_too_large_bodies(daemon: Running, path: str, most: int) -> None:
    """A body that is longer than its route takes is refused, however it is sent; the next is not.

    What is as long as may be is read.
    """
    code, told = daemon.refused(path, b" " * (most + 1))
    assert (code, told["hint"]) == (413, "Send less at a time.")
    assert f"more than {most:,} bytes" in told["error"]
    code, _ = daemon.refused(path, b" " * most) if path != "/hooks/claude" else (422, None)
    assert code == 422
    assert daemon.get("/healthz")["status"] == "ok"


def test_what_is_not_offered(daemon: Running) -> None:
    """An unknown route and a wrong method are answered as every refusal, with where to look."""
    code, told = daemon.refused("/nothing")
    assert (code, told["error"]) == (404, "Not Found: GET /nothing")
    assert told["hint"] == "See /openapi.json for all endpoints."
    code, told = daemon.refused("/v1/history", b"{}")
    assert (code, told["error"]) == (405, "Method Not Allowed: POST /v1/history")
    assert told["hint"] == "See /openapi.json for all endpoints."


def test_when_hooks_were_heard(daemon: Running) -> None:
    """The daemon tells of each agent when a hook of it was last heard, and of no other."""
    assert daemon.get("/v1/daemon")["hooks"] == {}
    daemon.post("/v1/events", {"events": []})
    daemon.hook(status_input(90_000), "statusline")
    first = daemon.get("/v1/daemon")["hooks"]["claude"]
    daemon.hook(hook_input("UserPromptSubmit"))
    daemon.hook(hook_input("UserPromptSubmit"))
    assert list(daemon.get("/v1/daemon")["hooks"]) == ["claude"]
    assert daemon.get("/v1/daemon")["hooks"]["claude"] > first


@pytest.mark.parametrize("name", ["hook", "http"])
def test_socket_that_is_gone(daemon: Running, name: str) -> None:
    """A daemon that nobody finds any more ends, with a failure, so that another is started."""
    daemon.socket.with_name(f"{name}.sock").unlink()
    assert daemon.ended() == 1
    daemon.start()
    assert daemon.hook(status_input(90_000), "statusline")


def test_sockets_of_another(daemon: Running) -> None:
    """A daemon that ends takes away no socket but its own."""
    daemon.socket.unlink()
    daemon.socket.touch()
    daemon.stop()
    assert daemon.socket.exists()


def test_design_endpoints(daemon: Running, tmp_path: Path) -> None:
    """The endpoints of the design that this began with work as they stand there."""
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
    told = daemon.get(f"/sessions/{SESSION}")
    assert (told["last_handoff_path"], told["tokens_used"]) == (str(document), 110_000)


def test_stream(daemon: Running) -> None:
    """A change is on the stream, with a mark to go on from."""
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
