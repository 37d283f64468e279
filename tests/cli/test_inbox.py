"""`brimline send` and `brimline inbox` with a running daemon."""

import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from threading import Thread

import pytest

from brimline.context.inbox import HANDOFF_REQUEST
from brimline.daemon.sockets import LOCK_NAME, hold_instance_lock
from brimline.files.socket_path import socket_path
from server.filled_session import write_filled_session
from server.running import Running

from .terminal import PATIENCE_S, User, cells

SESSION = "11111111-1111-4111-8111-111111111111"
NO_HOOKS = (
    "No hooks of Brimline are installed for Claude Code. `brimline setup claude` installs them. "
    "Open sessions may need a restart."
)
QUEUED = "queued for {id}: delivered with the next prompt"


def test_inbox_lists_pending_messages_of_all_sessions_even_unknown_ones(daemon: Running) -> None:
    assert daemon.command("inbox").stdout == "no pending messages\n"
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    for session, text in ((SESSION, "delivered already"), ("to-come", "for later")):
        assert daemon.command("send", session, text).returncode == 0
    daemon.hook({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"})
    assert daemon.command("send", SESSION, "still here").returncode == 0
    messages = json.loads(daemon.command("inbox", "--json").stdout)
    sign = "[message from user]"
    expected = [("to-come", f"{sign} for later"), (SESSION, f"{sign} still here")]
    assert [(each["session"], each["text"]) for each in messages] == expected
    table = daemon.command("inbox").stdout
    assert "for later" in table
    assert "delivered already" not in table
    assert "delivered already" in daemon.command("inbox", SESSION).stdout


def test_inbox_lists_messages_of_ended_sessions_only_if_asked(daemon: Running) -> None:
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    for session, text in ((SESSION, "too late"), ("to-come", "for later")):
        assert daemon.command("send", session, text).returncode == 0
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionEnd", "reason": "other"})
    table = daemon.command("inbox").stdout
    assert ("for later" in table, "too late" in table) == (True, False)
    assert [each["text"] for each in json.loads(daemon.command("inbox", "--json").stdout)] == [
        "[message from user] for later"
    ]
    assert "too late" in daemon.command("inbox", "--ended").stdout
    assert "too late" in daemon.command("inbox", SESSION).stdout
    status, problem = daemon.refused("/v1/messages?ended=yes")
    assert (status, problem["error"]) == (422, "query, ended: expected 0 or 1: got 'yes'")
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "resume"})
    assert "too late" in daemon.command("inbox").stdout


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], [QUEUED]),
        (["--urgent"], [f"{QUEUED} or tool result"]),
        (
            ["--block-stop"],
            [
                f"{QUEUED}, or before the turn of an interactive session ends",
            ],
        ),
        (
            ["--wake"],
            [
                "not typed: its tmux pane is unknown",
                QUEUED,
            ],
        ),
    ],
)
def test_send_says_when_a_message_arrives(
    daemon: Running, words: list[str], lines: list[str]
) -> None:
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    sent = daemon.command("send", SESSION[:8], "hello", *words)
    assert sent.stdout.splitlines() == [line.format(id=SESSION) for line in lines]


def test_send_to_a_session_without_hooks_says_that_nothing_delivers_it(daemon: Running) -> None:
    """The message stays queued, and is delivered when hooks are installed."""
    write_filled_session(daemon.home, SESSION)
    daemon.until("/v1/sessions", bool)
    sent = daemon.command("send", SESSION[:8], "hello")
    assert (sent.returncode, sent.stdout.splitlines()) == (
        1,
        [
            f"queued for {SESSION}: but nothing will deliver it",
            NO_HOOKS,
        ],
    )
    sent = daemon.command("send", SESSION[:8], "hello", "--json")
    assert (sent.returncode, "setup claude" in json.loads(sent.stdout)["undeliverable"]) == (
        1,
        True,
    )
    assert daemon.command("setup", "claude").returncode == 0
    sent = daemon.command("send", SESSION[:8], "hello")
    assert (sent.returncode, sent.stdout) == (0, QUEUED.format(id=SESSION) + "\n")
    hook = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit"}
    assert daemon.hook(hook).count("] hello") == 3


def test_ask_queues_an_urgent_request_for_a_handoff(daemon: Running) -> None:
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    asked = daemon.command("handoff", "--ask", SESSION[:8])
    arrival = f"{QUEUED.format(id=SESSION)} or tool result\n"
    assert (asked.returncode, asked.stdout) == (0, arrival), asked.stderr
    (message,) = json.loads(daemon.command("inbox", "--json").stdout)
    assert (message["session"], message["urgency"]) == (SESSION, "urgent")
    assert message["text"] == f"[message from user] {HANDOFF_REQUEST}"


def test_page_asks_with_the_same_words() -> None:
    page = Path(__file__).parents[2] / "web" / "src" / "components" / "handoff-requests.tsx"
    (said,) = re.findall(r"const REQUEST =\n(.*?);\n\n", page.read_text("utf-8"), re.DOTALL)
    assert "".join(re.findall(r'"(.*?)"', said)) == HANDOFF_REQUEST


