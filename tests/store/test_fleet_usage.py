"""What a fleet used by day and group: summed once, and kept after its sessions are forgotten."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime

from msgspec.structs import replace

from brimline.api.fleet import fill_levels
from brimline.api.fleet_usage import FleetUsage, build_usage, write_csv
from brimline.monitor.user_rules import Rules
from brimline.store.base import ForgetSessions, PutCall, PutSession
from brimline.store.fleet import FleetGrouping, UsagePeriod
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.rows import CallRow, SessionRow

DAY = 86_400.0
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()  # a Sunday
FIRST, LAST = date(2026, 10, 1), date(2026, 11, 30)
SESSION = SessionRow("s", "claude", NOON, team="a", project="shop", user="ada")
CALL = CallRow("s", "main", "c", 0, 0, 10, 200, 30, 4, at=NOON, cost=0.5, miss_cost=0.1)


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[PostgresDatabase, None]:
    database = await open_database(url)
    try:
        yield database
    finally:
        await database.close()


async def usage_of(
    database: PostgresDatabase, name: str, by: FleetGrouping = "team", per: UsagePeriod = "day"
) -> FleetUsage:
    figures = database.figures(name, lambda kind: fill_levels(Rules(), kind))
    return build_usage(by, per, FIRST, LAST, await figures.usage(by, per, FIRST, LAST))


async def test_usage_is_summed_by_day_week_and_month(shared_database: str) -> None:
    """A session of two days counts in both, and once in their month; a copied call never."""
    async with opened(shared_database) as database:
        store, sums = database.store("usage"), database.session_sums("usage")
        other = replace(SESSION, id="t", team=None)
        calls = [
            CALL,
            replace(CALL, call="next", seq=1, at=NOON + DAY, branch="main"),
            replace(CALL, call="copied", seq=2, counted=False, cost=None, miss_cost=None),
            replace(CALL, session="t", cost=None, miss_cost=None),
        ]
        await store.write([PutSession(SESSION), PutSession(other), *map(PutCall, calls)])
        await sums.update()
        usage = await usage_of(database, "usage")
        days = {each.key: each for each in usage.periods if each.total.calls}
        assert {key: (each.total.sessions, each.total.calls) for key, each in days.items()} == {
            "2026-11-01": (2, 2), "2026-11-02": (1, 1),
        }  # fmt: skip
        assert len(usage.periods) == 61
        group = usage.groups[0]
        assert (group.key, group.sessions, group.calls, group.cost) == ("a", 1, 2, 1.0)
        assert (group.input, group.cache_read, group.cache_write, group.output) == (20, 400, 60, 8)
        assert (group.sent, group.miss_cost) == (480, 0.2)
        assert usage.groups[1].key is None
        assert usage.groups[1].cost is None
        assert (usage.total.sessions, usage.total.calls, usage.total.cost) == (2, 3, 1.0)
        weeks = (await usage_of(database, "usage", per="week")).periods
        used = {each.key: each.total.sessions for each in weeks if each.total.calls}
        assert used == {"2026-W44": 2, "2026-W45": 1}
        months = (await usage_of(database, "usage", per="month")).periods
        assert [(each.key, each.total.sessions) for each in months] == [
            ("2026-10", 0), ("2026-11", 2),
        ]  # fmt: skip
        by_branch = await usage_of(database, "usage", by="branch")
        assert [each.key for each in by_branch.groups] == [None, "shop: main"]
        assert (await usage_of(database, "nobody")).total.calls == 0
        await store.close()


async def test_late_and_moved_calls_correct_their_days(shared_database: str) -> None:
    """A machine comes back after a week; a clock was wrong, and a call moves to another day."""
    async with opened(shared_database) as database:
        store, sums = database.store("late days"), database.session_sums("late days")
        wrong = replace(CALL, call="moved", seq=1, at=NOON + 3 * DAY)
        await store.write([PutSession(SESSION), PutCall(CALL), PutCall(wrong)])
        await sums.update()
        late = replace(CALL, call="late", seq=2, at=NOON - 7 * DAY)
        await store.write([PutCall(late), PutCall(replace(wrong, at=NOON))])
        await sums.update()
        days = (await usage_of(database, "late days")).periods
        assert {each.key: each.total.calls for each in days if each.total.calls} == {
            "2026-10-25": 1, "2026-11-01": 2,
        }  # fmt: skip
        await store.close()


async def test_days_outlive_their_sessions(shared_database: str) -> None:
    """Also if a forgotten session goes on; after `keep_sums` they are deleted."""
    async with opened(shared_database) as database:
        store, sums = database.store("old"), database.session_sums("old")
        await store.write([PutSession(SESSION), PutCall(CALL)])
        await sums.update()
        await store.write([ForgetSessions(NOON + 1)])
        assert (await usage_of(database, "old")).total.cost == 0.5
        again = replace(CALL, call="again", seq=1, at=NOON + 9 * DAY)
        await store.write([PutSession(replace(SESSION, seen_at=NOON + 9 * DAY)), PutCall(again)])
        await sums.update()
        usage = await usage_of(database, "old")
        assert (usage.total.calls, usage.total.sessions, usage.total.cost) == (2, 1, 1.0)
        await sums.prune(date(2026, 11, 2))
        assert (await usage_of(database, "old")).total.calls == 1
        await store.close()


async def test_csv_has_every_group_and_no_formula(shared_database: str) -> None:
    async with opened(shared_database) as database:
        store, sums = database.store("csv"), database.session_sums("csv")
        await store.write([
            PutSession(replace(SESSION, team="=1+1")), PutCall(CALL),
            PutSession(replace(SESSION, id="t", team=None)), PutCall(replace(CALL, session="t")),
        ])  # fmt: skip
        await sums.update()
        figures = database.figures("csv", lambda kind: fill_levels(Rules(), kind))
        text = write_csv("team", "day", await figures.usage("team", "day", FIRST, LAST))
        assert text == (
            "day,team,sessions,calls,input,cache_read,cache_write,output,cost,miss_cost\n"
            "2026-11-01,,1,1,10,200,30,4,0.5,0.1\n"
            "2026-11-01,'=1+1,1,1,10,200,30,4,0.5,0.1\n"
        )
        await store.close()
