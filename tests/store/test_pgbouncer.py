"""PgBouncer in transaction mode between replicas and PostgreSQL."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.api.fleet import fill_levels
from brimline.monitor.user_rules import Rules
from brimline.store.base import ForgetSessions, PutCall, PutSession
from brimline.store.fleet import GroupCosts
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.rows import CallRow, SessionRow
from fleet_server import FleetProcess, new_token
from pgbouncer import pgbouncer
from postgres_server import local_server

pytestmark = pytest.mark.slow

NOW = 1_700_000_000.0


@pytest.fixture(scope="module")
def pooled_url() -> Iterator[str]:
    """The address of PgBouncer, with few connections to the server for many."""
    with local_server() as server, pgbouncer(server) as url:
        yield url


async def test_two_replicas_write_and_sum_at_once(pooled_url: str) -> None:
    """Each has more connections to PgBouncer than that has to PostgreSQL."""
    replicas = [await open_database(pooled_url) for _ in range(2)]
    stores = [each.store("pooled") for each in replicas]
    calls = [
        CallRow(f"s{n % 7}", "main", f"c{n}", n, 0, 1, 1, 1, 1, at=NOW + n, cost=0.5)
        for n in range(200)
    ]
    rows = [SessionRow(f"s{n}", "claude", NOW) for n in range(7)]
    await stores[0].write([PutSession(row) for row in rows])
    await asyncio.gather(*(stores[n % 2].write([PutCall(each)]) for n, each in enumerate(calls)))
    stored = [await stores[1].calls(row.id) for row in rows]
    assert sum(map(len, stored)) == len(calls)
    await asyncio.gather(*(each.session_sums("pooled").update() for each in replicas))
    await replicas[0].session_sums("pooled").update()
    assert await _costs(replicas[1]) == [GroupCosts("claude", 200, 100.0, 0.0)]
    await stores[0].write([ForgetSessions(NOW + 1)])
    assert await stores[1].sessions() == []
    for each in replicas:
        await each.close()


async def _costs(database: PostgresDatabase) -> list[GroupCosts]:
    rules = Rules()
    figures = database.figures("pooled", lambda kind: fill_levels(rules, kind))
    return await figures.costs("agent", NOW - 3_600)


async def test_one_of_two_replicas_is_elected(pooled_url: str) -> None:
    one, other = await open_database(pooled_url), await open_database(pooled_url)
    for _ in range(3):
        assert await one.store("o").is_elected("export")
        assert not await other.store("o").is_elected("export")
        await asyncio.gather(*(each.organisations() for each in (one, other) * 5))
    await one.close()
    assert await other.store("o").is_elected("export")
    await other.close()


def test_server_takes_events_and_serves_them(pooled_url: str, tmp_path: Path) -> None:
    replica, token = FleetProcess(pooled_url, tmp_path), new_token(pooled_url)
    usage = {"input": 9, "cache_read": 0, "cache_write": 0, "output": 5}
    events = [
        {"id": f"e{n}", "session": "s", "agent": "claude",
         "event": {"type": "Call", "id": f"c{n}", "usage": usage}}
        for n in range(20)
    ]  # fmt: skip
    try:
        assert replica.request("GET", "/readyz").status == 200
        for event in events:
            body = {"events": [event]}
            assert replica.request("POST", "/v1/events", token, body).status == 200
        (view,) = replica.request("GET", "/v1/sessions", token).json
        assert view["threads"][0]["calls"] == len(events)
    finally:
        replica.close()
