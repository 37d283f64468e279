"""The endpoints of the original design, for its scripts."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents.observations import Observation, ObservationKind
from brimline.api.openapi import Endpoint
from brimline.api.responses import json_response, read_body, unknown_session
from brimline.context.events import MAIN
from brimline.context.usage import MAX_TOKENS, Tokens, Usage
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store
from brimline.store.rows import SessionRow, ThreadRow

# Opened by the setting `daemon.context_usage_without_secret`.
LEGACY_PATHS = ("/hooks/context-usage", "/sessions")
MAX_PERCENT = 200.0  # more is not a percentage: some clients post a time


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


EVENTS: dict[str, tuple[ObservationKind, str]] = {
    "compaction": ("compacting", "compaction_logged"),
    "compaction_complete": ("compacted", "compaction_complete"),
    "context_reset": ("cleared", "context_reset"),
}


class LegacyRoutes:
    endpoints = (
        Endpoint("POST", "/hooks/context-usage", "context_usage", "Report context usage or a "
                 "compaction.", UsageTaken, ContextUsage),
        Endpoint("GET", "/sessions", "sessions", "List the sessions with their tokens and last "
                 "handoffs.", list[LegacySession]),
        Endpoint("GET", "/sessions/{id}", "session", "Get a session's tokens and last handoff.",
                 LegacySession, may_be_missing=True),
    )  # fmt: skip

    def __init__(self, store: Store, monitor: Monitor) -> None:
        self._store = store
        self._monitor = monitor

    async def context_usage(self, request: Request) -> Response:
        usage = await read_body(request, ContextUsage)
        row = await self._find_session(usage.session_id) if usage.session_id else None
        if row is None:
            return json_response(UsageTaken("unknown_session"))
        main = await self._main_thread(row.id)
        if usage.event is not None:
            return json_response(UsageTaken(await self._observe_event(row, usage.event, main)))
        if (sent := _sent(usage, main)) is not None:
            now = self._monitor.now()
            observation = Observation(
                id=f"{row.id}-usage-{now!r}",
                agent=row.agent,
                session=row.id,
                kind="status",
                at=now,
                usage=Usage(sent, 0, 0, usage.total_output_tokens),
                window=_window(usage),
            )
            await self._monitor.observe(observation)
        return json_response(UsageTaken("ok", usage.used_percentage))

    async def sessions(self, request: Request) -> Response:
        rows = await self._store.sessions()
        return json_response([await self._view(row) for row in rows if not row.has_ended])

    async def session(self, request: Request) -> Response:
        id = request.path_params["id"]
        row = await self._find_session(id)
        if row is None:
            raise unknown_session(id)
        return json_response(await self._view(row))

    async def _find_session(self, id: str) -> SessionRow | None:
        """Return a session by its own id, or by the one that the orchestrator has for it.

        After a clear several have that one, and so has a session that the agent started: its own
        is the one seen last whose parent has another.
        """
        row = await self._store.session(id)
        if row is not None:
            return row
        rows = [row for row in await self._store.sessions() if row.manager_id == id]
        ids = {row.id for row in rows}
        return next((row for row in rows if row.parent not in ids), None)

    async def _view(self, row: SessionRow) -> LegacySession:
        main = await self._main_thread(row.id)
        handoffs = await self._store.handoffs(row.id)
        path = next((handoff.path for handoff in handoffs if not handoff.draft), None)
        return LegacySession(row.id, main.sent if main else None, path)

    async def _observe_event(self, row: SessionRow, event: str, main: ThreadRow | None) -> str:
        """Process an event, and return its status."""
        kind, status = EVENTS.get(event, (None, "unknown_event"))
        if kind is not None:
            if kind == "compacting" and (main is None or not main.calls):
                kind = "compacted"  # there is no transcript to report its end
            now, id = self._monitor.now(), row.id
            await self._monitor.observe(
                Observation(f"{id}-{event}-{now!r}", row.agent, id, kind, now)
            )
        return status

    async def _main_thread(self, session: str) -> ThreadRow | None:
        """Return the main thread from the store, which a former daemon may have written."""
        threads = await self._store.threads(session)
        return next((row for row in threads if row.thread == MAIN), None)


def _sent(usage: ContextUsage, main: ThreadRow | None) -> int | None:
    """Return what the last call sent: the script posts a total or a percentage."""
    total = usage.total_input_tokens if usage.total_input_tokens is not None else usage.total_tokens
    if total is not None:
        return total
    percent = usage.used_percentage
    window = _window(usage) or (main.window if main else None)
    if not window or percent is None or not 0 < percent <= MAX_PERCENT:
        return None
    return round(percent * window / 100)


def _window(usage: ContextUsage) -> int | None:
    size = usage.context_window_size
    return size if size is not None and 0 < size <= MAX_TOKENS else None
