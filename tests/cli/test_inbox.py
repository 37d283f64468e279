"""`brimline send` and `brimline inbox`, with a daemon that runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from threading import Thread

import pytest

from brimline.server.sockets import LOCK_NAME, InstanceLock
from brimline.settings import socket_path
from server.running import Running

from .terminal import PATIENCE, User, cells

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon that runs, and is gone afterwards."""
    running = Running(tmp_path / "daemon")
    running.start()
    yield running
    running.close()


def test_all_that_wait(daemon: Running) -> None:
    """Without a session, what waits for any is listed: also for one that was never heard of."""
    assert daemon.command("inbox").stdout == "no pending messages\n"
    daemon.hook({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    for session, text in ((SESSION, "delivered already"), ("to-come", "for later")):
        assert daemon.command("send", session, text).returncode == 0
    daemon.hook({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"})
    assert daemon.command("send", SESSION, "still here").returncode == 0
    told = json.loads(daemon.command("inbox", "--json").stdout)
    expected = [("to-come", "for later"), (SESSION, "still here")]
    assert [(each["session"], each["text"]) for each in told] == expected
    shown = daemon.command("inbox").stdout
    assert "for later" in shown
    assert "delivered already" not in shown
    assert "delivered already" in daemon.command("inbox", SESSION).stdout


def test_message_of_several_lines(daemon: Running) -> None:
    """Its lines are one in the table, with nothing strange between them."""
    assert daemon.command("send", "to-come", "Look at:\n\tthe tests\r\n").returncode == 0
    assert daemon.command("inbox").stdout.endswith("  Look at: the tests\n")


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_table_fits(daemon: Running, columns: int) -> None:
    """The table is no wider than the terminal; whose a message is and what it says stay."""
    daemon.command("send", SESSION, "A message that is longer than any of these terminals." * 2)
    shown = daemon.command("inbox", COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(cells, shown)) <= columns
    assert shown[-1].startswith("11111111  ")
    assert "A messag" in shown[-1]


def test_too_long(daemon: Running) -> None:
    """A message that is longer than an agent takes is refused, with what to do."""
    done = daemon.command("send", SESSION, "x" * 9_001)
    assert (done.returncode, done.stdout) == (2, "")
    first, hint = done.stderr.splitlines()
    assert first == "brimline: the message has 9,001 characters, at most 9,000 are allowed"
    assert "file" in hint


@pytest.mark.parametrize("words", [["send", "", "text"], ["send", " ", "text"], ["inbox", ""]])
def test_no_session(user: User, words: list[str]) -> None:
    """A session without a name is none: not every one, and not the only one."""
    done = user.run(*words)
    assert (done.code, done.out) == (2, "")
    assert "argument SESSION: expected a session id or prefix: got nothing" in done.err
    assert "`brimline status`" in done.err


@pytest.mark.parametrize(
    ("words", "argument"),
    [([b"send", b"s", b"bad \xff"], "TEXT"), ([b"send", b"\xff", b"x"], "SESSION"),
     ([b"inbox", b"\xff"], "SESSION"), ([b"handoff", b"\xff.md"], "PATH")],
)  # fmt: skip
def test_no_utf_8(user: User, words: list[bytes], argument: str) -> None:
    """Bytes that are no text are refused before anybody is asked."""
    command = [os.fsencode(sys.executable), b"-m", b"brimline", *words]
    done = subprocess.run(
        command, env=user.env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert f"argument {argument}: expected UTF-8: invalid from character" in done.stderr


class Older(BaseHTTPRequestHandler):
    """A daemon that does not know what it is asked for."""

    def do_GET(self) -> None:
        """Say so as a web server does, and not in JSON."""
        self.send_response(404)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b"Not Found")

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def address_string(self) -> str:
        """Nobody's, over a socket."""
        return ""


@pytest.mark.parametrize(
    "words", [["inbox"], ["send", "s1", "Hello."], ["handoff", "notes.md", "--session", "s1"]]
)
def test_daemon_that_says_nothing(user: User, tmp_path: Path, words: list[str]) -> None:
    """One that is there and does not answer is told of: to start another would not help."""
    state = tmp_path / "state"
    state.mkdir()
    with InstanceLock(state / LOCK_NAME):
        done = user.run(*words, BRIMLINE_STATE_DIR=str(state))
    assert done.code == 2
    assert (
        f"process {os.getpid()} holds {state / LOCK_NAME}, but the daemon does not answer"
        in done.err
    )
    assert "--background" not in done.err


def test_daemon_of_another_version(user: User, tmp_path: Path) -> None:
    """A daemon that answers otherwise is not said to be none."""
    state = tmp_path / "state"
    state.mkdir()
    place = socket_path(state, os.getuid(), "http")
    place.parent.mkdir(parents=True, exist_ok=True)
    with ThreadingUnixStreamServer(str(place), Older) as server:
        Thread(target=server.serve_forever).start()
        done = user.run("inbox", BRIMLINE_STATE_DIR=str(state))
        server.shutdown()
    assert done.code == 2
    assert "the daemon answered GET /v1/messages with 404" in done.err
    assert "`brimline serve --stop`" in done.err
