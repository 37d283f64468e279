"""The figures of a fleet in SQL: fill by levels, lost work, hourly costs, who needs a handoff."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
from msgspec.structs import replace

from brimline.api.fleet import fill_levels
from brimline.monitor.user_rules import Rules
from brimline.store.base import (
    ClaimSession,
    ForgetSessions,
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    Write,
)
from brimline.store.fleet import GroupCompactions, GroupCosts, GroupCounts
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.postgres.fleet import ACTIVE, KEYS
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, ThreadRow
from postgres_server import execute

HOUR = 3_600.0
NOW = 480_000 * HOUR + 60  # a minute after a full hour
SINCE = NOW - 60 - HOUR
SESSION = SessionRow("s", "claude", NOW, team="a")
THREAD = ThreadRow("s", "main", 1, 1, "hook", "measured", calls=50)
CALL = CallRow("s", "main", "c", 0, 0, 1, 1, 1, 1, at=NOW - 600, cost=0.5)
HANDOFF = HandoffRow("h", "s", NOW - 300, "/h.md", "00", "", "agent", 1, 45)


class Fleet:
    """An organisation, and a second one with the same rows, which must never be counted."""

    def __init__(self, database: PostgresDatabase, name: str, rules: Rules) -> None:
        self.store, self._other = database.store(name), database.store(f"not {name}")
        self.figures = database.figures(name, lambda kind: fill_levels(rules, kind), rules.by)
        self.hours = database.session_sums(name)

    async def write(self, *writes: Write) -> None:
        await self.store.write(writes)
        await self._other.write(writes)

    async def costs(self) -> list[GroupCosts]:
        await self.hours.update()
        return await self.figures.costs("team", SINCE)


def run(
    url: str, name: str, check: Callable[[Fleet], Awaitable[None]], rules: Rules | None = None
) -> None:
    async def checked() -> None:
        database = await open_database(url)
        try:
            await check(Fleet(database, name, rules or Rules()))
        finally:
            await database.close()

    asyncio.run(checked())


def writes_of(row: SessionRow, thread: ThreadRow) -> list[Write]:
    return [PutSession(row), PutThread(thread)]


def filled(id: str, percent: float | None, calls_left: int | None = None) -> list[Write]:
    row = replace(THREAD, session=id, percent_raw=percent, calls_left=calls_left)
    return writes_of(replace(SESSION, id=id), row)


def test_active_sessions_are_counted_by_group_and_fill(shared_database: str) -> None:
    """Sessions that ended, were cleared or were not seen in the span are not active."""
    ended = replace(SESSION, id="ended", ended_at=NOW)
    cleared = replace(SESSION, id="cleared", became="next", became_at=NOW)
    resumed = replace(SESSION, id="resumed", ended_at=NOW - 5, team=None)
    idle = replace(SESSION, id="idle", seen_at=SINCE - 1)

    async def check(fleet: Fleet) -> None:
        await fleet.write(*(PutSession(row) for row in (ended, cleared, resumed, idle)))
        for percent in (None, 10.0, 50.0, 64.0, 65.0, 100.0):
            await fleet.write(*filled(f"at {percent}", percent))
        active = await fleet.figures.active("team", SINCE, 2)
        assert sorted(active.groups, key=lambda each: each.key or "") == [
            GroupCounts(None, seen=1, sessions=1),
            GroupCounts("a", 8, 6, filled=5, over_first=4, over_last=2, at_limit=1),
        ]
        by_version = (await fleet.figures.active("version", SINCE, 2)).groups
        assert [each.key for each in by_version] == ["claude"]
        assert active.fullest == ["at 100.0", "at 65.0"]

    run(shared_database, "counts", check)


def test_sessions_that_are_not_active_are_not_read(shared_database: str) -> None:
    """The fleet view reads rows of active sessions, however many older ones are kept."""
    execute(
        shared_database,
        """INSERT INTO sessions (organisation, id, agent, seen_at)
        SELECT 'many', md5('s' || n), 'claude', CASE WHEN n <= 100 THEN 1000.0 ELSE 0.0 END
        FROM generate_series(1, 30000) AS n""",
        """INSERT INTO threads (organisation, session, thread, cycle, seq, source, state, calls)
        SELECT 'many', id, thread, 1, 1, 'hook', 'measured', 1
        FROM sessions, unnest(ARRAY['main', 'agent-1']) AS thread WHERE organisation = 'many'""",
        "ANALYZE sessions",
        "ANALYZE threads",
    )

    async def explain() -> str:
        connection = await asyncpg.connect(shared_database)
        rows = await connection.fetch(
            "EXPLAIN " + ACTIVE.format(key=KEYS["team"]), "many", 1000.0,
            [], [], [], [], [], [], [], "window", 50.0, 80.0, 100,
        )  # fmt: skip
        await connection.close()
        return "\n".join(row[0] for row in rows)

    plan = asyncio.run(explain())
    assert "Index Scan using main_threads" in plan, plan
    assert "sessions_by_time" in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize("measure", ["earlier", "window", "limit", "tokens"])
def test_fill_in_sql_equals_that_of_the_policy(shared_database: str, measure: str) -> None:
    """For every measure, and for levels of an agent, a model, a session, and none."""
    rules = {
        "earlier": Rules(by={"codex": (), "gpt-5.5": (20.0,), "s7": (1.0, 99.0)}),
        "window": Rules(levels=(30.0, 40.0, 90.0), of="window"),
        "limit": Rules(of="limit"),
        "tokens": Rules(levels=(50_000.0, 150_000.0), of="tokens"),
    }[measure]
    draw = random.Random(measure)

    def figure(most: float) -> float | None:
        return draw.choice([None, draw.uniform(0, most), draw.choice([50.0, 65.0, 100.0])])

    rows: list[tuple[SessionRow, ThreadRow]] = []
    for number in range(120):
        model = draw.choice([None, "gpt-5.5", "claude-opus-4-5"])
        held = draw.choice([None, draw.randrange(200_000)])
        row = SessionRow(f"s{number}", draw.choice(["claude", "codex"]), NOW, user=f"s{number}")
        thread = replace(
            THREAD, session=row.id, percent_raw=figure(110), percent_of_limit=figure(130)
        )
        rows.append((row, replace(thread, held=held, model=model)))

    async def check(fleet: Fleet) -> None:
        await fleet.write(*(write for row, thread in rows for write in writes_of(row, thread)))
        active = await fleet.figures.active("user", SINCE, 0)
        counts = {each.key: each for each in active.groups}
        orders = {None: (0, 0, 0, 0), "low": (1, 0, 0, 0), "medium": (1, 1, 0, 0)}
        orders |= {"high": (1, 1, 1, 0), "limit": (1, 1, 1, 1)}
        for row, thread in rows:
            fullness = rules.fullness_of(thread, row.id, row.agent, thread.model)
            expected = GroupCounts(row.id, 1, 1, *orders[fullness])
            assert counts[row.id] == expected, (thread, fullness)

    run(shared_database, f"fill {measure}", check, rules)


def test_work_is_lost_by_a_compaction_without_a_handoff_of_its_cycle(shared_database: str) -> None:
    """A draft saves nothing, nor does a document of another cycle; a subagent loses nothing."""

    async def check(fleet: Fleet) -> None:
        compaction = CompactionRow("s", "main", 1, at=NOW - 60)
        documents = {
            "saved": HANDOFF,
            "drafted": replace(HANDOFF, draft=True),
            "late": replace(HANDOFF, cycle=2),
        }
        for id, document in documents.items():
            await fleet.write(
                PutSession(replace(SESSION, id=id)),
                PutCompaction(replace(compaction, session=id)),
                PutHandoff(replace(document, id=id, session=id)),
            )
        await fleet.write(
            PutSession(replace(SESSION, id="sub")),
            PutCompaction(replace(compaction, session="sub", thread="agent-1")),
            PutCompaction(replace(compaction, session="sub", cycle=0, at=SINCE - 1)),
            PutCompaction(replace(compaction, session="late", cycle=3)),
        )
        assert await fleet.figures.compactions("team", SINCE) == [GroupCompactions("a", 5, 2)]

    run(shared_database, "compactions", check)


def test_full_sessions_without_a_fresh_handoff_need_one(shared_database: str) -> None:
    """The last document counts: a draft does not, nor one that is more than 20 calls old."""

    async def check(fleet: Fleet) -> None:
        for id, percent, calls_left in (
            ("low", 20.0, None), ("few left", 20.0, 10), ("more left", 20.0, 11),
            ("full", 66.0, None), ("fresh", 90.0, 1), ("old", 80.0, None), ("draft", 70.0, None),
        ):  # fmt: skip
            await fleet.write(*filled(id, percent, calls_left))
        fresh = replace(HANDOFF, session="fresh")
        await fleet.write(
            PutHandoff(replace(HANDOFF, id="1", session="draft")),
            PutHandoff(replace(HANDOFF, id="2", session="draft", draft=True)),
            PutHandoff(replace(HANDOFF, id="3", session="old", calls=29)),
            PutHandoff(replace(fresh, id="4", calls=0)),
            PutHandoff(replace(fresh, id="5", calls=30)),
        )
        needing = ["old", "draft", "full", "few left"]
        for most in (9, 1):
            active = await fleet.figures.active("team", SINCE, most)
            assert active.needs_handoff == needing[:most]
            assert active.needs_handoff_count == 4
        rows = await fleet.figures.rows(["draft", "gone", "full"])
        read = [(row.id, len(each), [h.id for h in last]) for row, each, _, last, _ in rows]
        assert read == [("draft", 1, ["2"]), ("full", 1, [])]

    run(shared_database, "needs", check)


def test_costs_are_summed_by_hour_and_follow_later_copies(shared_database: str) -> None:
    async def check(fleet: Fleet) -> None:
        calls = [
            replace(CALL, call="before", at=SINCE - 1, cost=100.0),
            replace(CALL, call="1", seq=1, miss_cost=0.25),
            replace(CALL, call="2", seq=2, at=NOW),
            replace(CALL, call="3", seq=3, at=NOW, cost=None),
        ]
        await fleet.write(PutSession(SESSION), *map(PutCall, calls))
        assert await fleet.costs() == [GroupCosts("a", 3, 1.0, 0.25)]
        await fleet.write(PutCall(replace(calls[2], cost=2.5)))
        assert await fleet.costs() == [GroupCosts("a", 3, 3.0, 0.25)]
        both = asyncio.gather(fleet.hours.update(), fleet.hours.update())
        await both
        assert await fleet.costs() == [GroupCosts("a", 3, 3.0, 0.25)]

    run(shared_database, "costs", check)


def test_call_that_arrives_hours_late_is_summed(shared_database: str) -> None:
    """A session of several machines: one of them was without a network for hours."""

    async def check(fleet: Fleet) -> None:
        await fleet.write(PutSession(SESSION), PutCall(CALL))
        assert await fleet.costs() == [GroupCosts("a", 1, 0.5, 0.0)]
        late = [replace(CALL, call=f"{hours}", at=NOW - hours * HOUR) for hours in (50, 9, 5)]
        await fleet.write(PutCall(late[0]), PutCall(late[1]))
        await fleet.hours.update()
        await fleet.write(PutCall(late[2]))
        await fleet.hours.update()
        since_week = await fleet.figures.costs("team", NOW - 168 * HOUR)
        assert since_week == [GroupCosts("a", 4, 2.0, 0.0)]

    run(shared_database, "late", check)


def test_costs_are_of_a_calls_branch_and_sessions_of_their_last(shared_database: str) -> None:
    """Two projects have a branch `main`. A copy of a call may know the branch that it lacked."""

    async def check(fleet: Fleet) -> None:
        calls = [
            replace(CALL, call="1", seq=1, branch="main", at=NOW - 3),
            replace(CALL, call="2", seq=2, branch="fix", at=NOW - 1),
            replace(CALL, call="3", seq=3, branch="main", at=NOW - 2),
            replace(CALL, call="4", seq=4, at=NOW - 4),
            replace(CALL, session="t", branch="main", at=NOW),
            replace(CALL, session="u", branch="main" + 1_000 * "€", at=NOW),
        ]
        await fleet.write(
            PutSession(replace(SESSION, project="shop")),
            PutSession(replace(SESSION, id="t", project="docs")),
            PutSession(replace(SESSION, id="u")),
            PutCompaction(CompactionRow("s", "main", 1, at=NOW - 1)),
            *map(PutCall, calls),
        )
        assert await fleet.costs() == [GroupCosts("a", 6, 3.0, 0.0)]
        costs = {each.key: each.cost for each in await fleet.figures.costs("branch", SINCE)}
        long = "main" + 196 * "€"
        assert costs == {
            "shop: main": 1.0,
            "shop: fix": 0.5,
            None: 0.5,
            "docs: main": 0.5,
            long: 0.5,
        }
        active = (await fleet.figures.active("branch", SINCE, 0)).groups
        assert {each.key: each.sessions for each in active} == {
            "shop: fix": 1,
            "docs: main": 1,
            long: 1,
        }
        assert await fleet.figures.compactions("branch", SINCE) == [
            GroupCompactions("shop: fix", 1, 1)
        ]
        await fleet.write(PutCall(replace(calls[3], branch="fix", at=NOW - HOUR)))
        assert await fleet.costs() == [GroupCosts("a", 6, 3.0, 0.0)]
        costs = {each.key: each.cost for each in await fleet.figures.costs("branch", SINCE)}
        assert costs == {"shop: main": 1.0, "shop: fix": 1.0, "docs: main": 0.5, long: 0.5}

    run(shared_database, "branches", check)


def test_cost_without_a_price_is_unknown_and_a_miss_of_none_is_zero(shared_database: str) -> None:
    async def check(fleet: Fleet) -> None:
        for id, cost in (("known", 1.0), ("unknown", None)):
            row = replace(SESSION, id=id, team=id)
            await fleet.write(PutSession(row), PutCall(replace(CALL, session=id, cost=cost)))
        assert sorted(await fleet.costs(), key=lambda each: each.key or "") == [
            GroupCosts("known", 1, 1.0, 0.0),
            GroupCosts("unknown", 1, None, None),
        ]

    run(shared_database, "prices", check)


def test_hours_of_forgotten_and_of_claimed_sessions_are_deleted(shared_database: str) -> None:
    """A machine that claims a session replaces what telemetry reported: its cost counts once."""

    async def check(fleet: Fleet) -> None:
        await fleet.write(PutSession(SESSION), PutCall(CALL))
        assert await fleet.costs() == [GroupCosts("a", 1, 0.5, 0.0)]
        await fleet.write(ClaimSession("s", "m"))
        assert await fleet.costs() == []
        await fleet.write(PutSession(SESSION), PutCall(replace(CALL, call="own")))
        assert await fleet.costs() == [GroupCosts("a", 1, 0.5, 0.0)]
        await fleet.write(ForgetSessions(NOW + 1))
        assert await fleet.costs() == []

    run(shared_database, "deleted", check)
