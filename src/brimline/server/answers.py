"""How a request's body is read, and how an answer is written."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.errors import BrimlineError
from brimline.server.bodies import Problem
from brimline.server.openapi import Endpoint

BodyT = TypeVar("BodyT")


class Routes(Protocol):
    """A part of the API: its endpoints, and a method for the handler of each."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """What is offered."""
        ...


class Refused(Exception):
    """A request that is not answered as asked; why, and with which status."""

    def __init__(self, status: int, error: str, hint: str | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint


def json(value: object, status: int = 200) -> Response:
    """A value as a JSON answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def body(request: Request, kind: type[BodyT]) -> BodyT:
    """The body of a request; Refused where it is something else."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.DecodeError as error:
        raise Refused(422, str(error)) from error


async def refused(request: Request, error: Exception) -> Response:
    """The answer to what was refused, here or further in."""
    if isinstance(error, Refused):
        return json(Problem(error.error, error.hint), error.status)
    hint = error.hint if isinstance(error, BrimlineError) else None
    return json(Problem(str(error).partition("\n")[0], hint), 422)
