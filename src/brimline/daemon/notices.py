"""Notices to the user: which signals become one, what it says, and how it is sent."""

import asyncio
import logging
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import display_name
from brimline.agents.observations import Pane
from brimline.context.events import MAIN
from brimline.context.policy.levels import describe_level
from brimline.context.usage import context_line
from brimline.daemon.http_client import HttpFailed, request_once
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.daemon.tmux.pane import find_tty, remove_controls
from brimline.errors import BrimlineError
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.settings import Notify
from brimline.store.rows import SignalRow

LOGGER = logging.getLogger("brimline.notify")

MAX_SIGNAL_AGE_S = 600.0  # older signals are in the history only

KIND_TEXTS = {
    "compacting": "is being compacted",
    "compacted": "was compacted",
    "thrash": "is compacted again and again",
    "no data": "is running, but its hooks report nothing (run `brimline doctor`)",
    "no window": "has an unknown window, so no level can fire (set it under [windows])",
    "disagree": "has two sources that disagree about its context",
}

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


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice about a session; None is unknown."""

    kind: str
    session: str
    agent: str
    text: str
    at: float
    project: str | None = None
    percent: float | None = None
    sent: int | None = None
    window: int | None = None
    pane: Pane | None = None

    @property
    def title(self) -> str:
        return f"{self.agent} in {Path(self.project).name}" if self.project else self.agent


def clear_failure_notice(request: ClearRequest, project: str | None = None) -> Notice:
    """Return the notice that a `handoff --clear` failed, with what to do by hand."""
    session = request.session[:8]
    return Notice(
        kind="handoff",
        session=request.session,
        agent=request.agent,
        text=f"Could not clear session {session} and continue from {request.path}: {request.why}. "
        f'Do it by hand: /clear, then "{request.prompt}"',
        at=request.since,
        project=project,
        pane=request.pane,
    )


async def send_notice(notice: Notice, settings: Notify) -> None:
    """Send a notice by all transports at once; failures are logged, never raised."""
    sends = dict(_transports(notice, settings))
    results = await asyncio.gather(*sends.values(), return_exceptions=True)
    for name, result in zip(sends, results, strict=True):
        if isinstance(result, TransportFailed | OSError):
            LOGGER.warning("cannot send the %s notice by %s: %s", notice.kind, name, result)
        elif isinstance(result, BaseException):
            raise result


class NoticeSender:
    """Sends notices in the background."""

    def __init__(self, settings: Notify) -> None:
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, notice: Notice) -> None:
        """Start to send a notice, and return at once."""
        task = asyncio.create_task(send_notice(notice, self._settings))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, timeout_s: float = 1.0) -> None:
        """Wait for notices that are being sent, then cancel them."""
        if tasks := list(self._tasks):
            await asyncio.wait(tasks, timeout=timeout_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _transports(notice: Notice, settings: Notify) -> Iterator[tuple[str, Awaitable[None]]]:
    if (settings.bell or settings.osc9) and notice.pane is not None:
        text = f"{notice.title}: {notice.text}" if settings.osc9 else None
        yield "terminal", ring_terminal(notice.pane, settings.bell, text)
    if settings.desktop:
        yield "desktop", show_on_desktop(notice.title, notice.text)
    if settings.webhook:
        yield "webhook", post_webhook(settings.webhook, msgspec.json.encode(notice))
    if settings.command:
        yield "command", run_command(settings.command, msgspec.json.encode(notice))


class NoticePolicy:
    """Reports the signals that the user asked for in the settings."""

    def __init__(
        self,
        settings: Notify,
        rules: Rules,
        sender: NoticeSender,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._rules, self._sender, self._clock = settings, rules, sender, clock

    def report_signal(self, signal: SignalRow, session: SessionState) -> None:
        """Send a notice about a signal if the user wants it."""
        if self._is_wanted(signal, session) and self._is_recent(signal, session):
            self._sender.send(_build_notice(signal, session))

    def _is_wanted(self, signal: SignalRow, session: SessionState) -> bool:
        wanted = self._settings.of
        if signal.kind != "level":
            return signal.kind in wanted
        whose = session.id, session.agent, session.model_of(signal.thread)
        levels = self._rules.levels_with(signal.level, *whose)
        is_last = signal.level in levels[-1:] and signal.thread == MAIN
        return "any level" in wanted or ("level" in wanted and is_last)

    def _is_recent(self, signal: SignalRow, session: SessionState) -> bool:
        """A level is as old as the call that reached it; other signals have their own time."""
        at = session.last_readings[signal.thread].at if signal.kind == "level" else None
        return self._clock() - (at if at is not None else signal.at) < MAX_SIGNAL_AGE_S


def _build_notice(signal: SignalRow, session: SessionState) -> Notice:
    reading = session.last_readings[signal.thread]
    window = reading.window.tokens if reading.window else None
    subject = f"{display_name(session.agent)} {session.id[:8]}"
    if signal.thread != MAIN:
        subject = f"A subagent of {subject}"
    place = f" in {session.project}" if session.project else ""
    text = KIND_TEXTS.get(signal.kind, f"has reached {describe_level(signal.level)}")
    if signal.kind == "level" and signal.text:
        text = f"reaches level {signal.level:g} with its next call: {signal.text}"
    return Notice(
        kind=signal.kind,
        session=session.id,
        agent=session.agent,
        project=session.project,
        text=f"{subject}{place} {text}. {context_line(signal.sent, window)}".strip(),
        at=signal.at,
        percent=signal.percent,
        sent=signal.sent,
        window=window,
        pane=session.pane,
    )
