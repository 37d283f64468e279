"""The ways by which a user is told: their terminal, their desktop, a webhook, a command."""

import asyncio
import os
import shutil
import signal
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from brimline._version import __version__
from brimline.observations import Pane
from brimline.tmux.pane import remove_controls, tty_of

POSTED = 5.0
"""So many seconds a webhook has to answer."""

RUN = 10.0
"""So many seconds a command may run."""

SHOWN = 500
"""So many characters go to a terminal or a desktop."""

APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)

_WRITE = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Unable(Exception):
    """A way that could not be gone, and why."""


async def ring(pane: Pane, state: Path, bell: bool, text: str | None) -> None:
    """Ring the bell of a pane's terminal, and have it show a text; raises Unable or OSError."""
    tty = await asyncio.to_thread(tty_of, pane, state)
    if tty is None:
        raise Unable("its pane is gone")
    _write(tty, (b"\a" if bell else b"") + (b"" if text is None else osc9(text)))


def osc9(text: str) -> bytes:
    """What has a terminal show a text, through tmux, which is told to pass it on."""
    shown = " ".join(remove_controls(text).split())[:SHOWN].encode("utf-8", "replace")
    return b"\x1bPtmux;\x1b\x1b]9;%b\x07\x1b\\" % shown


def _write(tty: str, data: bytes) -> None:
    """Write to a terminal, if it is one and the user's own."""
    handle = os.open(tty, _WRITE)
    try:
        found = os.fstat(handle)
        own = stat.S_ISCHR(found.st_mode) and found.st_uid == os.geteuid()
        if not own or not os.isatty(handle):
            raise Unable(f"{tty} is no terminal of this user")
        if os.write(handle, data) != len(data):
            raise Unable(f"{tty} takes no more")
    finally:
        os.close(handle)


async def desktop(title: str, text: str) -> None:
    """Show it on the desktop, if there is one; raises Unable."""
    words = [" ".join(remove_controls(part).split())[:SHOWN] for part in (title, text)]
    if sys.platform == "darwin":
        await run(["osascript", *(w for line in APPLESCRIPT for w in ("-e", line)), *words])
    elif shutil.which("notify-send"):
        await run(["notify-send", "--app-name=Brimline", "--", *words])
    else:
        raise Unable("there is no notify-send")


async def run(command: Sequence[str], told: bytes = b"", patience: float = RUN) -> None:
    """Run a command with this on its standard input; raises Unable or OSError.

    It and all that it started are killed when it takes too long.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(patience):
            await process.communicate(told)
    except TimeoutError as error:
        raise Unable(f"{command[0]} did not end in {patience:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise Unable(f"{command[0]} ended with {process.returncode}")


async def post(address: str, body: bytes, patience: float = POSTED) -> None:
    """Post JSON to a webhook, and once more where it did not work; raises Unable or OSError."""
    for last in (False, True):
        try:
            async with asyncio.timeout(patience):
                status = await _posted(urlsplit(address), body)
        except (OSError, TimeoutError, ValueError) as error:
            if last:
                raise Unable(f"{type(error).__name__}: {error}") from error
            continue
        if 200 <= status < 300:
            return
        if last or status < 500:
            raise Unable(f"it answered {status}")


async def _posted(url: SplitResult, body: bytes) -> int:
    """The status of one try. No redirect is followed: the notice is for the address alone."""
    if url.scheme not in ("http", "https") or url.hostname is None:
        raise Unable("expected an http or https address")
    secure = url.scheme == "https"
    port = url.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(url.hostname, port, ssl=secure or None)
    try:
        writer.write(_request(url, body))
        await writer.drain()
        words = (await reader.readline()).split()
    finally:
        writer.close()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise Unable("it answered something that is no HTTP")
    return int(words[1])


def _request(url: SplitResult, body: bytes) -> bytes:
    host = url.netloc.rpartition("@")[2]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = (
        f"POST {target} HTTP/1.1",
        f"Host: {host}",
        f"User-Agent: brimline/{__version__}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "".join(f"{remove_controls(line)}\r\n" for line in lines).encode() + b"\r\n" + body
