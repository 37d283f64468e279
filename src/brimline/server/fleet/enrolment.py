"""Enrolment: a machine that has its team's token has the server store one of its own."""

import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from brimline.api.identity import find_identity
from brimline.api.openapi import Endpoint
from brimline.api.responses import RequestRefused, json_response, read_body
from brimline.api.schemas import MAX_ID_CHARS
from brimline.daemon.uplink.protocol import ENROL_PATH, MachineEnrolled, MachineEnrolment
from brimline.server.fleet.authentication import create_id
from brimline.store.postgres.tokens import ELSEWHERE, MACHINE_LIFETIME_S, TokenRow, TokenTable
from brimline.terminal.text import strip_control

MAX_NAME_CHARS = 64
INVALID_MACHINE = "the id of a machine is empty, too long or not printable"
REFUSED_HINT = (
    "Whoever runs the server can create another enrolment token: "
    "`brimline token create --scope enrol --machines N`."
)
ELSEWHERE_HINT = (
    "If it has lost that one, whoever runs the server can end it: "
    "`brimline token revoke --machine {}`."
)


class EnrolmentRoutes:
    endpoints = (
        Endpoint("POST", ENROL_PATH, "enrol", "Store the token that a machine has made.",
                 MachineEnrolled, MachineEnrolment, 201, scope="enrol"),
    )  # fmt: skip

    def __init__(self, tokens: TokenTable, clock: Callable[[], float] = time.time) -> None:
        self._tokens, self._clock = tokens, clock

    async def enrol(self, request: Request) -> Response:
        """Store a token that can report as this machine alone, in the team of the enrolment."""
        new, identity = await read_body(request, MachineEnrolment), find_identity(request.scope)
        if not 0 < len(new.machine) <= MAX_ID_CHARS or not new.machine.isprintable():
            raise RequestRefused(422, INVALID_MACHINE)
        assert identity is not None
        assert identity.owner is not None  # no user of a proxy has the scope
        now = self._clock()
        expires_at = now + MACHINE_LIFETIME_S
        row = TokenRow(
            organisation=identity.organisation,
            id=create_id(),
            hash=new.hash,
            name=strip_control(new.host or "")[:MAX_NAME_CHARS] or "unknown host",
            scopes=("ingest",),
            created_at=now,
            expires_at=expires_at,
            parent=identity.owner.token,
            machine=new.machine,
            team=identity.owner.team,
        )
        if (reason := await self._tokens.enrol(row, new.earlier)) is not None:
            hint = ELSEWHERE_HINT.format(new.machine) if reason == ELSEWHERE else REFUSED_HINT
            raise RequestRefused(403, reason, hint)
        return json_response(MachineEnrolled(new.machine, expires_at, row.team), 201)
