"""The endpoints of the design that this began with, as they stand there."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.events import MAIN
from brimline.monitor.monitor import Monitor
from brimline.observations import Observation, ObservationKind
from brimline.server.api.openapi import Endpoint
from brimline.server.api.responses import json_response, read_body
from brimline.store.base import Store
from brimline.store.rows import SessionRow, ThreadRow
from brimline.usage import MAX_TOKENS, Tokens, Usage

LEGACY_PATHS = ("/hooks/context-usage", "/sessions/")
"""What `daemon.context_usage_without_secret` opens to every user of the machine."""

MAX_PERCENT = 200.0
"""A percentage above this is none."""


class ContextUsage(msgspec.Struct, frozen=True):
    """A post of the status-line script, or of its compaction hooks."""

    session_id: str | None = None
    event: str | None = None
    trigger: str | None = None
    used_percentage: float | None = None
    total_tokens: Tokens | None = None
    total_input_tokens: Tokens | None = None
    total_output_tokens: Tokens = 0
    context_window_size: int | None = None


class UsageTaken(msgspec.Struct, frozen=True):
    """What became of a post; a reading is told again."""

    status: str
    used_percentage: float | msgspec.UnsetType | None = msgspec.UNSET


class LegacySession(msgspec.Struct, frozen=True):
    """A session as that design served it."""

    id: str
    tokens_used: int | None
    last_handoff_path: str | None


EVENTS: dict[str | None, tuple[ObservationKind, str]] = {
    "compaction": ("compacting", "compaction_logged"),
    "compaction_complete": ("compacted", "compaction_complete"),
    "context_reset": ("cleared", "context_reset"),
}


class LegacyRoutes:
    """The routes."""

    endpoints = (
        Endpoint("POST", "/hooks/context-usage", "context_usage", "Report context usage or a "
                 "compaction.", UsageTaken, ContextUsage),
        Endpoint("GET", "/sessions/{id}", "session", "Get a session's tokens and last handoff.",
                 LegacySession, needs_session=True),
    )  # fmt: skip

    def __init__(self, store: Store, monitor: Monitor) -> None:
        self._store = store
        self._monitor = monitor

    async def context_usage(self, request: Request) -> Response:
        """Take a reading, or an event."""
        told = await read_body(request, ContextUsage)
        row = await self._store.session(told.session_id) if told.session_id else None
        if row is None:
            return json_response(UsageTaken("unknown_session"))
        main = await self._main(row.id)
        if told.event is not None:
            return json_response(UsageTaken(await _event(self._monitor, row.agent, told, main)))
        if (sent := _sent(told, main)) is not None:
            await self._monitor.observe(_usage(row.agent, told, sent, self._monitor.now()))
        return json_response(UsageTaken("ok", told.used_percentage))

    async def session(self, request: Request, row: SessionRow) -> Response:
        """A session."""
        main = await self._main(row.id)
        paths = [one.path for one in await self._store.handoffs(row.id) if not one.draft]
        return json_response(
            LegacySession(row.id, main.sent if main else None, next(iter(paths), None))
        )

    async def _main(self, session: str) -> ThreadRow | None:
        """The main thread as it was kept last, also by a daemon before this one."""
        threads = await self._store.threads(session)
        return next((row for row in threads if row.thread == MAIN), None)


async def _event(monitor: Monitor, agent: str, told: ContextUsage, main: ThreadRow | None) -> str:
    what, status = EVENTS.get(told.event, (None, "unknown_event"))
    if what is not None:
        now, session = monitor.now(), told.session_id or ""
        what = "compacted" if what == "compacting" and _is_all(main) else what
        await monitor.observe(
            Observation(f"{session}-{told.event}-{now!r}", agent, session, what, now)
        )
    return status


def _is_all(main: ThreadRow | None) -> bool:
    """Whether no transcript will tell how a compaction ended: that it begins has to do."""
    return main is None or not main.calls


def _sent(told: ContextUsage, main: ThreadRow | None) -> int | None:
    """What the last call sent: the design's script posts that as a total, or as a percentage."""
    total = told.total_input_tokens if told.total_input_tokens is not None else told.total_tokens
    if total is not None or not told.used_percentage:
        return total
    size = _window(told) or (main.window if main else None)
    return round(told.used_percentage * size / 100) if size and _is_share(told) else None


def _is_share(told: ContextUsage) -> bool:
    """Whether a percentage can be one: clients are known to post a time in its place."""
    return told.used_percentage is not None and 0 < told.used_percentage <= MAX_PERCENT


def _window(told: ContextUsage) -> int | None:
    size = told.context_window_size
    return size if size is not None and 0 < size <= MAX_TOKENS else None


def _usage(agent: str, told: ContextUsage, sent: int, now: float) -> Observation:
    return Observation(
        id=f"{told.session_id}-usage-{now!r}",
        agent=agent,
        session=told.session_id or "",
        kind="status",
        at=now,
        usage=Usage(sent, 0, 0, told.total_output_tokens),
        window=_window(told),
    )
