"""Notices by every transport: a real terminal, real programs, a real web server."""

import asyncio
import json
import logging
import os
import pty
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents.observations import Pane
from brimline.daemon import notices
from brimline.daemon.notices import (
    Notice,
    NoticeSender,
    TransportFailed,
    clear_failure_notice,
    osc9_sequence,
    post_webhook,
    ring_terminal,
    run_command,
    send_notice,
)
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.settings import Notify
from daemon.tmux.terminal import Terminal

NOTICE = Notice(
    kind="level", session="s1", agent="claude", text="65% of 200K", at=1.0,
    project="/work/parser", percent=65.0, sent=130_000, window=200_000,
)  # fmt: skip


class Web:
    """A web server that answers each post with the next of some codes, then with 200."""

    def __init__(self, *codes: int) -> None:
        self.got: list[dict[str, Any]] = []
        left = list(codes)
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got.append({"path": self.path, "body": json.loads(body)})
                self.send_response(left.pop(0) if left else 200)
                self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/hook?a=b"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def web() -> Iterator[Callable[..., Web]]:
    """A function that starts web servers."""
    servers: list[Web] = []

    def make(*codes: int) -> Web:
        servers.append(Web(*codes))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def script(folder: Path, name: str, text: str) -> str:
    """Write an executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def send(notice: Notice, settings: Notify) -> None:
    """Send a notice and wait for it."""
    asyncio.run(send_notice(notice, settings))


def test_webhook_gets_the_notice(web: Callable[..., Web]) -> None:
    """The notice is posted as JSON, once."""
    server = web()
    send(NOTICE, Notify(webhook=server.address))
    (got,) = server.got
    assert got == {"path": "/hook?a=b", "body": msgspec.to_builtins(NOTICE)}


def test_webhook_is_tried_twice(web: Callable[..., Web]) -> None:
    """A server error is retried once."""
    server = web(503)
    asyncio.run(post_webhook(server.address, b"{}"))
    assert len(server.got) == 2
    ill = web(500, 500, 500)
    with pytest.raises(TransportFailed, match="500"):
        asyncio.run(post_webhook(ill.address, b"{}"))
    assert len(ill.got) == 2


@pytest.mark.parametrize("code", [400, 404, 302])
def test_webhook_refusal_is_not_retried(web: Callable[..., Web], code: int) -> None:
    """A client error is not retried, and no redirect is followed."""
    server = web(code)
    with pytest.raises(TransportFailed, match=str(code)):
        asyncio.run(post_webhook(server.address, b"{}"))
    assert [got["path"] for got in server.got] == ["/hook?a=b"]


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/", "nothing", "http://"])
def test_webhook_address_must_be_http(address: str) -> None:
    with pytest.raises(TransportFailed, match="http or https"):
        asyncio.run(post_webhook(address, b"{}"))


def test_webhook_that_hangs_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(TransportFailed, match="no answer within"):
            asyncio.run(post_webhook(address, b"{}", timeout_s=0.2))


def test_command_gets_the_notice(tmp_path: Path) -> None:
    """A command runs without a shell, with the notice on its standard input."""
    out = tmp_path / "out"
    program = script(tmp_path, "told", f'echo "$1" > {out}; cat >> {out}')
    send(NOTICE, Notify(command=(program, "$HOME; x")))
    words, _, body = out.read_text().partition("\n")
    assert words == "$HOME; x"
    assert msgspec.json.decode(body, type=Notice) == NOTICE


def test_command_that_hangs_is_killed(tmp_path: Path) -> None:
    """It is killed with its children."""
    child = tmp_path / "child"
    program = script(tmp_path, "slow", f"sleep 600 & echo $! > {child}; wait")
    with pytest.raises(TransportFailed, match="did not end"):
        asyncio.run(run_command([program], timeout_s=1.0))
    process = int(child.read_text())
    end = time.monotonic() + 20
    while _lives(process) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _lives(process)


def _lives(process: int) -> bool:
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()[:1] not in ("", "Z")


def test_failed_transport_does_not_stop_others(
    web: Callable[..., Web], caplog: pytest.LogCaptureFixture
) -> None:
    """A failed transport is logged once and not raised."""
    server = web()
    broken = Notify(webhook=server.address, command=("/nowhere/at/all",), bell=True)
    notice = msgspec.structs.replace(NOTICE, pane=Pane("/tmp/nobody", "%1"))
    with caplog.at_level(logging.WARNING, "brimline.daemon.notices"):
        send(notice, broken)
    assert len(server.got) == 1
    words = sorted(record.getMessage().partition(":")[0] for record in caplog.records)
    assert words == [
        "cannot send the level notice by command",
        "cannot send the level notice by terminal",
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS uses osascript")
def test_desktop_text_is_not_interpreted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """notify-send gets title and text as plain arguments."""
    out = tmp_path / "out"
    script(tmp_path, "notify-send", f'printf "%s|" "$@" > {out}')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    notice = msgspec.structs.replace(NOTICE, text="--icon=x\x1b]0;y\x07\n$(z)")
    send(notice, Notify(desktop=True))
    assert out.read_text() == "--app-name=Brimline|--|claude in parser|--icon=x]0;y $(z)|"


def test_missing_desktop_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    send(NOTICE, Notify(desktop=True))
    assert len(caplog.records) == 1


def test_terminal_gets_bell_and_text(tmp_path: Path) -> None:
    """tmux sees both in the agent's pane."""
    terminal = Terminal(["cat"], tmp_path)
    try:
        terminal.tmux("set-option", "-g", "monitor-bell", "on")
        terminal.tmux("new-window", "cat")
        asyncio.run(ring_terminal(terminal.pane, bell=True, text="A text."))
        flag = ("display-message", "-p", "-t", terminal.pane.id, "#{window_bell_flag}")
        terminal.until(lambda: terminal.tmux(*flag).strip() == "1")
        assert terminal.text.strip() == ""
    finally:
        terminal.close()


