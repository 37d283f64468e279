"""Who may use the daemon over TCP: a program with the secret, or a browser with our cookie.

A browser gets the cookie by a link that works once. Cookies do not know ports: a page that another
user serves on another port of 127.0.0.1 is sent ours too, so the peer's user is checked as well,
on systems that report it (`daemon/peer_credentials.py`).
"""

import hmac
import secrets
import time
from collections.abc import Callable

from brimline.daemon.secret import derive_token
from brimline.files.bounded_dict import BoundedDict

LINK_LIFETIME_S = 3_600.0
MAX_LINKS = 64
COOKIE_LIFETIME_S = 30 * 86_400
LINK_PATH = "/open"
BEARER = b"bearer "


class PageLinks:
    """Codes that open the page, each once and within an hour; the oldest go if there are many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expiries = BoundedDict[str, float](MAX_LINKS)

    def issue(self) -> str:
        code = secrets.token_urlsafe(24)
        self._expiries[code] = self._clock() + LINK_LIFETIME_S
        return code

    def redeem(self, code: str) -> bool:
        """Use a code up; False if it was never issued, was used before, or is too old."""
        expiry = self._expiries.pop(code, None)
        return expiry is not None and self._clock() < expiry


class AccessControl:
    """Compares what a request shows with the daemon's secret, in constant time."""

    def __init__(self, secret: str, port: int, links: PageLinks | None = None) -> None:
        self._port = port
        self._secret = secret.encode()
        self._hook_token = derive_token(secret, "hooks").encode()
        self._page_token = derive_token(secret, "page").encode()
        self.links = links or PageLinks()

    def page_link(self) -> str:
        """Return an address that opens the page in a browser, once."""
        return f"http://127.0.0.1:{self._port}{LINK_PATH}?code={self.links.issue()}"

    def cookie(self) -> str:
        """Return the `Set-Cookie` value for a browser that came by a link."""
        fields = f"Path=/; Max-Age={COOKIE_LIFETIME_S}; HttpOnly; SameSite=Strict"
        return f"{self._cookie_name}={self._page_token.decode()}; {fields}"

    def has_secret(self, authorization: bytes | None) -> bool:
        return hmac.compare_digest(bearer_token(authorization), self._secret)

    def has_hook_token(self, authorization: bytes | None) -> bool:
        return hmac.compare_digest(bearer_token(authorization), self._hook_token)

    def has_cookie(self, cookies: bytes | None) -> bool:
        value = find_cookie(cookies, self._cookie_name) or ""
        return hmac.compare_digest(value.encode("latin-1"), self._page_token)

    @property
    def _cookie_name(self) -> str:
        """One for each port: a browser sends the cookies of a host to all of its ports."""
        return f"brimline-{self._port}"


def bearer_token(authorization: bytes | None) -> bytes:
    """Return what follows `Bearer` in an Authorization header; empty if there is none."""
    value = authorization or b""
    return value[len(BEARER) :].strip() if value[: len(BEARER)].lower() == BEARER else b""


def find_cookie(header: bytes | None, name: str) -> str | None:
    """Return the value of one cookie in a Cookie header.

    `http.cookies` would stop at a cookie of another program on the same host that is not valid.
    """
    for cookie in (header or b"").decode("latin-1").split(";"):
        key, _, value = cookie.strip().partition("=")
        if key == name:
            return value
    return None
