"""The tokens of all organisations, and those that machines made from their team's."""

from collections.abc import Sequence

import msgspec

from brimline.store.common_sql import list_columns
from brimline.store.postgres import audit
from brimline.store.postgres.audit import AuditRow
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable

TOUCH_EVERY_S = 60.0  # `last_used_at` is written again after this
ENDS_SOON_S = 14 * 86_400.0
MACHINE_LIFETIME_S = 90 * 86_400.0  # of a machine's own token, from its last use

ENDED = "the enrolment token has ended"
REVOKED = "this machine's token was revoked"
FULL = "as many machines as this enrolment token allows already have a valid token"
TAKEN = "this token is another machine's"
ELSEWHERE = "this machine has a valid token of another enrolment"


class TokenRow(msgspec.Struct, frozen=True):
    """A token of an organisation, by its id; `hash` is the SHA-256 of its text, in hex.

    `parent` is the token that it was made from: if that is revoked, so is this one. It was made by
    a sign-in, or by `machine`, the id of an installation. What reports with it is of `team`. At
    most `max_machines` tokens of machines that are made from an enrolment token are valid.
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
    machine: str | None = None
    team: str | None = None
    max_machines: int | None = None

    def is_valid(self, at: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    @property
    def is_sign_in(self) -> bool:
        return self.parent is not None and self.machine is None


_COLUMNS = list_columns(TokenRow.__struct_fields__)
_VALUES = ", ".join(f"${number}" for number in range(1, len(TokenRow.__struct_fields__) + 1))
# A token that is made from another while that one is being revoked is revoked too.
REVOKED_AT = """coalesce(revoked_at, (SELECT p.revoked_at FROM tokens p
WHERE p.organisation = t.organisation AND p.id = t.parent))"""
_FOUND_COLUMNS = _COLUMNS.replace('"revoked_at"', f"{REVOKED_AT} AS revoked_at")
_SELECT = f"SELECT {_FOUND_COLUMNS} FROM tokens t"
_FIND = f"{_SELECT} WHERE hash = $1"
_LIST = f"{_SELECT} WHERE organisation = $1 ORDER BY created_at DESC, id"
_INSERT = f"INSERT INTO tokens ({_COLUMNS}) VALUES ({_VALUES}) ON CONFLICT DO NOTHING RETURNING id"
_REVOKE = """UPDATE tokens SET revoked_at = $3
WHERE organisation = $1 AND (id = $2 OR parent = $2) AND revoked_at IS NULL RETURNING id"""
_TOUCH = f"""UPDATE tokens SET last_used_at = $3,
expires_at = CASE WHEN machine IS NULL THEN expires_at ELSE $3 + {MACHINE_LIFETIME_S} END
WHERE organisation = $1 AND id = $2 AND coalesce(last_used_at, 0) <= $3 - $4::float8"""
_PRUNE = "DELETE FROM tokens WHERE parent IS NOT NULL AND machine IS NULL AND expires_at < $1"

_COUNT_ENDING = """SELECT count(*) FROM tokens WHERE organisation = $1 AND parent IS NULL
AND revoked_at IS NULL AND expires_at > $2 AND expires_at < $3"""

_LOCK_PARENT = f"SELECT {_COLUMNS} FROM tokens WHERE organisation = $1 AND id = $2 FOR UPDATE"
_OF_MACHINE = f"{_SELECT} WHERE organisation = $1 AND machine = $2"
_COUNT_OTHERS = """SELECT count(*) FROM tokens
WHERE organisation = $1 AND parent = $2 AND machine <> $3 AND revoked_at IS NULL
AND expires_at > $4"""
_ENROL = f"""INSERT INTO tokens AS t ({_COLUMNS}) VALUES ({_VALUES})
ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at
WHERE (t.organisation, t.parent, t.machine)
    = (excluded.organisation, excluded.parent, excluded.machine)