def test_terminal_text_cannot_leave_its_sequence() -> None:
    """Control characters are removed, and the length is limited."""
    assert osc9_sequence("a\x07b\x1b\\c\nd\x9ce") == b"\x1bPtmux;\x1b\x1b]9;ab\\c de\x07\x1b\\"
    assert len(osc9_sequence("x" * 10_000)) < 600


def test_only_own_terminal_is_written_to(tmp_path: Path) -> None:
    """A file, a device and another user's terminal are refused."""
    write = vars(notices)["_write"]
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TransportFailed):
        write(str(file), b"x")
    with pytest.raises(TransportFailed):
        write("/dev/null", b"x")
    assert file.read_bytes() == b""
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    assert stat.S_ISCHR(os.fstat(theirs).st_mode)
    if os.geteuid() == 0:
        os.chown(name, 12345, -1)
        with pytest.raises(TransportFailed):
            write(name, b"x")
        os.chown(name, 0, -1)
    write(name, b"x")
    assert os.read(ours, 10) == b"x"
    os.close(ours)
    os.close(theirs)


def test_send_does_not_wait(web: Callable[..., Web]) -> None:
    """`send` returns before the notice is sent, and `close` waits for it."""
    server = web()

    async def main() -> None:
        notices = NoticeSender(Notify(webhook=server.address))
        notices.send(NOTICE)
        assert server.got == []
        await notices.close(timeout_s=20.0)

    asyncio.run(main())
    assert len(server.got) == 1


def test_clear_failure_says_what_to_do() -> None:
    """The notice names the session, the document and the reason."""
    pane = Pane("/tmp/x", "%1")
    request = ClearRequest(
        "11111111-1", "claude", pane, "/n.md", 1.0, "failed", 2.0, why="the agent is busy"
    )
    notice = clear_failure_notice(request, "/work/parser")
    assert notice.text == (
        "Could not clear session 11111111 and continue from /n.md: the agent is busy. "
        'Do it by hand: /clear, then "Read /n.md and continue from where you left off."'
    )
    assert (notice.kind, notice.title, notice.pane) == ("handoff", "claude in parser", pane)


def test_default_settings_send_nothing() -> None:
    """A bell without a pane has no effect either."""
    transports_of = vars(notices)["_transports"]
    for wanted in (Notify(), Notify(bell=True, osc9=True)):
        assert list(transports_of(NOTICE, wanted)) == []
