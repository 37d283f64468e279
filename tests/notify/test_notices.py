"""Notices by every way, for real: a pane's terminal, programs, a web server."""

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

from brimline.notify import transports
from brimline.notify.notices import Notice, Notices, not_cleared, notify
from brimline.notify.transports import Unable, osc9, post, ring, run
from brimline.observations import Pane
from brimline.settings import Notify
from brimline.tmux.clear_requests import ClearRequest
from tmux.terminal import Terminal

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
    """Makes web servers, and ends them."""
    made: list[Web] = []

    def make(*codes: int) -> Web:
        made.append(Web(*codes))
        return made[-1]

    yield make
    for one in made:
        one.close()


def script(folder: Path, name: str, text: str) -> str:
    """A program of the user's."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def told(notice: Notice, by: Notify, state: Path) -> None:
    """Tell one, to the end."""
    asyncio.run(notify(notice, by, state))


def test_webhook(web: Callable[..., Web], tmp_path: Path) -> None:
    """The notice is posted as JSON, once."""
    server = web()
    told(NOTICE, Notify(webhook=server.address), tmp_path)
    (got,) = server.got
    assert got == {"path": "/hook?a=b", "body": msgspec.to_builtins(NOTICE)}


def test_webhook_is_tried_twice(web: Callable[..., Web]) -> None:
    """A server that is not well is asked once more, and not for ever."""
    server = web(503)
    asyncio.run(post(server.address, b"{}"))
    assert len(server.got) == 2
    ill = web(500, 500, 500)
    with pytest.raises(Unable, match="500"):
        asyncio.run(post(ill.address, b"{}"))
    assert len(ill.got) == 2


@pytest.mark.parametrize("code", [400, 404, 302])
def test_webhook_that_refuses(web: Callable[..., Web], code: int) -> None:
    """What is refused is not asked again, and no redirect is followed."""
    server = web(code)
    with pytest.raises(Unable, match=str(code)):
        asyncio.run(post(server.address, b"{}"))
    assert [got["path"] for got in server.got] == ["/hook?a=b"]


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/", "nothing", "http://"])
def test_webhook_is_http(address: str) -> None:
    """Other addresses are refused."""
    with pytest.raises(Unable, match="http or https"):
        asyncio.run(post(address, b"{}"))


def test_webhook_that_hangs() -> None:
    """A server that says nothing is given up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Unable, match="TimeoutError"):
            asyncio.run(post(address, b"{}", patience=0.2))


def test_command_gets_the_notice(tmp_path: Path) -> None:
    """A command is run as it is, without a shell, with the notice on its standard input."""
    out = tmp_path / "out"
    program = script(tmp_path, "told", f'echo "$1" > {out}; cat >> {out}')
    told(NOTICE, Notify(command=(program, "$HOME; x")), tmp_path)
    words, _, body = out.read_text().partition("\n")
    assert words == "$HOME; x"
    assert msgspec.json.decode(body, type=Notice) == NOTICE


def test_command_that_does_not_end(tmp_path: Path) -> None:
    """A command is killed with all that it started."""
    child = tmp_path / "child"
    program = script(tmp_path, "slow", f"sleep 600 & echo $! > {child}; wait")
    with pytest.raises(Unable, match="did not end"):
        asyncio.run(run([program], patience=1.0))
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


