"""The tokens of a fleet: only their hashes are stored."""

import msgspec

from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable
from brimline.store.upserts import list_columns

TOUCH_EVERY_S = 60.0  # `last_used_at` is written again after this


class TokenRow(msgspec.Struct, frozen=True):
    """A token of an organisation, by its id; `hash` is the SHA-256 of its text, in hex.

    `parent` is the token that a person has signed in with: when it is revoked, so is this one.
    """

    organisation: str
    id: str
    hash: str
    name: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None
    parent: str | None = None

    def is_valid(self, at: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


_COLUMNS = list_columns(TokenRow.__struct_fields__)
_INSERT = f"""INSERT INTO tokens ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT DO NOTHING RETURNING id"""
_REVOKE = """UPDATE tokens SET revoked_at = $3
WHERE organisation = $1 AND (id = $2 OR parent = $2) AND revoked_at IS NULL RETURNING id"""
_TOUCH = """UPDATE tokens SET last_used_at = $3
WHERE organisation = $1 AND id = $2 AND coalesce(last_used_at, 0) <= $3 - $4::float8"""


class TokenTable:
    """The tokens of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def insert(self, row: TokenRow) -> bool:
        """Store a token; return False if its id or its hash is stored already."""
        return bool(await self._pool.fetch(_INSERT, *map(storable, msgspec.structs.astuple(row))))

    async def find(self, hash: str) -> TokenRow | None:
        """Return the token with a hash, whether it is still valid or not."""
        rows = await self._select("hash = $1", hash)
        return rows[0] if rows else None

    async def list(self, organisation: str) -> list[TokenRow]:
        """Return the tokens of an organisation, the newest first."""
        return await self._select("organisation = $1 ORDER BY created_at DESC, id", organisation)

    async def revoke(self, organisation: str, id: str, at: float) -> bool:
        """Revoke a token and those that were made from it; return False if none was valid."""
        return bool(await self._pool.fetch(_REVOKE, organisation, id, at))

    async def touch(self, organisation: str, id: str, at: float) -> None:
        """Record that a token was used, at most once in TOUCH_EVERY_S."""
        await self._pool.fetch(_TOUCH, organisation, id, at, TOUCH_EVERY_S)

    async def _select(self, condition: str, value: str) -> "list[TokenRow]":
        text = f"SELECT {_COLUMNS} FROM tokens WHERE {condition}"
        records = await self._pool.fetch(text, value)
        return [msgspec.convert(dict(record), TokenRow) for record in records]
