"""Who may ask: this machine, by a name that is its own; no page of another site."""

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = frozenset({"127.0.0.1", "localhost", "::1", "brimline"})
"""Names by which a request may reach us; a page that points its own name here has another."""


class Guard:
    """Refuses a Host or an Origin that is not this machine's own, on every route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may ask."""
        if scope["type"] != "http" or allowed(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        body = b'{"error":"only this machine may ask","hint":"Use 127.0.0.1."}'
        await send({"type": "http.response.body", "body": body})


def allowed(headers: dict[bytes, bytes]) -> bool:
    """Whether these headers name this machine; a request without an Origin is no page's."""
    origin = headers.get(b"origin")
    host = _name(b"//" + headers.get(b"host", b""))
    return host in NAMES and (origin is None or _name(origin) in NAMES)


def _name(address: bytes) -> str | None:
    try:
        return urlsplit(address.decode("latin-1")).hostname
    except ValueError:
        return None