def test_ways_do_not_fail_each_other(
    web: Callable[..., Web], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A way that fails is logged once and not raised, and the others are gone all the same."""
    server = web()
    broken = Notify(webhook=server.address, command=("/nowhere/at/all",), bell=True)
    notice = msgspec.structs.replace(NOTICE, pane=Pane("/tmp/nobody", "%1"))
    with caplog.at_level(logging.WARNING, "brimline.notify"):
        told(notice, broken, tmp_path)
    assert len(server.got) == 1
    words = sorted(record.getMessage().partition(":")[0] for record in caplog.records)
    assert words == ["no notice of level by command", "no notice of level by terminal"]


@pytest.mark.skipif(sys.platform == "darwin", reason="there the desktop is told by osascript")
def test_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The desktop is told with title and text, as words that nobody obeys."""
    out = tmp_path / "out"
    script(tmp_path, "notify-send", f'printf "%s|" "$@" > {out}')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    notice = msgspec.structs.replace(NOTICE, text="--icon=x\x1b]0;y\x07\n$(z)")
    told(notice, Notify(desktop=True), tmp_path)
    assert out.read_text() == "--app-name=Brimline|--|claude in parser|--icon=x]0;y $(z)|"


def test_no_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where there is no desktop that is logged."""
    monkeypatch.setenv("PATH", str(tmp_path))
    told(NOTICE, Notify(desktop=True), tmp_path)
    assert len(caplog.records) == 1


def test_terminal(tmp_path: Path) -> None:
    """Bell and text get to the agent's own terminal: tmux sees them in the pane."""
    terminal = Terminal(["cat"], tmp_path)
    try:
        terminal.tmux("set-option", "-g", "monitor-bell", "on")
        terminal.tmux("new-window", "cat")
        asyncio.run(ring(terminal.pane, tmp_path, bell=True, text="A text."))
        flag = ("display-message", "-p", "-t", terminal.pane.id, "#{window_bell_flag}")
        terminal.until(lambda: terminal.tmux(*flag).strip() == "1")
        assert terminal.shown.strip() == ""
    finally:
        terminal.close()


def test_text_for_a_terminal() -> None:
    """What is shown is one sequence, which no text can end or add to."""
    assert osc9("a\x07b\x1b\\c\nd\x9ce") == b"\x1bPtmux;\x1b\x1b]9;ab\\c de\x07\x1b\\"
    assert len(osc9("x" * 10_000)) < 600


def test_only_the_users_own_terminal(tmp_path: Path) -> None:
    """A file, and the terminal of somebody else, is not written to."""
    write = vars(transports)["_write"]
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Unable):
        write(str(file), b"x")
    with pytest.raises(Unable):
        write("/dev/null", b"x")
    assert file.read_bytes() == b""
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    assert stat.S_ISCHR(os.fstat(theirs).st_mode)
    if os.geteuid() == 0:
        os.chown(name, 12345, -1)
        with pytest.raises(Unable):
            write(name, b"x")
        os.chown(name, 0, -1)
    write(name, b"x")
    assert os.read(ours, 10) == b"x"
    os.close(ours)
    os.close(theirs)


def test_caller_goes_on(web: Callable[..., Web], tmp_path: Path) -> None:
    """Telling comes back before anything is told, and closing lets it end."""
    server = web()

    async def main() -> None:
        notices = Notices(Notify(webhook=server.address), tmp_path)
        notices.tell(NOTICE)
        assert server.got == []
        await notices.close(patience=20.0)

    asyncio.run(main())
    assert len(server.got) == 1


def test_clear_that_failed() -> None:
    """Of a clear that came to nothing the user is told whose, from which document, and why."""
    pane = Pane("/tmp/x", "%1")
    intent = ClearRequest(
        "11111111-1", "claude", pane, "/n.md", 1.0, "failed", 2.0, why="it is at work"
    )
    told = not_cleared(intent, "/work/parser")
    assert told.text == (
        "11111111 does not go on from /n.md: it is at work; "
        'by hand: /clear, then "Read /n.md and continue from where you left off."'
    )
    assert (told.kind, told.title, told.pane) == ("handoff", "claude in parser", pane)


def test_nothing_is_wanted(tmp_path: Path) -> None:
    """By default nothing is told, and a bell without a pane is none."""
    for wanted in (Notify(), Notify(bell=True, osc9=True)):
        told(NOTICE, wanted, tmp_path)
    assert list(tmp_path.iterdir()) == []
