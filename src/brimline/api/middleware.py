"""The checks that every HTTP request passes before a route sees it.

Over the Unix socket, which only its user can open, a request is the user's own. Over TCP it must
name this machine and our port, must not come from a page of another origin, and must show the
secret, the page's cookie, or, for a hook, the token of hooks. A body has a size limit on both.
"""

import asyncio
import ipaddress
from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.api.access import LINK_PATH, AccessControl
from brimline.api.responses import RequestRefused, json_response
from brimline.api.schemas import Problem
from brimline.api.static import sign_in_response
from brimline.hooks.client.exchange import MAX_EVENT_BYTES

MAX_BODY_BYTES = 1 << 20
LARGER_BODY_BYTES = {  # by path prefix
    "/v1/events": 16 << 20,
    "/v1/logs": 16 << 20,
    "/v1/traces": 16 << 20,
    "/v1/metrics": 16 << 20,
    "/v1/uplink": 8 << 20,
    "/hooks/": MAX_EVENT_BYTES,
}

HOOKS = "/hooks/"
OPEN_SITES = (None, b"same-origin", b"none")
# Two copies of one of these could be read differently.
SINGLE_HEADERS = (b"host", b"origin", b"authorization", b"sec-fetch-site", b"content-length")

SHUTTING_DOWN = Problem("the daemon is shutting down", "Try again when it is back.")
BAD_HOST = "the Host must be 127.0.0.1 or localhost with the daemon's port"
NO_SECRET = Problem(
    "this request needs the daemon's secret",
    "Programs: send `Authorization: Bearer SECRET` with the text of the file `secret` in "
    "Brimline's state folder. Browsers: `brimline open`.",
)


class RequestGuard:
    """Passes allowed requests on, and refuses the others.

    Paths in `open_paths` need no secret: the user has opened them in the settings.
    """

    def __init__(self, app: ASGIApp, access: AccessControl, open_paths: Sequence[str] = ()) -> None:
        self._app = app
        self._access = access
        self._open_paths = tuple(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send)
        else:
            await pass_on(self._app, scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        port = tcp_port(scope)
        if port is None:
            return None
        if reason := find_misdirection(scope["headers"], port):
            hint = "Run `brimline open` to open the page."
            return json_response(Problem(f"forbidden: {reason}", hint), 403)
        path = scope["path"]
        if path == LINK_PATH or path.startswith(self._open_paths) or self._is_authorized(scope):
            return None
        if path == "/":
            return sign_in_response()
        refusal = json_response(NO_SECRET, 401)
        refusal.headers["www-authenticate"] = "Bearer"
        return refusal

    def _is_authorized(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        authorization, cookies = headers.get(b"authorization"), headers.get(b"cookie")
        if self._access.has_secret(authorization) or self._access.has_cookie(cookies):
            return True
        is_hook = scope["method"] == "POST" and scope["path"].startswith(HOOKS)
        return is_hook and self._access.has_hook_token(authorization)


async def pass_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request on; respond with 503 if the daemon stops before a response has begun."""
    begun = False

    async def note_start(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, note_start)
    except asyncio.CancelledError:
        if not begun:
            await json_response(SHUTTING_DOWN, 503)(scope, receive, send)


class BodyLimit:
    """Refuses a body that is too long for its route before all of it arrived."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app, self._max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        limits = (size for start, size in LARGER_BODY_BYTES.items() if path.startswith(start))
        left = limit = next(limits, self._max_bytes)

        async def count() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                reason = f"the body has more than {limit:,} bytes"
                raise RequestRefused(413, reason, "Send less at a time.")
            return message

        await self._app(scope, count, send)


def tcp_port(scope: Scope) -> int | None:
    """Return the port that a request came to; None if it came over the Unix socket."""
    server = scope.get("server")
    return server[1] if server else None


def find_misdirection(headers: Sequence[tuple[bytes, bytes]], port: int) -> str | None:
    """Return why a request is for another host or from another site; None if it may pass.

    Other names could be pointed at 127.0.0.1 by a web page. A request without an Origin comes from
    no page; a page of another port belongs to another program.
    """
    if reason := find_repeated_header(headers):
        return reason
    values = dict(headers)
    host = values.get(b"host", b"")
    if not is_own_host(host, port):
        return BAD_HOST
    if values.get(b"origin") not in (None, b"http://" + host):
        return "the request comes from a page of another origin"
    if values.get(b"sec-fetch-site") not in OPEN_SITES:
        return "the request comes from another site"
    return None


def find_repeated_header(
    headers: Sequence[tuple[bytes, bytes]], more: Sequence[bytes] = ()
) -> str | None:
    """Return which header that may be sent once was sent again; `more` are added to ours."""
    names = [name for name, _ in headers]
    for name in (*SINGLE_HEADERS, *more):
        if names.count(name) > 1:
            return f"more than one {name.decode().title()} header"
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