def test_send_to_a_program_says_what_it_has_to_call(daemon: Running) -> None:
    usage = {"input": 9, "cache_read": 0, "cache_write": 0, "output": 1}
    event = {"type": "Call", "id": "c1", "usage": usage}
    new = {"id": "e1", "session": "my-session", "agent": "my-agent", "event": event}
    daemon.post("/v1/events", {"events": [new]})
    sent = daemon.command("send", "my-session", "hello")
    assert (sent.returncode, "DaemonSession.messages()" in sent.stdout) == (1, True)
    daemon.post("/v1/sessions/my-session/messages/take", None)
    assert daemon.command("send", "my-session", "hello").returncode == 0


def test_wake_of_an_agent_that_has_ended_keeps_the_message(daemon: Running) -> None:
    start = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    daemon.hook(start)
    daemon.hook({**start, "hook_event_name": "SessionEnd", "reason": "other"})
    first, _, last = daemon.command("send", SESSION, "hello", "--wake").stdout.splitlines()
    assert first == "not typed: the agent is not running"
    assert last == "it has ended: the message is kept for 24 hours in case it is resumed"
    sent = json.loads(daemon.command("send", SESSION, "hello", "--wake", "--json").stdout)
    assert (sent["typed"], sent["not_typed"]) == (False, "the agent is not running")


def test_multi_line_message_is_one_table_row(daemon: Running) -> None:
    assert daemon.command("send", "to-come", "Look at:\n\tthe tests\r\n").returncode == 0
    assert daemon.command("inbox").stdout.endswith("  [message from user] Look at: the tests\n")


def test_table_fits_the_terminal_and_keeps_session_and_text(daemon: Running) -> None:
    daemon.command("send", SESSION, "A message that is longer than any of these terminals." * 2)
    for columns in (20, 40, 60, 80):
        lines = daemon.command("inbox", COLUMNS=str(columns)).stdout.splitlines()
        assert max(map(cells, lines)) <= columns
        assert lines[-1].startswith("11111111  ")
        assert "[messag" in lines[-1]


def test_too_long_message_is_refused_with_a_hint(daemon: Running) -> None:
    completed = daemon.command("send", SESSION, "x" * 9_001)
    assert (completed.returncode, completed.stdout) == (2, "")
    first, hint = completed.stderr.splitlines()
    assert first == "brimline: the message has 9,001 characters, at most 9,000 are allowed"
    assert "file" in hint


@pytest.mark.parametrize("words", [["send", "", "text"], ["send", " ", "text"], ["inbox", ""]])
def test_empty_session_name_is_refused(user: User, words: list[str]) -> None:
    completed = user.run(*words)
    assert (completed.code, completed.out) == (2, "")
    assert "argument SESSION: expected a session id or prefix: got nothing" in completed.err
    assert "`brimline status`" in completed.err


@pytest.mark.parametrize(
    ("words", "argument"),
    [([b"send", b"s", b"bad \xff"], "TEXT"), ([b"send", b"\xff", b"x"], "SESSION"),
     ([b"inbox", b"\xff"], "SESSION"), ([b"handoff", b"\xff.md"], "PATH")],
)  # fmt: skip
def test_message_that_is_not_utf_8_is_refused_before_any_request(
    user: User, words: list[bytes], argument: str
) -> None:
    command = [os.fsencode(sys.executable), b"-m", b"brimline", *words]
    completed = subprocess.run(
        command, env=user.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert completed.returncode == 2
    assert f"argument {argument}: expected UTF-8: invalid from character" in completed.stderr


class OldDaemon(BaseHTTPRequestHandler):
    """A daemon that does not know the request."""

    def do_GET(self) -> None:
        """Answer 404 as a plain web server does, not in JSON."""
        self.send_response(404)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b"Not Found")

    def log_message(self, format: str, *args: object) -> None: ...

    def address_string(self) -> str:
        """A Unix socket has no client address."""
        return ""


@pytest.mark.parametrize(
    "words", [["inbox"], ["send", "s1", "Hello."], ["handoff", "notes.md", "--session", "s1"]]
)
def test_unresponsive_daemon_is_reported_as_running(
    user: User, tmp_path: Path, words: list[str]
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (user.cwd / "notes.md").write_text("# Next\n")
    with hold_instance_lock(state / LOCK_NAME):
        completed = user.run(*words, BRIMLINE_STATE_DIR=str(state))
    assert completed.code == 2
    assert (
        f"process {os.getpid()} holds {state / LOCK_NAME}, but the daemon does not answer"
        in completed.err
    )
    assert "--background" not in completed.err


def test_daemon_of_another_version_is_reported_as_running(user: User, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    place = socket_path(state, os.getuid(), "http")
    place.parent.mkdir(parents=True, exist_ok=True)
    with ThreadingUnixStreamServer(str(place), OldDaemon) as server:
        Thread(target=server.serve_forever).start()
        completed = user.run("inbox", BRIMLINE_STATE_DIR=str(state))
        server.shutdown()
    assert completed.code == 2
    assert "the daemon answered GET /v1/messages with 404" in completed.err
    assert "`brimline serve --stop`" in completed.err
