"""Who sends a request: a token, a browser with our cookie, or a user whom a proxy has signed in."""

import ipaddress
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from typing import cast

from starlette.types import Scope

from brimline.api.access import bearer_token, find_cookie
from brimline.api.identity import AccessScope, Identity
from brimline.api.middleware import OPEN_SITES, find_repeated_header
from brimline.api.request_limits import Allowance, too_many
from brimline.api.responses import RequestRefused
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.uplink.token_text import (
    ENROLMENT_PREFIX,
    PREFIX,
    TEXT_PATTERN,
    create_text,
    hash_token,
)
from brimline.errors import StoreFailed
from brimline.files.bounded_dict import BoundedDict
from brimline.settings import FleetSettings
from brimline.store.fleet import TokenOwner
from brimline.store.postgres.tokens import TokenRow, TokenTable

PAGE = "/"
SAFE_METHODS = ("GET", "HEAD")
MAX_USER_CHARS = 200
FORWARDED_FOR, MAX_ADDRESS_CHARS = b"x-forwarded-for", 64

TOKEN_HINT = (
    "Send `Authorization: Bearer TOKEN`; `brimline token create` makes a token. In a browser, "
    "open the server's address and sign in."
)
NEW_TOKEN_HINT = "Create another with `brimline token create`."

ID_BYTES = 6

LOOKUP_LIFETIME_S = 3.0  # a revoked token is refused after this time
MAX_LOOKUPS = 20_000
UNKNOWN_PER_MINUTE = 600  # from one address, which may be a proxy of many


def create_token(
    organisation: str,
    name: str,
    scopes: Collection[AccessScope],
    now: float,
    expires_at: float | None = None,
    parent: str | None = None,
    team: str | None = None,
    max_machines: int | None = None,
) -> tuple[str, TokenRow]:
    """Return a new token's text and its row, which is still to be stored."""
    text = create_text(ENROLMENT_PREFIX if "enrol" in scopes else PREFIX)
    row = TokenRow(
        organisation=organisation,
        id=create_id(),
        hash=hash_token(text),
        name=name,
        scopes=tuple(sorted(set(scopes))),
        created_at=now,
        expires_at=expires_at,
        parent=parent,
        team=team,
        max_machines=max_machines,
    )
    return text, row


def create_id() -> str:
    return secrets.token_hex(ID_BYTES)


class TokenLookup:
    """Finds tokens by their texts; what the database returned is used for LOOKUP_LIFETIME_S.

    Texts are compared by their hashes, so the time of a comparison says nothing about a token. An
    address that shows many unknown tokens has to wait, except with tokens that are known here.
    """

    def __init__(
        self,
        table: TokenTable,
        clock: Callable[[], float] = time.time,
        unknown_per_minute: int = UNKNOWN_PER_MINUTE,
    ) -> None:
        self._table, self._clock = table, clock
        self._lookups = BoundedDict[str, tuple[float, TokenRow]](MAX_LOOKUPS)
        self._unknown = Allowance(unknown_per_minute)
        self._log = RateLimitedLog()

    async def find(self, text: str, peer: str, is_fresh: bool = False) -> TokenRow | None:
        """Return a token, valid or not, that an address shows; None if it is unknown.

        With `is_fresh` the database is asked. Raises RequestRefused if the address has to wait.
        """
        if not TEXT_PATTERN.fullmatch(text):
            return None
        hash, now = hash_token(text), self._clock()
        known = self._lookups.get(hash)
        if known is not None and not is_fresh and known[0] <= now < known[0] + LOOKUP_LIFETIME_S:
            return known[1]
        if known is None and (wait_s := self._unknown.wait_s(peer)):
            raise too_many("too many unknown tokens from this address", wait_s)
        row = await self._table.find(hash)
        if row is None:
            self._unknown.spend(peer, 1)
            return None
        self._lookups[hash] = now, row
        if row.is_valid(now):
            await self._touch(row, now)
        return row

    async def _touch(self, row: TokenRow, now: float) -> None:
        """Record the use of a token; a database that cannot be written to can still be read."""
        try:
            await self._table.touch(row.organisation, row.id, now)
        except StoreFailed as error:
            self._log.warn("cannot store when tokens were used", error)

    def forget(self, text: str) -> None:
        """Ask the database about a token when it is shown next."""
        self._lookups.pop(hash_token(text), None)


