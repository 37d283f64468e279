"""A fleet's database: organisations on one pool of connections, tokens, the audit log."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from brimline.errors import StoreFailed
from brimline.store.base import PutSession
from brimline.store.postgres import open_database
from brimline.store.postgres.audit import KEEP_AUDIT_S, AuditRow
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.postgres.tokens import TOUCH_EVERY_S, TokenRow
from brimline.store.rows import SessionRow

TOKEN = TokenRow("tokens", "t", "h" * 64, "laptop of Ada", ("ingest", "read"), 1.0)


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[PostgresDatabase, None]:
    database = await open_database(url)
    try:
        yield database
    finally:
        await database.close()


async def test_organisations_share_the_connections_and_nothing_else(database: str) -> None:
    """The first write adds an organisation; a closed store leaves the connections open."""

    async with opened(database) as shared:
        one, other, idle = (shared.store(name) for name in ("one", "other", "idle"))
        for store, agent in ((one, "claude"), (other, "codex")):
            assert await store.write([PutSession(SessionRow("s", agent, 1.0))]) == [True]
        await one.close()
        assert await other.sessions() == [SessionRow("s", "codex", 1.0)]
        assert await idle.sessions() == []
        assert await shared.organisations() == ["one", "other"]
    with pytest.raises(StoreFailed, match="closed"):
        await other.sessions()


async def test_token_is_found_by_its_hash(shared_database: str) -> None:
    """The second of two tokens with the same id or the same hash is not stored."""

    async with opened(shared_database) as database:
        tokens = database.tokens
        assert await tokens.insert(TOKEN)
        assert not await tokens.insert(replace(TOKEN, hash="other"))
        assert not await tokens.insert(replace(TOKEN, organisation="other", id="u"))
        assert await tokens.find(TOKEN.hash) == TOKEN
        assert await tokens.find("other") is None
        later = replace(TOKEN, id="v", hash="v", created_at=2.0, expires_at=9.0)
        assert await tokens.insert(later)
        assert await tokens.list("tokens") == [later, TOKEN]
        assert await tokens.list("other") == []


async def test_revoked_token_takes_its_children_with_it(shared_database: str) -> None:
    async with opened(shared_database) as database:
        tokens = database.tokens
        rows = [
            replace(TOKEN, organisation="revoked", id=id, hash=f"{id} revoked", parent=parent)
            for id, parent in (("t", None), ("child", "t"), ("u", None))
        ]
        for row in rows:
            assert await tokens.insert(row)
        assert not await tokens.revoke("other", "t", 5.0)
        assert await tokens.revoke("revoked", "t", 5.0)
        assert not await tokens.revoke("revoked", "t", 6.0)
        valid = {row.id: row.is_valid(5.0) for row in await tokens.list("revoked")}
        assert valid == {"t": False, "child": False, "u": True}


async def test_token_made_from_one_that_is_being_revoked_is_revoked_too(
    shared_database: str,
) -> None:
    async with opened(shared_database) as database:
        tokens, parent = database.tokens, replace(TOKEN, organisation="late", hash="late")
        await tokens.insert(parent)
        await tokens.revoke("late", parent.id, 5.0)
        child = replace(parent, id="child", hash="late child", parent=parent.id, expires_at=9.0)
        await tokens.insert(child)
        assert await tokens.find(child.hash) == replace(child, revoked_at=5.0)
        await tokens.prune(9.0)
        assert await tokens.find(child.hash) is not None
        await tokens.prune(10.0)
        assert await tokens.find(child.hash) is None
        assert await tokens.find(parent.hash) is not None


def test_token_is_valid_until_it_expires() -> None:
    token = replace(TOKEN, expires_at=5.0)
    assert [token.is_valid(at) for at in (4.0, 5.0)] == [True, False]


async def test_use_of_a_token_is_stored_once_a_minute(shared_database: str) -> None:
    async with opened(shared_database) as database:
        await database.tokens.insert(replace(TOKEN, organisation="used", hash="used"))
        used_at: list[float | None] = []
        for at in (100.0, 101.0, 100.0 + TOUCH_EVERY_S):
            await database.tokens.touch("used", "t", at)
            token = await database.tokens.find("used")
            assert token is not None
            used_at.append(token.last_used_at)
        assert used_at == [100.0, 100.0, 100.0 + TOUCH_EVERY_S]


async def test_old_entries_of_the_audit_log_are_deleted(shared_database: str) -> None:
    async with opened(shared_database) as database:
        for at in (1.0, 2.0, 3.0):
            await database.audit.append(AuditRow("pruned", at, "ada", "send"))
        await database.audit.prune(2.0 + KEEP_AUDIT_S)
        assert [row.at for row in await database.audit.list("pruned")] == [3.0, 2.0]


async def test_audit_log_lists_the_newest_first(shared_database: str) -> None:
    """A page of it begins before the place of the last row of the page before."""

    async with opened(shared_database) as database:
        audit = database.audit
        for number in range(5):
            await audit.append(AuditRow("audited", 9.0 - number, "ada", "send", "s", f"m{number}"))
        await audit.append(AuditRow("other", 1.0, "bob", "hand over"))
        first = await audit.list("audited", limit=3)
        rest = await audit.list("audited", limit=3, before=first[-1].place)
        assert [row.subject for row in first + rest] == ["m4", "m3", "m2", "m1", "m0"]
        (other,) = await audit.list("other")
        assert replace(other, place=0) == AuditRow("other", 1.0, "bob", "hand over")
