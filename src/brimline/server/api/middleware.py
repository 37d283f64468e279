"""The checks that every HTTP request passes before a route sees it.

Over the Unix socket, which only its user can open, a request is the user's own. Over TCP it must
name this machine and our port, must not come from a page of another origin, and must show the
secret, the page's cookie, or, for a hook, the token of hooks. A body has a size limit on both.
"""

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.hooks.client.exchange import MAX_EVENT_BYTES
from brimline.server.api.access import LINK_PATH, AccessControl
from brimline.server.api.responses import RETRY_AFTER_S, RequestRefused
from brimline.server.api.static import EXPLANATION_HEADERS, explanation

MAX_BODY_BYTES = 1 << 20
LARGER_BODY_BYTES = {"/v1/events": 16 << 20, "/hooks/": MAX_EVENT_BYTES}  # by path prefix

HOOKS = "/hooks/"
OPEN_SITES = (None, b"same-origin", b"none")
SINGLE_HEADERS = (
    b"host",
    b"origin",
    b"authorization",
    b"sec-fetch-site",
    b"content-length",
)  # two copies could be read differently

SHUTTING_DOWN = b'{"error":"the daemon is shutting down","hint":"Try again when it is back."}'
BAD_HOST = "the Host must be 127.0.0.1 or localhost with the daemon's port"
NO_SECRET = (
    b'{"error":"this request needs the daemon\'s secret","hint":"Programs: send `Authorization: '
    b"Bearer SECRET` with the text of the file `secret` in Brimline's state folder. Browsers: "
    b'`brimline open`."}'
)


class Refusal(NamedTuple):
    """The response to a request that is refused."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


class RequestGuard:
    """Passes allowed requests on, and refuses the others.

    Paths in `open_paths` need no secret: the user has opened them in the settings.
    """

    def __init__(self, app: ASGIApp, access: AccessControl, open_paths: Sequence[str] = ()) -> None:
        self._app = app
        self._access = access
        self._open_paths = tuple(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (refusal := self._refusal(scope)) is not None:
            await _answer(send, refusal)
        else:
            await self._pass_on(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        port = tcp_port(scope)
        if port is None:
            return None
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if problem := find_misdirection(headers, port):
            return _forbidden(problem)
        path = scope["path"]
        if path == LINK_PATH or path.startswith(self._open_paths) or self._is_authorized(scope):
            return None
        if path == "/":
            return Refusal(401, explanation(), EXPLANATION_HEADERS)
        return Refusal(401, NO_SECRET, [_JSON, (b"www-authenticate", b"Bearer")])

    def _is_authorized(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        authorization, cookies = headers.get(b"authorization"), headers.get(b"cookie")
        if self._access.has_secret(authorization) or self._access.has_cookie(cookies):
            return True
        is_hook = scope["method"] == "POST" and scope["path"].startswith(HOOKS)
        return is_hook and self._access.has_hook_token(authorization)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; respond with 503 if the daemon stops before a response has begun."""
        begun = False

        async def note_start(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except asyncio.CancelledError:
            if not begun:
                await _answer(send, Refusal(503, SHUTTING_DOWN, [_JSON, _RETRY_AFTER]))


class BodyLimit:
    """Refuses a body that is too long for its route before all of it arrived."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = limit = max_body_bytes(scope["path"])

        async def count() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                problem = f"the body has more than {limit:,} bytes"
                raise RequestRefused(413, problem, "Send less at a time.")
            return message

        await self._app(scope, count, send)


def tcp_port(scope: Scope) -> int | None:
    """Return the port that a request came to; None if it came over the Unix socket."""
    server = scope.get("server")
    return server[1] if server else None


def max_body_bytes(path: str) -> int:
    """Return how many bytes the body of a request to a path may have."""
    sizes = (size for begin, size in LARGER_BODY_BYTES.items() if path.startswith(begin))
    return next(sizes, MAX_BODY_BYTES)


def find_misdirection(headers: Sequence[tuple[bytes, bytes]], port: int) -> str | None:
    """Return why a request is for another host or from another site; None if it may pass.

    Other names could be pointed at 127.0.0.1 by a web page. A request without an Origin comes from
    no page; a page of another port belongs to another program.
    """
    for name in SINGLE_HEADERS:
        if sum(name == other for other, _ in headers) > 1:
            return f"more than one {name.decode().title()} header"
    found = dict(headers)
    host = found.get(b"host", b"")
    if not is_own_host(host, port):
        return BAD_HOST
    if found.get(b"origin") not in (None, b"http://" + host):
        return "the request comes from a page of another origin"
    if found.get(b"sec-fetch-site") not in OPEN_SITES:
        return "the request comes from another site"
    return None


def is_own_host(host: bytes, port: int) -> bool:
    """Return whether a Host header is a loopback address or `localhost`, with this port."""
    name, _, port_text = host.decode("latin-1").rpartition(":")
    if port_text != str(port):
        return False
    if name == "localhost":
        return True
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


_JSON = (b"content-type", b"application/json")
_RETRY_AFTER = (b"retry-after", b"%d" % RETRY_AFTER_S)


def _forbidden(problem: str) -> Refusal:
    body = f'{{"error":"forbidden: {problem}","hint":"Run `brimline open` to open the page."}}'
    return Refusal(403, body.encode(), [_JSON])


async def _answer(send: Send, refusal: Refusal) -> None:
    headers = [*refusal.headers, (b"content-length", b"%d" % len(refusal.body))]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
