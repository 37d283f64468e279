"""The route of the fleet view: groups, totals, the fullest sessions, who needs a handoff."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace
from starlette.requests import Request

from brimline.api.fleet import FleetGroup, FleetRoutes, FleetView, fill_levels
from brimline.api.responses import RequestRefused
from brimline.api.views import Views
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.store.base import PutCall, PutCompaction, PutHandoff, PutSession, PutThread
from brimline.store.fleet import FleetGrouping
from brimline.store.postgres import open_database
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, ThreadRow

HOUR = 3_600.0
NOW = 480_000 * HOUR + 1_800.0  # half past
RULES = Rules()


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[str]:
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url


async def fill(url: str) -> None:
    """Store sessions of two teams in two organisations; the second one has only one of them."""
    opened = await open_database(url)
    for organisation, names in (("one", ("a1", "a2", "b1")), ("two", ("a1",))):
        store = opened.store(organisation)
        for name, percent in zip(names, (30.0, 70.0, 100.0), strict=False):
            session = SessionRow(name, "claude", NOW, team=name[0], user=organisation)
            thread = ThreadRow(name, "main", 1, 1, "hook", "measured", calls=9)
            await store.write([
                PutSession(session),
                PutThread(replace(thread, percent=percent, percent_raw=percent)),
                PutCall(CallRow(name, "main", "c", 0, 0, 1, 1, 1, 1, at=NOW - 60, cost=0.5)),
            ])  # fmt: skip
        await store.write([PutCompaction(CompactionRow("a1", "main", 0, at=NOW - 10))])
        await opened.session_sums(organisation).update()
    handoff = HandoffRow("h", "b1", NOW, "/h.md", "00", "text", "agent", 1, 9)
    await opened.store("one").write([PutHandoff(handoff)])
    await opened.close()


@pytest.fixture(scope="module")
def get(database: str) -> Callable[[str, str], FleetView]:
    """Ask for the fleet view of an organisation with a query."""
    asyncio.run(fill(database))

    async def ask(organisation: str, query: str) -> FleetView:
        opened = await open_database(database)
        try:
            store = opened.store(organisation)
            views = Views(store, Monitor(store, lambda: NOW, RULES), RULES)
            figures = opened.figures(organisation, lambda kind: fill_levels(RULES, kind))
            routes = FleetRoutes(figures, views, opened.machines(organisation), lambda: NOW)
            scope: dict[str, Any] = {"type": "http", "query_string": query.encode(), "headers": []}
            answer = await routes.fleet(Request(scope))
            return msgspec.json.decode(bytes(answer.body), type=FleetView)
        finally:
            await opened.close()

    return lambda organisation, query: asyncio.run(ask(organisation, query))


def test_groups_and_total_of_a_fleet(get: Callable[[str, str], FleetView]) -> None:
    view = get("one", "by=team&since=1h")
    assert (view.by, view.at, view.since) == ("team", NOW, NOW - 1.5 * HOUR)  # a full hour
    assert [group.key for group in view.groups] == ["a", "b"]
    assert view.total == FleetGroup(
        key=None, sessions=3, seen=3, filled=3, over_first=2, over_last=2, at_limit=1,
        over_first_percent=66.7, over_last_percent=66.7, at_limit_percent=33.3,
        compactions=1, compactions_per_hour=0.7, lost=1, lost_percent=33.3,
        calls=3, cost=1.5, miss_cost=0.0,
    )  # fmt: skip
    assert view.groups[1].lost_percent == 0.0
    assert view.groups[1].cost == 0.5


def test_sessions_are_listed_by_fill_and_by_need(get: Callable[[str, str], FleetView]) -> None:
    view = get("one", "")
    assert [each.session.id for each in view.fullest] == ["b1", "a2", "a1"]
    assert [each.threads[0].fullness for each in view.fullest] == ["limit", "high", "low"]
    assert [each.handoff.state for each in view.fullest] == ["fresh", "none", "none"]
    assert [each.session.id for each in view.needs_handoff] == ["a2"]
    assert view.needs_handoff_count == 1
    assert [each.session.id for each in get("one", "limit=1").fullest] == ["b1"]


@pytest.mark.parametrize("by", get_args(FleetGrouping))
def test_an_organisation_sees_only_its_own_sessions(
    get: Callable[[str, str], FleetView], by: str
) -> None:
    view = get("two", f"by={by}&since=24h")
    assert (view.total.sessions, view.total.cost, view.total.compactions) == (1, 0.5, 1)
    assert [each.session.user for each in view.fullest] == ["two"]
    assert view.needs_handoff == []
    empty = get("three", f"by={by}")
    assert (empty.groups, empty.fullest, empty.total.sessions) == ([], [], 0)
    assert (empty.total.cost, empty.total.lost_percent) == (None, None)


def test_query_that_is_not_understood_is_refused(get: Callable[[str, str], FleetView]) -> None:
    with pytest.raises(RequestRefused, match=r"expected one of team, host, .*: got 'colour'"):
        get("one", "by=colour")
    with pytest.raises(RequestRefused, match="limit: expected a number above 0"):
        get("one", "limit=none")
    with pytest.raises(RequestRefused, match="at most 7d"):
        get("one", "since=all")
