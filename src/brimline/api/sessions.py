"""The routes of sessions: views, timeline, messages, handoffs, events."""

import math
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from brimline.agents.observations import Observation, Reply
from brimline.api.identity import find_team
from brimline.api.openapi import Endpoint
from brimline.api.request_limits import Turns, handle_by_session
from brimline.api.responses import (
    SESSIONS_HINT,
    RequestRefused,
    json_response,
    plausible_time,
    read_body,
    read_choice,
    read_flag,
    read_number,
    read_since,
    unknown_session,
)
from brimline.api.schemas import (
    Cancelled,
    Continuation,
    DeliveredMessages,
    NewClear,
    NewEvent,
    NewEvents,
    NewHandoff,
    NewMessage,
    SavedHandoff,
    Sent,
    Taken,
)
from brimline.api.session_cache import RECENT_S, EncodedSession, Place, SessionCache, in_pieces
from brimline.api.views import HandoffView, SessionView, ThreadView, Timeline, Views
from brimline.context.events import MAIN
from brimline.context.formulas import formula_series
from brimline.context.inbox import MAX_CONTEXT_CHARS, Message, utf16_length, with_expiry
from brimline.context.usage import Usage
from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.errors import InvalidHandoff
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.handoff import Document
from brimline.handoff.document import read_document
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store, hash_id
from brimline.store.rows import SessionRow

SESSION_PATH = "/v1/sessions/{id}"
DEFAULT_SINCE = "24h"
MAX_PAGE = 1_000
Order: TypeAlias = Literal["latest", "need"]
ORDERS: tuple[Order, ...] = get_args(Order)
BEFORE: dict[Order, tuple[str, int]] = {"latest": ("seen_at", 1), "need": ("rank", 3)}
HANDOFF_WAIT_S = 5.0
CLEARING = "the session is being cleared"  # a prompt would cancel that
TOO_LONG_HINT = "Agents truncate longer messages: write the text to a file and send its path."