class Authenticator:
    """Finds the identity behind a request.

    A Brimline token in the Authorization header counts before the proxy's header, and that before
    the cookie. The server does not serve other origins: a browser's request must come from its own
    page, except that any page may link to it.
    """

    def __init__(
        self,
        tokens: TokenLookup,
        settings: FleetSettings,
        cookie_name: str,
        is_behind_proxy: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens, self._cookie_name, self._clock = tokens, cookie_name, clock
        self._is_behind_proxy = is_behind_proxy
        self._settings = settings
        self._header = (settings.proxy_user_header or "").lower().encode()
        self._proxies = [ipaddress.ip_network(each, False) for each in settings.trusted_proxies]

    async def identify(self, scope: Scope) -> Identity:
        """Return who sent a request; raises RequestRefused."""
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        if reason := find_repeated_header(headers, (self._header,)):
            raise RequestRefused(403, f"forbidden: {reason}")
        values = dict(headers)
        bearer = bearer_token(values.get(b"authorization")).decode("latin-1")
        user = self._proxy_user(scope, values)
        if bearer.startswith(PREFIX) or (bearer and user is None):
            return _identity(await self._valid_token(bearer, scope))
        cookie = self.cookie(values)
        if user is None and cookie is None:
            raise RequestRefused(401, "this request needs a token", TOKEN_HINT)
        _check_origin(scope, values)
        if user is not None:
            return user
        return _identity(await self._valid_token(cookie or "", scope), has_cookie=True)

    def cookie(self, headers: dict[bytes, bytes]) -> str | None:
        """Return the token in our cookie."""
        return find_cookie(headers.get(b"cookie"), self._cookie_name)

    async def find_token(self, text: str, scope: Scope, is_fresh: bool = False) -> TokenRow | None:
        """Return a token that a request shows, as `TokenLookup.find` does."""
        sender = peer_of(scope)
        if self._is_behind_proxy:
            # The proxy has many clients, and adds the address of each. Without the proxy anyone can
            # claim any address: only the limit of unknown tokens depends on it.
            forwarded = [value for name, value in scope["headers"] if name == FORWARDED_FOR]
            claimed = forwarded[-1].rpartition(b",")[2].strip() if forwarded else b""
            sender = claimed[:MAX_ADDRESS_CHARS].decode("latin-1") or sender
        return await self._tokens.find(text, sender, is_fresh)

    async def _valid_token(self, text: str, scope: Scope) -> TokenRow:
        row = await self.find_token(text, scope)
        check_valid(row, self._clock())
        assert row is not None
        return row

    def _proxy_user(self, scope: Scope, headers: dict[bytes, bytes]) -> Identity | None:
        """Return the user whom a trusted proxy names."""
        sent = headers.get(self._header, b"").strip()
        if not self._header or not sent or not self._is_trusted(scope):
            return None
        try:
            value = sent.decode("utf-8")
        except UnicodeDecodeError:
            value = ""
        if not 0 < len(value) <= MAX_USER_CHARS or not value.isprintable():
            raise RequestRefused(403, "forbidden: the proxy's header has no valid user name")
        return Identity(
            organisation=self._settings.proxy_organisation,
            actor=value,
            scopes=frozenset(self._settings.proxy_scopes),
            key=f"user {value}",
        )

    def _is_trusted(self, scope: Scope) -> bool:
        try:
            peer = ipaddress.ip_address(peer_of(scope))
        except ValueError:
            return False
        # A socket that listens on [::] reports 10.1.2.3 as ::ffff:10.1.2.3.
        address = (isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped) or peer
        return any(address in network for network in self._proxies)


def peer_of(scope: Scope) -> str:
    """Return the address that a request came from; empty if it is unknown."""
    client = scope.get("client")
    return client[0] if client else ""


def check_valid(row: TokenRow | None, now: float) -> None:
    """Raise RequestRefused unless a token is known, not revoked and not expired."""
    if row is None:
        raise RequestRefused(401, "the token is unknown", TOKEN_HINT)
    if row.revoked_at is not None:
        raise RequestRefused(401, f"the token {row.name!r} was revoked", NEW_TOKEN_HINT)
    if not row.is_valid(now):
        raise RequestRefused(401, f"the token {row.name!r} has expired", NEW_TOKEN_HINT)


def is_same_origin(headers: dict[bytes, bytes]) -> bool:
    """Return whether a browser's request comes from a page of this server, or from no page.

    Browsers older than `Sec-Fetch-Site` (Safari before 16.4) send an Origin to change something.
    """
    if (site := headers.get(b"sec-fetch-site")) is not None:
        return site in OPEN_SITES
    origin = headers.get(b"origin", b"")
    return bool(origin) and origin.partition(b"://")[2] == headers.get(b"host")


def _check_origin(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Refuse what another site's page makes a signed-in browser send."""
    if scope["method"] in SAFE_METHODS:
        if scope["path"] == PAGE or headers.get(b"sec-fetch-site") in OPEN_SITES:
            return
    elif is_same_origin(headers):
        return
    raise RequestRefused(403, "forbidden: the request comes from another site", TOKEN_HINT)


def _identity(row: TokenRow, has_cookie: bool = False) -> Identity:
    scopes = cast("tuple[AccessScope, ...]", row.scopes)
    signed_in_with = row.parent if row.is_sign_in else None
    key = f"{row.organisation} {signed_in_with or row.id}"
    owner = TokenOwner(row.id, row.machine, row.team)
    return Identity(row.organisation, row.name, frozenset(scopes), key, has_cookie, owner)
