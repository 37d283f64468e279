"""The middleware: size limits of bodies, and requests that the end of the daemon interrupts."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.api.access import AccessControl
from brimline.api.middleware import BodyLimit, RequestGuard
from brimline.api.responses import RequestRefused


def request(
    app: ASGIApp, path: str = "/", pieces: Iterable[bytes] = (), kind: str = "http"
) -> list[Message]:
    """Send a request over the Unix socket, its body in pieces; return the messages of the reply."""
    sent: list[Message] = []
    bodies = iter(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": next(bodies, b""), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(cast("Any", app({"type": kind, "path": path, "headers": []}, receive, send)))
    return sent


async def read_three_pieces(scope: Scope, receive: Receive, send: Send) -> None:
    for _ in range(3):
        await receive()


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/v1/sessions/s/messages", 1 << 20),
        ("/v1/events", 16 << 20),
        ("/v1/uplink", 8 << 20),
        ("/hooks/claude", 4 << 20),
        ("/healthz", 1 << 20),
    ],
)
def test_body_longer_than_the_limit_of_its_route_is_refused(path: str, limit: int) -> None:
    app, half = BodyLimit(read_three_pieces), b" " * (limit // 2)
    assert request(app, path, [half, half]) == []
    with pytest.raises(RequestRefused, match=f"more than {limit:,} bytes") as refused:
        request(app, path, [half, half, b" "])
    assert refused.value.status == 413


def guarded(*messages: Message) -> RequestGuard:
    """Return a guard of an app that the end of the daemon cancels after these messages."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        raise asyncio.CancelledError

    return RequestGuard(app, AccessControl("secret", 0))


START: Message = {"type": "http.response.start", "status": 200, "headers": []}


def test_request_that_the_end_of_the_daemon_interrupts_gets_503() -> None:
    start, body = request(guarded())
    assert start["status"] == 503
    assert b"shutting down" in body["body"]


def test_response_that_has_begun_gets_no_second_status() -> None:
    assert request(guarded(START)) == [START]


def test_guard_leaves_the_lifespan_to_the_app() -> None:
    with pytest.raises(asyncio.CancelledError):
        request(guarded(), kind="lifespan")
