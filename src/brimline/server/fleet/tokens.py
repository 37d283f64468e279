"""Tokens: 256 random bits, of which the server stores a hash."""

import re
import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import sha256

from brimline.api.identity import AccessScope
from brimline.api.request_limits import Allowance, too_many
from brimline.daemon.log_limit import RateLimitedLog
from brimline.errors import StoreFailed
from brimline.files.bounded_dict import BoundedDict
from brimline.store.postgres.database import TokenRow, TokenTable

PREFIX = "brim_"
TOKEN_BYTES = 32
ID_BYTES = 6
TEXT_PATTERN = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")

LOOKUP_LIFETIME_S = 3.0  # a revoked token is refused after this time
MAX_LOOKUPS = 20_000
UNKNOWN_PER_MINUTE = 600  # from one address, which may be a proxy of many


def create_token(
    organisation: str,
    name: str,
    scopes: Iterable[AccessScope],
    now: float,
    expires_at: float | None = None,
    parent: str | None = None,
) -> tuple[str, TokenRow]:
    """Return a new token's text and its row, which is still to be stored."""
    text = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = TokenRow(
        organisation=organisation,
        id=secrets.token_hex(ID_BYTES),
        hash=hash_token(text),
        name=name,
        scopes=tuple(sorted(set(scopes))),
        created_at=now,
        expires_at=expires_at,
        parent=parent,
    )
    return text, row


def hash_token(text: str) -> str:
    return sha256(text.encode()).hexdigest()


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
