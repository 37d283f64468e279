"""Read request bodies and write responses, also for errors."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from brimline.api.openapi import Endpoint
from brimline.api.schemas import Problem
from brimline.daemon.retry import is_transient
from brimline.errors import BrimlineError, MalformedJson
from brimline.files.foreign_json import decode_json
from brimline.settings import seconds

BodyT = TypeVar("BodyT")
ChoiceT = TypeVar("ChoiceT", bound=str)

MAX_CLOCK_SKEW_S = 86_400.0
MAX_DIGITS = 18  # fits into an integer of the database
RETRY_AFTER_S = 1  # after a 503: the store is busy, or the daemon is stopping or overloaded

ALL_TIME = "all"
RETRY_HINT = "Try again."
SESSIONS_HINT = "`brimline status --all` lists the sessions on a machine."
ENDPOINTS_HINT = "See /openapi.json for all endpoints."


class Routes(Protocol):
    """A part of the API: its endpoints, with a method for each handler."""

    @property
    def endpoints(self) -> Sequence[Endpoint]: ...


class RequestRefused(BrimlineError):
    """A request that gets an error response; `retry_after_s` if it may be repeated after a time."""

    def __init__(
        self, status: int, reason: str, hint: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.hint = status, reason, hint
        self.retry_after_s = retry_after_s


def unknown_session(id: str) -> RequestRefused:
    return RequestRefused(404, f"no session {id!r}", SESSIONS_HINT)


def json_response(value: object, status: int = 200) -> Response:
    """Return a JSON response; a 503 says when to retry."""
    headers = {"retry-after": str(RETRY_AFTER_S)} if status == 503 else None
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


async def read_body(request: Request, kind: type[BodyT]) -> BodyT:
    """Decode the body of a request; raises RequestRefused."""
    try:
        return decode_json(await request.body(), kind)
    except MalformedJson as error:
        raise RequestRefused(422, str(error)) from error


def read_since(request: Request, default: str, now: float) -> float:
    """Return the start of the span in the query parameter `since`, which may be `all`."""
    span = request.query_params.get("since", default)
    return 0.0 if span == ALL_TIME else now - seconds(span, place="query")


def plausible_time(at: float | None, now: float) -> float:
    """Return the time of an event, or the present if it is missing or far in the future."""
    return at if at is not None and 0 < at < now + MAX_CLOCK_SKEW_S else now


def read_flag(request: Request, name: str) -> bool:
    """Return a query parameter that is 0, the default, or 1; raises RequestRefused."""
    value = request.query_params.get(name, "0")
    if value not in ("0", "1"):
        raise RequestRefused(422, f"query, {name}: expected 0 or 1: got {value!r}")
    return value == "1"


def read_number(request: Request, name: str) -> int | None:
    """Return a query parameter that is a positive number; raises RequestRefused."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if len(text) > MAX_DIGITS or not text.isdecimal() or int(text) == 0:
        raise RequestRefused(422, f"query, {name}: expected a number above 0: got {text!r}")
    return int(text)


def read_choice(request: Request, name: str, choices: tuple[ChoiceT, ...]) -> ChoiceT:
    """Return a query parameter that is one of some words, the first by default."""
    value = request.query_params.get(name, choices[0])
    for choice in choices:
        if choice == value:
            return choice
    expected = ", ".join(choices)
    raise RequestRefused(422, f"query, {name}: expected one of {expected}: got {value!r}")


async def refusal_response(request: Request, error: Exception) -> Response:
    """Return the response to an error of the request; 503 if a retry may succeed."""
    if isinstance(error, RequestRefused):
        response = json_response(Problem(error.reason, error.hint), error.status)
        if error.retry_after_s is not None:
            response.headers["retry-after"] = str(error.retry_after_s)
        return response
    hint = error.hint if isinstance(error, BrimlineError) else None
    reason = str(error).partition("\n")[0]
    if is_transient(error):
        return json_response(Problem(reason, f"{hint} {RETRY_HINT}"), 503)
    return json_response(Problem(reason, hint), 422)


async def http_error_response(request: Request, error: Exception) -> Response:
    """Return the response to an unknown path or method."""
    assert isinstance(error, HTTPException)
    reason = f"{error.detail}: {request.method} {request.url.path}"
    response = json_response(Problem(reason, ENDPOINTS_HINT), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def disconnect_response(request: Request, error: Exception) -> Response:
    """Return the response to a client that has gone before its body was complete."""
    return json_response(Problem("the body ended too early", RETRY_HINT), 400)


async def failure_response(request: Request, error: Exception) -> Response:
    """Return the response to a bug of ours; its traceback is in the log."""
    return json_response(
        Problem(f"internal error: {error!r}", "See the traceback in the daemon's log."), 500
    )