class SessionRoutes:
    endpoints = (
        Endpoint("GET", "/v1/sessions", "sessions", "List recent sessions.", list[SessionView],
                 query=("since", "order", "limit", "before")),
        Endpoint("GET", f"{SESSION_PATH}/context", "context", "List a session's threads.",
                 list[ThreadView], needs_session=True),
        Endpoint("GET", f"{SESSION_PATH}/timeline", "timeline", "Get what happened in a session.",
                 Timeline, needs_session=True),
        Endpoint("GET", f"{SESSION_PATH}/formulas", "formulas",
                 "Compute other formulas for each call.", dict[str, list[int]], needs_session=True),
        Endpoint("GET", f"{SESSION_PATH}/messages", "messages", "List a session's messages.",
                 list[Message]),
        Endpoint("POST", f"{SESSION_PATH}/messages", "send", "Queue a message.", Sent, NewMessage,
                 201),
        Endpoint("DELETE", f"{SESSION_PATH}/messages/{{message}}", "cancel",
                 "Cancel a pending message.", Cancelled, may_be_missing=True),
        Endpoint("POST", f"{SESSION_PATH}/messages/take", "take_messages",
                 "Take the messages that are due; they are due again unless acknowledged.",
                 list[Message], needs_session=True, scope="ingest"),
        Endpoint("POST", f"{SESSION_PATH}/messages/delivered", "acknowledge",
                 "Acknowledge messages that reached the agent.", DeliveredMessages,
                 DeliveredMessages, needs_session=True, scope="ingest"),
        Endpoint("GET", f"{SESSION_PATH}/handoff", "handoffs", "List a session's handoffs.",
                 HandoffView, may_be_missing=True),
        Endpoint("POST", f"{SESSION_PATH}/handoff", "hand_over", "Save a handoff document.",
                 SavedHandoff, NewHandoff, 201, unix_only=True),
        Endpoint("POST", f"{SESSION_PATH}/clear", "clear",
                 "Clear a session and continue it from a document.", ClearRequest, NewClear, 201,
                 needs_session=True, unix_only=True),
        Endpoint("POST", f"{SESSION_PATH}/continued", "continue_session",
                 "Record that a session continues as another.", Continuation, Continuation, 201,
                 needs_session=True, unix_only=True),
        Endpoint("GET", SESSION_PATH, "session", "Get one session.", SessionView,
                 needs_session=True),
        Endpoint("GET", "/v1/messages", "waiting", "List pending messages of all sessions, "
                 "with ended=1 also of those that have ended.", list[Message], query=("ended",)),
        Endpoint("POST", "/v1/events", "events", "Add events; each id counts once.", Taken,
                 NewEvents, scope="ingest"),
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        views: Views,
        cache: SessionCache,
        clearer: SessionClearer | None,
        wake: Callable[[str, str], Awaitable[str | None]] | None = None,
        clock: Callable[[], float] = time.time,
        threads: ReadThreads = SHARED_READS,
    ) -> None:
        self._store, self._monitor, self._views, self._cache = store, monitor, views, cache
        self._clearer, self._wake, self._clock, self._threads = clearer, wake, clock, threads

    async def sessions(self, request: Request) -> Response:
        """Return the sessions seen since a time, in an order; with `limit`, a page of them."""
        now = self._clock()
        seen_since = read_since(request, DEFAULT_SINCE, now)
        if self._cache.recent_only and now - seen_since > RECENT_S + 1:
            hint = "/v1/fleet has figures of up to 7 days, /v1/sessions/{id} any session."
            raise RequestRefused(422, f"query, since: expected at most {DEFAULT_SINCE}", hint)
        order: Order = read_choice(request, "order", ORDERS)
        limit = read_number(request, "limit")
        before = _read_place(request, order)
        await self._cache.refresh()
        size = sys.maxsize if limit is None else min(limit, MAX_PAGE)
        if order == "need":
            listed = self._cache.most_urgent(size + 1, seen_since, before)
        else:
            listed = self._cache.seen_since(seen_since, before)
        page = listed[:size]
        response = _array_response([each.json for each in page], self._cache.turns)
        if len(page) < len(listed):
            response.headers["link"] = _link_to_next(request, order, page[-1])
        return response

    async def session(self, request: Request, row: SessionRow) -> Response:
        return json_response(await self._views.view(row))

    async def context(self, request: Request, row: SessionRow) -> Response:
        return json_response(await self._views.threads(row))

    async def timeline(self, request: Request, row: SessionRow) -> Response:
        return json_response(await self._views.timeline(row.id))

    async def formulas(self, request: Request, row: SessionRow) -> Response:
        """Return the result of each historic formula after each call of the main thread."""
        calls = await self._store.calls(row.id, MAIN)
        return json_response(
            formula_series([Usage(c.input, c.cache_read, c.cache_write, c.output) for c in calls])
        )

    async def messages(self, request: Request) -> Response:
        """Return all messages of one session, which may be unknown yet."""
        messages = await self._store.messages(request.path_params["id"])
        return json_response([with_expiry(each, self._clock()) for each in messages])

    async def waiting(self, request: Request) -> Response:
        """Return what is pending; a session that has ended gets its messages if it is resumed."""
        pending = await self._store.pending_messages()
        messages = [with_expiry(each, self._clock()) for each in pending]
        hidden = set[str]()
        if not read_flag(request, "ended"):
            rows = [await self._store.session(id) for id in {each.session for each in messages}]
            hidden = {row.id for row in rows if row is not None and row.has_ended}
        return json_response(
            [each for each in messages if each.state != "expired" and each.session not in hidden]
        )

    async def send(self, request: Request) -> Response:
        """Queue a message; the session may be unknown yet."""
        new = await read_message(request)
        urgency = "urgent" if new.urgent else "sequential"
        session = _session_id(request)
        id = await self._monitor.send(session, new.text, urgency, new.sender, new.blocks_stop)
        is_typed, not_typed = False, None
        if new.wake and self._wake is not None:
            is_clearing = self._clearer is not None and self._clearer.holds_messages(session)
            not_typed = CLEARING if is_clearing else await self._wake(session, id)
            is_typed = not_typed is None
        undeliverable = None if is_typed else await self._monitor.delivery_problem(session)
        return json_response(Sent(id, is_typed, not_typed, undeliverable), 201)

    async def cancel(self, request: Request) -> Response:
        message = await find_message(self._store, request)
        return json_response(Cancelled(await self._monitor.cancel(message)))

    async def take_messages(self, request: Request, row: SessionRow) -> Response:
        return json_response(await self._monitor.take_messages(row.id))

    async def acknowledge(self, request: Request, row: SessionRow) -> Response:
        """Mark messages of this session as delivered; return which ones it has."""
        ids = (await read_body(request, DeliveredMessages)).ids
        own = {message.id for message in await self._store.messages(row.id)}
        known = [id for id in ids if id in own]
        await self._monitor.mark_delivered(Reply(message_ids=tuple(known)))
        return json_response(DeliveredMessages(known))

    async def handoffs(self, request: Request) -> Response:
        """Return the handoffs of one session, which may be unknown yet."""
        id = request.path_params["id"]
        handoffs = await self._store.handoffs(id)
        if not handoffs and await self._store.session(id) is None:
            raise unknown_session(id)
        return json_response(HandoffView(handoffs))

    async def hand_over(self, request: Request) -> Response:
        new = await read_body(request, NewHandoff)
        document = await self._read_document(new.path)
        session = _session_id(request)
        row = await self._monitor.hand_over(session, document, new.author)
        reason = await self._monitor.delivery_problem(session, is_document=True)
        saved = SavedHandoff(**msgspec.structs.asdict(row), undeliverable=reason)
        return json_response(saved, 201)

    async def clear(self, request: Request, row: SessionRow) -> Response:
        """Clear a session in its pane when its turn ends, and continue from a document."""
        new = await read_body(request, NewClear)
        if self._clearer is None:
            raise RequestRefused(422, "demo sessions cannot be cleared")
        state = self._monitor.state_of(row.id)
        pane = new.pane or (state.pane if state else None)
        if pane is None:
            reason = f"the tmux pane of {row.id} is unknown"
            raise RequestRefused(422, reason, "Use `--spawn` instead.")
        document = await self._read_document(new.path)
        clear_request = await self._clearer.request_clear(row.id, row.agent, pane, document)
        return json_response(clear_request, 201)

    async def continue_session(self, request: Request, row: SessionRow) -> Response:
        """Record that a session continues as another, which may be unknown yet."""
        new = await read_body(request, Continuation)
        if new.session == row.id:
            raise RequestRefused(422, f"{row.id} cannot continue itself", None)
        await self._monitor.record_clear(row.id, new.session, self._clock())
        return json_response(new, 201)

    async def _read_document(self, path: str) -> Document:
        """Read a document in a thread; raises InvalidHandoff, or RequestRefused."""
        if not Path(path).is_absolute():
            raise RequestRefused(422, f"the path must be absolute: {path!r}")
        try:
            return await self._threads.run(partial(read_document, path), HANDOFF_WAIT_S)
        except TimeoutError as error:
            hint = "Check that its file system is reachable."
            raise InvalidHandoff(path, str(error), hint) from error

    async def events(self, request: Request) -> Response:
        """Store the events of each session in order; respond when all are stored."""
        events = (await read_body(request, NewEvents)).events
        push = partial(self._push, team=find_team(request.scope))
        replies = await handle_by_session(events, attrgetter("session"), push)
        known = sum(reply.is_duplicate for reply in replies)
        return json_response(Taken(len(events) - known, known))

    async def _push(self, events: list[NewEvent], team: str | None) -> list[Reply]:
        return await self._monitor.observe_all([self._observation(each, team) for each in events])

    def _observation(self, new: NewEvent, team: str | None) -> Observation:
        at = plausible_time(new.event.at, self._clock())
        return Observation(
            id=hash_id("event", new.session, new.id),
            agent=new.agent,
            session=new.session,
            kind="pushed",
            at=at,
            project=new.project,
            parent=new.parent,
            events=(msgspec.structs.replace(new.event, at=at),),
            team=team,
        )