RETURNING t.id"""
# Not revoked: its daemon may still have it, and would then be taken for one that may not enrol.
_DELETE_EARLIER = """DELETE FROM tokens WHERE organisation = $1 AND machine = $3 AND hash <> $4
AND (parent = $2 OR hash = $5) AND revoked_at IS NULL"""


class TokenTable:
    """The tokens of all organisations."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    async def insert(self, row: TokenRow) -> bool:
        """Store a token; return False if its id or its hash is stored already."""
        return bool(await self._pool.fetch(_INSERT, *_values(row)))

    async def create(self, rows: Sequence[TokenRow], actor: str) -> None:
        """Store all of these tokens or none, and write into the audit log who did."""
        async with self._pool.acquire() as connection, connection.transaction():
            for row in rows:
                await connection.execute(
                    audit.APPEND, *_entry(row, row.created_at, actor, "creation")
                )
                await connection.execute(_INSERT, *_values(row))

    async def enrol(self, row: TokenRow, earlier: str | None = None) -> str | None:
        """Store the token that a machine made from its parent, or extend it; return why not.

        It replaces an earlier one of the same machine and parent, and that of another parent with
        the hash `earlier`. The audit log has each that is new. A machine of which a token was
        revoked gets no other one from the same parent.
        """
        assert row.parent is not None
        at, of_parent = row.created_at, (row.organisation, row.parent)
        async with self._pool.acquire() as connection, connection.transaction():
            # The lock makes machines that enrol at once count each other.
            records = await connection.fetch(_LOCK_PARENT, *of_parent)
            parent = msgspec.convert(dict(records[0]), TokenRow) if records else None
            if parent is None or not parent.is_valid(at):
                return ENDED
            machine = storable(row.machine)
            records = await connection.fetch(_OF_MACHINE, row.organisation, machine)
            own = [msgspec.convert(dict(record), TokenRow) for record in records]
            if any(each.parent == row.parent and each.revoked_at is not None for each in own):
                return REVOKED
            others = [each for each in own if each.parent != row.parent and each.is_valid(at)]
            if any(each.hash not in (row.hash, earlier) for each in others):
                return ELSEWHERE
            count = await connection.fetchval(_COUNT_OTHERS, *of_parent, machine, at)
            if count >= (parent.max_machines or 0):
                return FULL
            stored = await connection.fetch(_ENROL, *_values(row))
            if not stored:
                return TAKEN
            await connection.execute(_DELETE_EARLIER, *of_parent, machine, row.hash, earlier)
            if stored[0]["id"] == row.id:  # not an earlier one that is extended
                subject = f"machine {row.machine}"
                entry = AuditRow(row.organisation, at, parent.name, "enrolment", subject=subject)
                await connection.execute(audit.APPEND, *entry.values())
        return None

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

    async def revoke_all(self, rows: Sequence[TokenRow], actor: str, at: float) -> None:
        """Revoke tokens and those that were made from them; the audit log has who did."""
        async with self._pool.acquire() as connection, connection.transaction():
            for row in rows:
                await connection.execute(audit.APPEND, *_entry(row, at, actor, "revocation"))
                await connection.execute(_REVOKE, row.organisation, row.id, at)

    async def count_ending(self, organisation: str, now: float) -> int:
        """Return how many valid tokens end soon, without those that are renewed by their use."""
        records = await self._pool.fetch(_COUNT_ENDING, organisation, now, now + ENDS_SOON_S)
        return records[0]["count"]

    async def touch(self, organisation: str, id: str, at: float) -> None:
        """Record that a token was used, at most once in TOUCH_EVERY_S.

        A machine's own is valid for MACHINE_LIFETIME_S from then on.
        """
        await self._pool.fetch(_TOUCH, organisation, id, at, TOUCH_EVERY_S)

    async def prune(self, before: float) -> None:
        """Delete the tokens of sign-ins that expired before a time."""
        await self._pool.fetch(_PRUNE, before)


def _entry(row: TokenRow, at: float, actor: str, action: str) -> Sequence[object]:
    """Return the values of an entry of the audit log about a token."""
    subject = f"token {row.id}, {row.name}: {', '.join(row.scopes)}"
    return AuditRow(row.organisation, at, actor, action, subject=subject).values()


def _values(row: TokenRow) -> Sequence[object]:
    return [storable(value) for value in msgspec.structs.astuple(row)]
