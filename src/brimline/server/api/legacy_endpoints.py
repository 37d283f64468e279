"""The endpoints of the original design, kept for its scripts."""

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

LEGACY_PATHS = (
    "/hooks/context-usage",
    "/sessions/",
)  # opened by `daemon.context_usage_without_secret`

MAX_PERCENT = 200.0  # more is not a percentage


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
    """The result of a post; a percentage is returned."""

    status: str
    used_percentage: float | msgspec.UnsetType | None = msgspec.UNSET


class LegacySession(msgspec.Struct, frozen=True):
    """A session in the format of that design."""

    id: str
    tokens_used: int | None
    last_handoff_path: str | None


EVENTS: dict[str | None, tuple[ObservationKind, str]] = {
    "compaction": ("compacting", "compaction_logged"),
    "compaction_complete": ("compacted", "compaction_complete"),
    "context_reset": ("cleared", "context_reset"),
}


class LegacyRoutes:
    """The routes of the original design."""

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
        """Process a reading or an event."""
        usage = await read_body(request, ContextUsage)
        row = await self._store.session(usage.session_id) if usage.session_id else None
        if row is None:
            return json_response(UsageTaken("unknown_session"))
        main = await self._main(row.id)
        if usage.event is not None:
            return json_response(UsageTaken(await _event(self._monitor, row.agent, usage, main)))
        if (sent := _sent(usage, main)) is not None:
            await self._monitor.observe(_usage(row.agent, usage, sent, self._monitor.now()))
        return json_response(UsageTaken("ok", usage.used_percentage))

    async def session(self, request: Request, row: SessionRow) -> Response:
        main = await self._main(row.id)
        paths = [one.path for one in await self._store.handoffs(row.id) if not one.draft]
        return json_response(
            LegacySession(row.id, main.sent if main else None, next(iter(paths), None))
        )

    async def _main(self, session: str) -> ThreadRow | None:
        """Return the main thread from the store, which a former daemon may have written."""
        threads = await self._store.threads(session)
        return next((row for row in threads if row.thread == MAIN), None)


async def _event(monitor: Monitor, agent: str, usage: ContextUsage, main: ThreadRow | None) -> str:
    what, status = EVENTS.get(usage.event, (None, "unknown_event"))
    if what is not None:
        now, session = monitor.now(), usage.session_id or ""
        what = "compacted" if what == "compacting" and _has_no_transcript(main) else what
        await monitor.observe(
            Observation(f"{session}-{usage.event}-{now!r}", agent, session, what, now)
        )
    return status


def _has_no_transcript(main: ThreadRow | None) -> bool:
    """Whether there is no transcript to report the end of a compaction."""
    return main is None or not main.calls


def _sent(usage: ContextUsage, main: ThreadRow | None) -> int | None:
    """Return what the last call sent: the script posts a total or a percentage."""
    total = usage.total_input_tokens if usage.total_input_tokens is not None else usage.total_tokens
    if total is not None or not usage.used_percentage:
        return total
    size = _window(usage) or (main.window if main else None)
    return round(usage.used_percentage * size / 100) if size and _is_percentage(usage) else None


def _is_percentage(usage: ContextUsage) -> bool:
    """Whether the percentage is plausible: some clients post a time instead."""
    return usage.used_percentage is not None and 0 < usage.used_percentage <= MAX_PERCENT


def _window(usage: ContextUsage) -> int | None:
    size = usage.context_window_size
    return size if size is not None and 0 < size <= MAX_TOKENS else None


def _usage(agent: str, usage: ContextUsage, sent: int, now: float) -> Observation:
    return Observation(
        id=f"{usage.session_id}-usage-{now!r}",
        agent=agent,
        session=usage.session_id or "",
        kind="status",
        at=now,
        usage=Usage(sent, 0, 0, usage.total_output_tokens),
        window=_window(usage),
    )