async def find_message(store: Store, request: Request) -> Message:
    """Return the message that a path names; raises RequestRefused."""
    session, id = request.path_params["id"], request.path_params["message"]
    for message in await store.messages(session):
        if message.id == id:
            return message
    reason = f"session {session} has no message {id!r}"
    raise RequestRefused(404, reason, "Run `brimline inbox` to list messages.")


async def read_message(request: Request) -> NewMessage:
    """Decode a message to queue; raises RequestRefused, also if an agent could not read it."""
    new = await read_body(request, NewMessage)
    if not new.text.strip():
        raise RequestRefused(422, "the message is empty", "Write what the agent should read.")
    if (size := utf16_length(new.text)) > MAX_CONTEXT_CHARS:
        raise RequestRefused(
            413,
            f"the message has {size:,} characters, at most {MAX_CONTEXT_CHARS:,} are allowed",
            TOO_LONG_HINT,
        )
    return new


def _read_place(request: Request, order: Order) -> Place | None:
    """Return the place of `before` in the list; raises RequestRefused."""
    text = request.query_params.get("before")
    if text is None:
        return None
    field, size = BEFORE[order]
    *numbers, id = text.split(",", size)
    try:
        place = [float(number) for number in numbers]
    except ValueError:
        place = []
    if len(place) != size or not all(map(math.isfinite, place)):
        expected = f"a session's `{field}` and `id`, with commas"
        reason = f"query, before: expected {expected}: got {text!r}"
        raise RequestRefused(422, reason)
    return tuple(place if order == "need" else [-at for at in place]), id


def _link_to_next(request: Request, order: Order, last: EncodedSession) -> str:
    """Return the Link header of the page after a session (RFC 8288)."""
    place = last.rank if order == "need" else (last.seen_at,)
    asked = dict(request.query_params) | {"before": ",".join([*map(repr, place), last.id])}
    return f'</v1/sessions?{urlencode(asked)}>; rel="next"'


def _array_response(items: Sequence[bytes], turns: Turns) -> Response:
    """Return a JSON array of encoded items, sent in pieces."""

    def parts() -> Iterator[bytes]:
        yield b"["
        for place, item in enumerate(items):
            yield b"," + item if place else item
        yield b"]"

    commas = max(0, len(items) - 1)
    headers = {"content-length": str(sum(map(len, items)) + commas + len(b"[]"))}
    return StreamingResponse(
        in_pieces(parts(), turns), headers=headers, media_type="application/json"
    )


def _session_id(request: Request) -> str:
    """Return the session id of the path; raises RequestRefused if it is blank."""
    id: str = request.path_params["id"]
    if not id.strip():
        raise RequestRefused(422, f"invalid session id: {id!r}", SESSIONS_HINT)
    return id
