"""The tokens of a fleet: only their hashes are stored."""

import msgspec

from brimline.store.common_sql import list_columns
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable

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
# A token that is made from another while that one is being revoked is revoked too.
_REVOKED_AT = """coalesce(revoked_at, (SELECT p.revoked_at FROM tokens p
WHERE p.organisation = t.organisation AND p.id = t.parent)) AS revoked_at"""
_FIND_COLUMNS = _COLUMNS.replace('"revoked_at"', _REVOKED_AT)
_FIND = f"SELECT {_FIND_COLUMNS} FROM tokens t WHERE hash = $1"
_LIST = f"SELECT {_COLUMNS} FROM tokens WHERE organisation = $1 ORDER BY created_at DESC, id"
_INSERT = f"""INSERT INTO tokens ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT DO NOTHING RETURNING id"""
_REVOKE = """UPDATE tokens SET revoked_at = $3
WHERE organisation = $1 AND (id = $2 OR parent = $2) AND revoked_at IS NULL RETURNING id"""
_TOUCH = """UPDATE tokens SET last_used_at = $3
WHERE organisation = $1 AND id = $2 AND coalesce(last_used_at, 0) <= $3 - $4::float8"""
_PRUNE = "DELETE FROM tokens WHERE parent IS NOT NULL AND expires_at < $1"


class TokenTable:
    """The tokens of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def insert(self, row: TokenRow) -> bool:
        """Store a token; return False if its id or its hash is stored already."""
        return bool(await self._pool.fetch(_INSERT, *map(storable, msgspec.structs.astuple(row))))

    async def find(self, hash: str) -> TokenRow | None:
        """Return the token with a hash, whether it is still valid or not."""
        records = await self._pool.fetch(_FIND, hash)
        return msgspec.convert(dict(records[0]), TokenRow) if records else None

    async def list(self, organisation: str) -> list[TokenRow]:
        """Return the tokens of an organisation, the newest first."""
        records = await self._pool.fetch(_LIST, organisation)
        return [msgspec.convert(dict(record), TokenRow) for record in records]

    async def revoke(self, organisation: str, id: str, at: float) -> bool:
        """Revoke a token and those that were made from it; return False if none was valid."""
        return bool(await self._pool.fetch(_REVOKE, organisation, id, at))

    async def touch(self, organisation: str, id: str, at: float) -> None:
        """Record that a token was used, at most once in TOUCH_EVERY_S."""
        await self._pool.fetch(_TOUCH, organisation, id, at, TOUCH_EVERY_S)

    async def prune(self, before: float) -> None:
        """Delete the tokens that were made from others and expired before a time."""
        await self._pool.fetch(_PRUNE, before)
