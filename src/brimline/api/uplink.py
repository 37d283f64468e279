"""The uplink of machines: stores their sessions, returns messages and documents for them."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, get_args

import msgspec
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.identity import find_identity
from brimline.api.openapi import Endpoint
from brimline.api.responses import RequestRefused, json_response, plausible_time
from brimline.api.schemas import MAX_AGENT_CHARS, MAX_ID_CHARS
from brimline.api.telemetry.request_body import read_decompressed
from brimline.context.inbox import (
    PENDING_STATES,
    Message,
    before_handed_out,
    sign_text,
    with_expiry,
)
from brimline.context.policy.signals import SignalKind
from brimline.daemon.retry import is_transient
from brimline.daemon.uplink.protocol import (
    DOCUMENT_LIFETIME_S,
    MAX_MACHINE_PENDING,
    MAX_MESSAGES_BYTES,
    MAX_REPLY_MESSAGES,
    MAX_SESSION_PENDING,
    PATH,
    UplinkBatch,
    UplinkDocument,
    UplinkMessage,
    UplinkReply,
    UplinkSession,
)
from brimline.daemon.uplink.server_messages import accepts_handoffs, accepts_messages
from brimline.errors import MalformedJson, StoreFailed
from brimline.files.foreign_json import JsonDecoder
from brimline.store.base import (
    ClaimSession,
    MarkMessage,
    PutCall,
    PutCompaction,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    RecordSignal,
    SetReceive,
    Store,
    UseHandoff,
    Write,
)
from brimline.store.fleet import MachineReport
from brimline.store.rows import HandoffRow, SessionRow, SignalRow

KINDS = frozenset[str](get_args(SignalKind))
MAX_COUNT = 1_000_000_000  # that a machine may claim: more does not fit into the database
OTHER_MACHINE_HINT = "Each machine makes its own from the team's enrolment token."
INVALID_ID = "the id of a session, agent or machine is empty or too long"

_batches = JsonDecoder(UplinkBatch)


class MachineReports(Protocol):
    """Stores what machines say of themselves."""

    async def report(self, report: MachineReport) -> None: ...


class UplinkRoutes:
    endpoints = (
        Endpoint("POST", PATH, "exchange", "Store a machine's sessions; return what people sent "
                 "to them.", UplinkReply, UplinkBatch, scope="ingest"),
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        machines: MachineReports | None = None,
    ) -> None:
        """`machines` stores who reports, if anybody lists them."""
        self._store, self._clock, self._machines = store, clock, machines

    async def exchange(self, request: Request) -> Response:
        batch = _decode(await read_decompressed(request))
        if not 0 < len(batch.machine) <= MAX_ID_CHARS:
            raise RequestRefused(422, INVALID_ID)
        identity = find_identity(request.scope)
        owner = identity.owner if identity else None
        if owner is not None:
            if owner.machine not in (None, batch.machine):
                raise RequestRefused(403, "this token is another machine's", OTHER_MACHINE_HINT)
            batch = replace(batch, team=owner.team or batch.team)
        return json_response(await self.take(batch, owner.token if owner else None))

    async def take(self, batch: UplinkBatch, token: str | None = None) -> UplinkReply:
        """Store a batch; a session that the store refuses does not keep others from being stored.

        What is stored already has no effect, so that a batch may come again.
        """
        now, stamps = self._clock(), f"machine {batch.machine}"
        stamp = await self._store.cursor(stamps)
        refused = await self._store_sessions(batch, PutCursor(stamps, batch.stamp), now)
        if self._machines is not None:
            report = replace(_machine_report(batch, refused, now), token=token)
            await self._machines.report(report)
        writes: list[Write] = [
            *(MarkMessage(id, "delivered", PENDING_STATES, now) for id in batch.delivered),
            *(MarkMessage(id, "cancelled", PENDING_STATES, now) for id in batch.refused),
        ]
        if batch.is_first:  # the setting changes with a restart: sessions that ended get it too
            writes.append(SetReceive(batch.machine, batch.receive))
        if writes:
            await self._store.write(writes)
        stored, handoffs = await self._store.machine_deliveries(
            batch.machine, now - DOCUMENT_LIFETIME_S
        )
        messages, cancelled = await self._take_messages(stored, batch, now)
        documents = _new_documents(handoffs, batch) if accepts_handoffs(batch.receive) else []
        return UplinkReply(messages, documents, cancelled, refused, batch.machine, stamp)

    async def _store_sessions(
        self, batch: UplinkBatch, stamp: PutCursor, now: float
    ) -> dict[str, str]:
        """Store the sessions, and that this batch was stored; return why some were refused."""
        refused = {each.id: INVALID_ID for each in batch.sessions if not _is_named(each)}
        sessions = [each for each in batch.sessions if each.id not in refused]
        if not sessions:
            return refused
        lists: list[list[Write]] = [list(session_writes(each, batch, now)) for each in sessions]
        # Together: the store writes what waits in one transaction.
        reasons = await asyncio.gather(*map(self._store_writes, [*lists, [stamp]]))
        pairs = zip(sessions, reasons[:-1], strict=True)
        return refused | {session.id: reason for session, reason in pairs if reason is not None}

    async def _store_writes(self, writes: list[Write]) -> str | None:
        """Store a session, or a stamp; return why it was refused."""
        try:
            await self._store.write(writes)
        except StoreFailed as error:
            if is_transient(error):
                raise
            return error.reason
        return None

    async def _take_messages(
        self, stored: list[Message], batch: UplinkBatch, now: float
    ) -> tuple[list[UplinkMessage], list[str]]:
        """Hand out the messages that people sent to the machine's sessions.

        They are handed out again after a time, unless the machine reports that it holds them; until
        then no later message of the same session is. No more are handed out than the machine holds
        at a time. Also return which of those it holds are no longer pending.
        """
        pending = [each for each in stored if with_expiry(each, now).state in PENDING_STATES]
        held, waiting = set(batch.held), {each.id for each in pending}
        lines: dict[str, list[Message]] = {}
        for each in pending:
            if each.id not in held:
                lines.setdefault(each.session, []).append(each)
        holding = Counter(each.session for each in pending if each.id in held)
        due = [
            message
            for session, line in lines.items()
            for message in before_handed_out(line, now)[
                : max(0, MAX_SESSION_PENDING - holding[session])
            ]
        ]
        room = min(MAX_REPLY_MESSAGES, max(0, MAX_MACHINE_PENDING - holding.total()))
        due = _first_that_fit(due[:room] if accepts_messages(batch.receive) else [], now)
        marks = [MarkMessage(each.id, "handed", (each.state,), now, each.handed_at) for each in due]
        won = await self._store.write(marks)
        # Another request has handed out some: later ones of the session must not come before them.
        taken = {each.session for each, is_ours in zip(due, won, strict=True) if not is_ours}
        messages = [_message(each, now) for each in due if each.session not in taken]
        return messages, [id for id in batch.held if id not in waiting]


def session_writes(session: UplinkSession, batch: UplinkBatch, now: float) -> Iterator[Write]:
    """Yield what stores a session of a machine.

    A session belongs to the machine that reported it last. One from the far future would be shown
    first, and never be removed.
    """
    id = session.id
    yield ClaimSession(id, batch.machine)
    yield PutSession(
        SessionRow(
            id=id,
            agent=session.agent,
            seen_at=plausible_time(session.seen_at, now),
            host=batch.host,
            project=session.project,
            model=session.model,
            version=session.version,
            title=session.title,
            parent=session.parent,
            ended_at=session.ended_at,
            became=session.became,
            became_at=session.became_at,
            manager_id=session.manager_id,
            is_fork=session.is_fork,
            user=batch.user,
            team=batch.team,
            machine=batch.machine,
            receive=batch.receive,
        )
    )
    yield from (PutThread(replace(row, session=id)) for row in session.threads)
    yield from (PutCall(replace(row, session=id)) for row in session.calls)
    yield from (PutCompaction(replace(row, session=id)) for row in session.compactions)
    # A newer daemon may have kinds that this server does not know.
    signals = [row for row in session.signals if row.kind in KINDS]
    yield from (RecordSignal(SignalRow(**asdict(row), session=id)) for row in signals)
    for row in session.handoffs:
        yield PutHandoff(HandoffRow(**asdict(row), session=id, path="", text=""))
        if row.used_at is not None:  # the document may be one that was sent from here
            yield UseHandoff(row.id, row.used_at)


def _machine_report(batch: UplinkBatch, refused: Mapping[str, str], now: float) -> MachineReport:
    """Return what a batch says of its machine; the sessions that it brought are not behind."""
    behind = batch.behind - len(batch.sessions)
    return MachineReport(
        id=batch.machine,
        host=batch.host,
        user=batch.user,
        team=batch.team,
        version=batch.version,
        receive=batch.receive,
        behind=min(max(0, behind), MAX_COUNT),
        refused=min(max(len(refused), batch.refused_sessions), MAX_COUNT),
        refusal=next(iter(refused.values()), None),
        last_at=now,
    )


def _is_named(session: UplinkSession) -> bool:
    is_id_valid = bool(session.id.strip()) and len(session.id) <= MAX_ID_CHARS
    return is_id_valid and 0 < len(session.agent) <= MAX_AGENT_CHARS


def _message(message: Message, now: float) -> UplinkMessage:
    return UplinkMessage(
        id=message.id,
        session=message.session,
        text=message.text.removeprefix(sign_text("", message.sender)),  # the machine labels it
        sender=message.sender,
        urgency=message.urgency,
        blocks_stop=message.blocks_stop,
        expires_in_s=None if message.expires is None else message.expires - now,
    )


def _new_documents(handoffs: list[HandoffRow], batch: UplinkBatch) -> list[UplinkDocument]:
    """Return the first document that the machine does not have.

    One at a time: a reply has a limited size, and a document up to 256 KiB.
    """
    new = [row for row in handoffs if row.id not in batch.documents][:1]
    return [UplinkDocument(row.id, row.session, row.text, row.author, row.path) for row in new]


def _first_that_fit(messages: list[Message], now: float) -> list[Message]:
    size = 0
    for place, message in enumerate(messages):
        size += len(msgspec.json.encode(_message(message, now)))
        if size > MAX_MESSAGES_BYTES:
            return messages[:place]
    return messages


def _decode(body: bytes) -> UplinkBatch:
    try:
        return _batches.decode(body)
    except MalformedJson as error:
        raise RequestRefused(422, str(error)) from error
