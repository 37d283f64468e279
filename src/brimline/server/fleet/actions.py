"""What people send to agents through a fleet's server; the audit log has it before it is sent."""

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.identity import Identity, find_identity
from brimline.api.openapi import Endpoint
from brimline.api.responses import RequestRefused, json_response, read_body, read_number
from brimline.api.schemas import Cancelled, NewHandoffText, NewMessage, Sent
from brimline.api.sessions import (
    SESSION_PATH,
    TOO_LONG_HINT,
    find_message,
    read_message,
)
from brimline.context.inbox import PENDING_STATES, utf16_length, with_expiry
from brimline.daemon.uplink.protocol import (
    DOCUMENT_LIFETIME_S,
    MAX_MACHINE_PENDING,
    MAX_SESSION_PENDING,
)
from brimline.daemon.uplink.server_messages import (
    MAX_BODY_CHARS,
    accepts_handoffs,
    accepts_messages,
    quote_text,
)
from brimline.handoff.document import receive_document
from brimline.monitor.monitor import Monitor
from brimline.store.base import Store
from brimline.store.postgres.audit import AuditLog, AuditRow
from brimline.store.rows import HandoffRow, SessionRow

ID_BYTES = 16
MAX_ENTRIES = 1_000
DEFAULT_ENTRIES = 100

RECEIVE_HINT = "Its user can set `[uplink] receive` there, and restart the daemon."
PENDING = "pending messages: send it when the agent has read some, or cancel some"

NOT_TYPED = "a server cannot type into a pane"
NO_MACHINE_HINT = (
    "Only its client's telemetry reports this session. Run Brimline's daemon with an uplink on its "
    "machine to send to it."
)


class AuditEntry(msgspec.Struct, frozen=True):
    """Who did what: `subject` is the id of a message, the SHA-256 of a handoff's text, or a token.

    `place` is the entry's position in the log: `before=PLACE` lists the entries before it.
    """

    at: float
    actor: str
    action: str
    session: str | None
    subject: str | None
    place: int


class ActionRoutes:
    """Messages and handoffs to the sessions of machines, which get them by their uplinks."""

    endpoints = (
        Endpoint("POST", f"{SESSION_PATH}/messages", "send", "Queue a message.", Sent, NewMessage,
                 201, needs_session=True),
        Endpoint("DELETE", f"{SESSION_PATH}/messages/{{message}}", "cancel",
                 "Cancel a pending message.", Cancelled, may_be_missing=True),
        Endpoint("POST", f"{SESSION_PATH}/handoff", "hand_over",
                 "Save a handoff document for a session.", HandoffRow, NewHandoffText, 201,
                 needs_session=True),
        Endpoint("GET", "/v1/audit", "audit",
                 "List who sent what to agents, and what became of tokens, the last first.",
                 list[AuditEntry], query=("limit", "before")),
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        audit: AuditLog,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._monitor, self._audit, self._clock = store, monitor, audit, clock

    async def send(self, request: Request, row: SessionRow) -> Response:
        """Queue a message; its sender is who sent the request, whatever the body says."""
        new, id = await read_message(request), secrets.token_hex(ID_BYTES)
        await self._check_message(row, new.text)
        sender = await self._record(request, "message", row.id, id)
        urgency = "urgent" if new.urgent else "sequential"
        await self._monitor.send(row.id, new.text, urgency, sender.actor, new.blocks_stop, id)
        return json_response(Sent(id, not_typed=NOT_TYPED if new.wake else None), 201)

    async def cancel(self, request: Request) -> Response:
        message = await find_message(self._store, request)
        await self._record(request, "cancellation", message.session, message.id)
        return json_response(Cancelled(await self._monitor.cancel(message)))

    async def hand_over(self, request: Request, row: SessionRow) -> Response:
        new = await read_body(request, NewHandoffText)
        document = receive_document(new.text, new.name, self._clock())
        await self._check_handoff(row)
        sender = await self._record(request, "handoff", row.id, document.sha256)
        return json_response(await self._monitor.hand_over(row.id, document, sender.actor), 201)

    async def audit(self, request: Request) -> Response:
        limit = read_number(request, "limit") or DEFAULT_ENTRIES
        organisation = _identity(request).organisation
        rows = await self._audit.list(
            organisation, min(limit, MAX_ENTRIES), read_number(request, "before")
        )
        return json_response(msgspec.convert(rows, list[AuditEntry], from_attributes=True))

    async def _check_message(self, row: SessionRow, text: str) -> None:
        """Raise RequestRefused if the session's machine would refuse a message."""
        machine = _machine_of(row, "messages", accepts_messages(row.receive))
        if (size := utf16_length(quote_text(text))) > MAX_BODY_CHARS:
            reason = f"the message has {size:,} characters, at most {MAX_BODY_CHARS:,} are allowed"
            raise RequestRefused(413, reason, TOO_LONG_HINT)
        stored, _ = await self._store.machine_deliveries(machine, math.inf)
        pending = [with_expiry(each, self._clock()) for each in stored]
        counts = Counter(each.session for each in pending if each.state in PENDING_STATES)
        if counts[row.id] >= MAX_SESSION_PENDING:
            raise RequestRefused(409, f"session {row.id} has {MAX_SESSION_PENDING} {PENDING}")
        if counts.total() >= MAX_MACHINE_PENDING:
            raise RequestRefused(
                409, f"the machine of {row.id} has {MAX_MACHINE_PENDING} {PENDING}"
            )

    async def _check_handoff(self, row: SessionRow) -> None:
        """Raise RequestRefused if the session's machine would refuse a document."""
        _machine_of(row, "handoffs", accepts_handoffs(row.receive))
        since, rows = self._clock() - DOCUMENT_LIFETIME_S, await self._store.handoffs(row.id)
        if sum(bool(each.text) and each.at > since for each in rows) >= MAX_SESSION_PENDING:
            reason = f"session {row.id} got {MAX_SESSION_PENDING} handoffs within a day"
            raise RequestRefused(409, reason, "Send the next one later.")

    async def _record(self, request: Request, action: str, session: str, subject: str) -> Identity:
        """Write an entry about the sender of a request, and return the sender."""
        sender = _identity(request)
        at = self._clock()
        await self._audit.append(
            AuditRow(sender.organisation, at, sender.actor, action, session, subject)
        )
        return sender


def _identity(request: Request) -> Identity:
    identity = find_identity(request.scope)
    assert identity is not None  # the server passes no request on without one
    return identity


def _machine_of(row: SessionRow, what: str, is_accepted: bool) -> str:
    if row.machine is None:
        raise RequestRefused(409, f"no machine delivers to session {row.id}", NO_MACHINE_HINT)
    if not is_accepted:
        raise RequestRefused(409, f"the machine of {row.id} accepts no {what}", RECEIVE_HINT)
    return row.machine
