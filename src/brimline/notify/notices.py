"""What a user is told beside the agent, by the ways that they chose; no way fails another."""

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from pathlib import Path

import msgspec

from brimline.notify.transports import Unable, desktop, post, ring, run
from brimline.observations import Pane
from brimline.settings import Notify
from brimline.tmux.clear_requests import ClearRequest

LOGGER = logging.getLogger("brimline.notify")


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a user shall know of a session; what is None is not known."""

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
        """Whose it is, in a few words."""
        return f"{self.agent} in {Path(self.project).name}" if self.project else self.agent


def not_cleared(intent: ClearRequest, project: str | None = None) -> Notice:
    """That a `handoff --clear` came to nothing, why, and how to do it by hand."""
    by_hand = f'by hand: /clear, then "{intent.prompt}"'
    return Notice(
        kind="handoff",
        session=intent.session,
        agent=intent.agent,
        text=f"{intent.session[:8]} does not go on from {intent.path}: {intent.why}; {by_hand}",
        at=intent.since,
        project=project,
        pane=intent.pane,
    )


async def notify(notice: Notice, by: Notify, state: Path) -> None:
    """Tell it by every way, at the same time; a way that fails is logged, never raised."""
    ways = dict(_ways(notice, by, state))
    came = await asyncio.gather(*ways.values(), return_exceptions=True)
    for name, failure in zip(ways, came, strict=True):
        if isinstance(failure, Unable | OSError):
            LOGGER.warning("no notice of %s by %s: %s", notice.kind, name, failure)
        elif isinstance(failure, BaseException):
            raise failure


class Notices:
    """Tells notices while the caller goes on; `state` is the daemon's folder."""

    def __init__(self, by: Notify, state: Path) -> None:
        self._by, self._state = by, state
        self._under_way: set[asyncio.Task[None]] = set()

    def tell(self, notice: Notice) -> None:
        """Begin to tell one, and come back at once."""
        task = asyncio.create_task(notify(notice, self._by, self._state))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self, patience: float = 1.0) -> None:
        """Let what is under way end, but not for long."""
        if tasks := list(self._under_way):
            await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ways(notice: Notice, by: Notify, state: Path) -> Iterator[tuple[str, Awaitable[None]]]:
    if (by.bell or by.osc9) and notice.pane is not None:
        text = f"{notice.title}: {notice.text}" if by.osc9 else None
        yield "terminal", ring(notice.pane, state, by.bell, text)
    if by.desktop:
        yield "desktop", desktop(notice.title, notice.text)
    if by.webhook:
        yield "webhook", post(by.webhook, msgspec.json.encode(notice))
    if by.command:
        yield "command", run(by.command, msgspec.json.encode(notice))
