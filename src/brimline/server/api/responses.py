"""How a request's body is read, and how an answer is written."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from brimline.errors import BrimlineError
from brimline.server.api.openapi import Endpoint
from brimline.server.api.schemas import Problem
from brimline.server.retry import is_transient
from brimline.settings import seconds

BodyT = TypeVar("BodyT")

RETRY_AFTER_S = 1
"""When to try again after a 503: the store is busy, the daemon ends, or it has too much to do."""

ALL_TIME = "all"
RETRY_HINT = "Try again."
SESSIONS_HINT = "`brimline status --all` lists the sessions on this machine."
ENDPOINTS_HINT = "/openapi.json lists what is offered."


class Routes(Protocol):
    """A part of the API: its endpoints, and a method for the handler of each."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """What is offered."""
        ...


class RequestRefused(Exception):
    """A request that is not answered as asked; why, and with which status."""

    def __init__(self, status: int, error: str, hint: str | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint


def unknown_session(id: str) -> RequestRefused:
    """The answer where a session is not known."""
    return RequestRefused(404, f"no session {id!r}", SESSIONS_HINT)


def json_response(value: object, status: int = 200) -> Response:
    """A value as a JSON answer; what fails for now says when to try again."""
    headers = {"retry-after": str(RETRY_AFTER_S)} if status == 503 else None
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


async def read_body(request: Request, kind: type[BodyT]) -> BodyT:
    """The body of a request; Refused where it is something else."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRefused(422, str(error)) from error


def read_since(request: Request, default: str, now: float) -> float:
    """The time since which something is asked for: a span before now, or `all`."""
    span = request.query_params.get("since", default)
    return 0.0 if span == ALL_TIME else now - seconds(span, place="query")


async def refusal_response(request: Request, error: Exception) -> Response:
    """The answer to what was refused, here or further in; 503 where it may go well later."""
    if isinstance(error, RequestRefused):
        return json_response(Problem(error.error, error.hint), error.status)
    hint = error.hint if isinstance(error, BrimlineError) else None
    said = str(error).partition("\n")[0]
    if is_transient(error):
        return json_response(Problem(said, f"{hint} {RETRY_HINT}"), 503)
    return json_response(Problem(said, hint), 422)


async def http_error_response(request: Request, error: Exception) -> Response:
    """The answer where nothing is, or where it is asked for in another way."""
    assert isinstance(error, HTTPException)
    asked = f"{error.detail}: {request.method} {request.url.path}"
    answer = json_response(Problem(asked, ENDPOINTS_HINT), error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def failure_response(request: Request, error: Exception) -> Response:
    """The answer to a fault of ours, which is in the log."""
    return json_response(
        Problem(f"this went wrong: {error!r}", "The daemon's log says where."), 500
    )
