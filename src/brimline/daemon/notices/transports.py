"""The transports of notices: terminal, desktop, webhook, command."""

import asyncio
import os
import shutil
import signal
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress

from brimline.agents.observations import Pane
from brimline.daemon.http_client import HttpFailed, request_once
from brimline.daemon.tmux.pane import find_tty, remove_controls
from brimline.errors import BrimlineError

WEBHOOK_TIMEOUT_S = 5.0
COMMAND_TIMEOUT_S = 10.0
MAX_SHOWN_CHARS = 500  # on a terminal or a desktop

APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)

_WRITE = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class TransportFailed(BrimlineError):
    """A notice could not be sent."""


async def ring_terminal(pane: Pane, bell: bool, text: str | None) -> None:
    """Ring the bell of a pane's terminal and show a text; raises TransportFailed or OSError."""
    tty = await asyncio.to_thread(find_tty, pane)
    if tty is None:
        raise TransportFailed("the pane is gone")
    _write(tty, (b"\a" if bell else b"") + (b"" if text is None else osc9_sequence(text)))


def osc9_sequence(text: str) -> bytes:
    """Return the OSC 9 sequence that shows a text, wrapped so that tmux passes it on."""
    shown = " ".join(remove_controls(text).split())[:MAX_SHOWN_CHARS].encode("utf-8", "replace")
    return b"\x1bPtmux;\x1b\x1b]9;%b\x07\x1b\\" % shown


def _write(tty: str, data: bytes) -> None:
    """Write to a terminal of our user; raises TransportFailed or OSError."""
    handle = os.open(tty, _WRITE)
    try:
        status = os.fstat(handle)
        is_own = stat.S_ISCHR(status.st_mode) and status.st_uid == os.geteuid()
        if not is_own or not os.isatty(handle):
            raise TransportFailed(f"{tty} is not a terminal of this user")
        if os.write(handle, data) != len(data):
            raise TransportFailed(f"{tty} did not accept all of the notice")
    finally:
        os.close(handle)


async def show_on_desktop(title: str, text: str) -> None:
    """Show a desktop notification; raises TransportFailed or OSError."""
    words = [" ".join(remove_controls(part).split())[:MAX_SHOWN_CHARS] for part in (title, text)]
    if sys.platform == "darwin":
        await run_command(["osascript", *(w for line in APPLESCRIPT for w in ("-e", line)), *words])
    elif shutil.which("notify-send"):
        await run_command(["notify-send", "--app-name=Brimline", "--", *words])
    else:
        raise TransportFailed("notify-send is not installed")


async def run_command(
    command: Sequence[str], stdin: bytes = b"", timeout_s: float = COMMAND_TIMEOUT_S
) -> None:
    """Run a command; raises TransportFailed or OSError.

    After `timeout_s` it is killed with all that it started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            await process.communicate(stdin)
    except TimeoutError as error:
        raise TransportFailed(f"{command[0]} did not end within {timeout_s:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise TransportFailed(f"{command[0]} exited with code {process.returncode}")


async def post_webhook(address: str, body: bytes, timeout_s: float = WEBHOOK_TIMEOUT_S) -> None:
    """Post JSON to a webhook; retry once; raises TransportFailed."""
    headers = {"Content-Type": "application/json"}
    for is_last in (False, True):
        try:
            reply = await request_once("POST", address, headers, body, timeout_s)
        except HttpFailed as error:
            if is_last or error.__cause__ is None:  # not a failure of the network
                raise TransportFailed(str(error)) from error
            continue
        if reply.is_success:
            return
        if is_last or reply.status < 500:
            raise TransportFailed(f"the webhook answered with HTTP status {reply.status}")
