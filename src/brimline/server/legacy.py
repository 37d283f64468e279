"""The endpoints of the design that this began with, as they stand there."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from brimline.monitor.heard import Heard
from brimline.monitor.monitor import Monitor
from brimline.server.bodies import Problem
from brimline.store.base import Store
from brimline.usage import Usage


class ContextUsage(msgspec.Struct, frozen=True):
    """A post of the status-line script, or of its compaction hooks."""

    session_id: str | None = None
    event: str | None = None
    trigger: str | None = None
    used_percentage: float | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int = 0
    context_window_size: int | None = None


class LegacySession(msgspec.Struct, frozen=True):
    """A session as that design served it."""

    id: str
    tokens_used: int | None
    last_handoff_path: str | None


EVENTS = {
    "compaction": ("compacting", "compaction_logged"),
    "compaction_complete": ("compacted", "compaction_complete"),
    "context_reset": ("cleared", "context_reset"),
}


def legacy_routes(store: Store, monitor: Monitor) -> Sequence[Route]:
    """The routes."""

    async def context_usage(request: Request) -> Response:
        try:
            told = msgspec.json.decode(await request.body(), type=ContextUsage)
        except msgspec.DecodeError as error:
            return _json(Problem(str(error)), 422)
        row = await store.session(told.session_id) if told.session_id else None
        if row is None:
            return _json({"status": "unknown_session"})
        if told.event is not None:
            return _json(await _event(monitor, row.agent, told))
        await monitor.hear(_usage(row.agent, told, monitor.now()))
        return _json({"status": "ok", "used_percentage": told.used_percentage})

    async def session(request: Request) -> Response:
        id = request.path_params["id"]
        if await store.session(id) is None:
            return _json({"status": "unknown_session"}, 404)
        sent = [row.sent for row in await store.threads(id) if row.thread == "main"]
        paths = [row.path for row in await store.handoffs(id)]
        return _json(LegacySession(id, next(iter(sent), None), next(iter(paths), None)))

    return (
        Route("/hooks/context-usage", context_usage, methods=["POST"]),
        Route("/sessions/{id}", session),
    )


async def _event(monitor: Monitor, agent: str, told: ContextUsage) -> dict[str, str]:
    known = EVENTS.get(told.event or "")
    if known is None:
        return {"status": "unknown_event"}
    what, status = known
    now = monitor.now()
    id = f"{told.session_id}-{told.event}-{now!r}"
    heard = msgspec.convert(
        {"id": id, "agent": agent, "session": told.session_id, "what": what, "at": now}, Heard
    )
    await monitor.hear(heard)
    return {"status": status}


def _usage(agent: str, told: ContextUsage, now: float) -> Heard:
    """Its total is what the last call sent: the design's script posts that under this name."""
    sent = told.total_input_tokens
    usage = None if sent is None else Usage(sent, 0, 0, told.total_output_tokens)
    return Heard(
        id=f"{told.session_id}-usage-{now!r}",
        agent=agent,
        session=told.session_id or "",
        what="status",
        at=now,
        usage=usage,
        window=told.context_window_size,
    )


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
