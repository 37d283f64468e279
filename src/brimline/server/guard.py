"""Who may ask, and how much: this machine, by a name that is its own; no page of another site."""

import asyncio
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.hooks.asking import BODY_LONGEST
from brimline.server.answers import Refused

NAMES = frozenset({"127.0.0.1", "localhost", "::1", "brimline"})
"""Names by which a request may reach us; a page that points its own name here has another."""

LONGEST = 1 << 20
LONGER = {"/v1/events": 16 << 20, "/hooks/": BODY_LONGEST}
"""Bytes of a body; more where many events come at once, and a hook brings what its client tells."""

ENDS = b'{"error":"the daemon ends","hint":"Try again when it is back."}'


class Guard:
    """Refuses a Host or an Origin that is not this machine's own, on every route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may ask."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif allowed(dict(scope["headers"])):
            await self._until_the_end(scope, receive, send)
        else:
            body = b'{"error":"only this machine may ask","hint":"Use 127.0.0.1."}'
            await _answer(send, 403, body)

    async def _until_the_end(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on; who is still asking when the daemon ends is told so."""
        begun = False

        async def sends(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sends)
        except asyncio.CancelledError:
            if not begun:
                await _answer(send, 503, ENDS)


class Limit:
    """Refuses a body that is longer than its route takes, before all of it is there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is short enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = most = longest(scope["path"])

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                expected = f"expected a body of at most {most:,} bytes: got more"
                raise Refused(413, expected, "Send less at a time.")
            return message

        await self._app(scope, counted, send)


def longest(path: str) -> int:
    """How many bytes the body of a request to a path may have."""
    return next((size for begin, size in LONGER.items() if path.startswith(begin)), LONGEST)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def allowed(headers: dict[bytes, bytes]) -> bool:
    """Whether these headers name this machine, and a page is our own.

    A request without an Origin is no page's. A page of another port is another program's.
    """
    host, origin = headers.get(b"host", b""), headers.get(b"origin")
    return _name(b"//" + host) in NAMES and origin in (None, b"http://" + host)


def _name(address: bytes) -> str | None:
    try:
        return urlsplit(address.decode("latin-1")).hostname
    except ValueError:
        return None
