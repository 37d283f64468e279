"""Sign-in: a person enters a token, and the browser gets a cookie with a token of its own."""

import time
from collections.abc import Callable
from html import escape
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from brimline.api.identity import AccessScope
from brimline.api.request_limits import Allowance, too_many
from brimline.api.responses import RequestRefused
from brimline.api.static import SIGN_IN_HEADERS, plain_page
from brimline.server.fleet.authentication import (
    PAGE,
    Authenticator,
    TokenLookup,
    check_valid,
    create_token,
    is_same_origin,
)
from brimline.store.postgres.tokens import TokenTable

SIGN_IN_PATH, SIGN_OUT_PATH = "/sign-in", "/sign-out"
COOKIE_LIFETIME_S = 12 * 3_600
MAX_FORM_BYTES = 4 << 10  # anyone may send one, on any number of connections
MAX_PER_MINUTE = 60  # of a token: each is a row in the database until its cookie expires
SIGN_IN_SCOPES: tuple[AccessScope, ...] = ("read", "act")

FORM_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
)
FORM_HEADERS = SIGN_IN_HEADERS | {"content-security-policy": FORM_POLICY}
FORM = f"""<h1>Sign in to Brimline</h1>
{{reason}}<form method="post" action="{SIGN_IN_PATH}">
<label>Your token, with scope <code>read</code>
<input name="token" type="password" autocomplete="current-password" required autofocus></label>
<button>Sign in</button>
</form>
<p class="quiet">The server's administrator creates tokens with <code>brimline token create</code>.
You stay signed in for {COOKIE_LIFETIME_S // 3_600} hours. If you are signed in already,
<a href="{PAGE}">open the page</a>.</p>"""


class Cookie(msgspec.Struct, frozen=True):
    """The cookie of a signed-in browser; `is_secure` if browsers reach the server by TLS only."""

    name: str
    is_secure: bool

    @classmethod
    def of_server(cls, port: int, is_secure: bool) -> "Cookie":
        """Return the cookie; browsers let no other host and no plain HTTP set a `__Host-` one."""
        return cls("__Host-brimline" if is_secure else f"brimline-{port}", is_secure)

    def header(self, value: str, max_age_s: int) -> str:
        """Return the value of `Set-Cookie`."""
        fields = f"Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict"
        return f"{self.name}={value}; {fields}{'; Secure' if self.is_secure else ''}"


class SignIn:
    """The routes that need no identity: the form, sign in, sign out."""

    def __init__(
        self,
        table: TokenTable,
        tokens: TokenLookup,
        authenticator: Authenticator,
        cookie: Cookie,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table, self._tokens, self._clock = table, tokens, clock
        self._authenticator, self._cookie = authenticator, cookie
        self._allowance = Allowance(MAX_PER_MINUTE)
        self.routes = [
            Route(SIGN_IN_PATH, self._show_form, methods=["GET"]),
            Route(SIGN_IN_PATH, self._sign_in, methods=["POST"]),
            Route(SIGN_OUT_PATH, self._sign_out, methods=["POST"]),
        ]

    async def _show_form(self, request: Request) -> Response:
        return form_response()

    async def _sign_in(self, request: Request) -> Response:
        """Create a token for the browser; it ends with the one that the person entered."""
        _check_own_page(request)
        form = parse_qs((await request.body()).decode("latin-1"))
        text, now = form.get("token", [""])[0].strip(), self._clock()
        row = await self._authenticator.find_token(text, request.scope, is_fresh=True)
        try:
            check_valid(row, now)
        except RequestRefused as refused:
            return form_response(refused.reason, 401)
        assert row is not None
        scopes: list[AccessScope] = [each for each in SIGN_IN_SCOPES if each in row.scopes]
        if "read" not in scopes:
            return form_response(f"the token {row.name!r} lacks the scope 'read'", 403)
        parent = row.parent or row.id
        if wait_s := self._allowance.wait_s(parent):
            raise too_many("too many sign-ins with this token in a minute", wait_s)
        self._allowance.spend(parent, 1)
        end = min(now + COOKIE_LIFETIME_S, row.expires_at or now + COOKIE_LIFETIME_S)
        value, child = create_token(row.organisation, row.name, scopes, now, end, parent)
        await self._table.insert(child)
        return _redirect(self._cookie.header(value, int(end - now)))

    async def _sign_out(self, request: Request) -> Response:
        _check_own_page(request)
        text = self._authenticator.cookie(dict(request.scope["headers"])) or ""
        row = await self._authenticator.find_token(text, request.scope, is_fresh=True)
        if row is not None and row.is_sign_in:
            await self._table.revoke(row.organisation, row.id, self._clock())
            self._tokens.forget(text)
        return _redirect(self._cookie.header("", 0))


def form_response(reason: str | None = None, status: int = 200) -> Response:
    """Return the sign-in page."""
    shown = f"<p><strong>{escape(reason)}</strong></p>\n" if reason else ""
    return plain_page(FORM.replace("{reason}", shown), status, FORM_HEADERS)


def _check_own_page(request: Request) -> None:
    """Refuse a form of another site, which would sign someone in with its own token."""
    if not is_same_origin(dict(request.scope["headers"])):
        raise RequestRefused(403, "forbidden: the request comes from another site")


def _redirect(cookie: str) -> Response:
    headers = {"set-cookie": cookie, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return RedirectResponse(PAGE, 303, headers)
