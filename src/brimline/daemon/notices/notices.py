"""Notices to the user, sent by every configured transport; one that fails stops no other."""

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from pathlib import Path

import msgspec

from brimline.agents.observations import Pane
from brimline.daemon.notices.transports import (
    TransportFailed,
    post_webhook,
    ring_terminal,
    run_command,
    show_on_desktop,
)
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.settings import Notify

LOGGER = logging.getLogger("brimline.notify")


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
