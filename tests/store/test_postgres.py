"""The store in PostgreSQL: several replicas and organisations, old days, a crash of the server."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from brimline.context.inbox import Message
from brimline.errors import NewerStore, StoreFailed
from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    MarkMessage,
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    Store,
    UseHandoff,
    Write,
)
from brimline.store.postgres.apply import MAX_EVENT_KEYS, PRUNE_EVERY
from brimline.store.postgres.database import PostgresDatabase
from brimline.store.postgres.migration_steps import MIGRATIONS, Step
from brimline.store.postgres.migrations import migrate
from brimline.store.postgres.store import PostgresStore
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow
from postgres_server import execute, local_server

LEVELS = 40
MESSAGES = 100
SESSIONS = 150


@asynccontextmanager
async def opened(url: str, *organisations: str) -> AsyncGenerator[list[PostgresStore], None]:
    """Stores with connections of their own; they are closed afterwards."""
    stores = [await PostgresStore.open(url, name) for name in organisations]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


def call(session: str, id: str = "c") -> PutCall:
    return PutCall(CallRow(session, "main", id, 1, 0, 1, 2, 3, 4, at=1.0))


def all_kinds(session: str) -> list[Write]:
    """One write of each kind that adds something to a session."""
    return [
        EventKeys(("event",), 1.0),
        PutSession(SessionRow(session, "claude", 1.0, machine="machine")),
        PutThread(ThreadRow(session, "main", 0, 1, "hook", "measured")),
        call(session),
        PutCompaction(CompactionRow(session, "main", 0)),
        RecordSignal(SignalRow(session, "main", 0, "level", 1.0, 50.0)),
        QueueMessage(Message("message", session, "text", 1.0, sender="user")),
        PutHandoff(HandoffRow("handoff", session, 1.0, "/h.md", "00", "text", "agent", 0, 7)),
    ]


async def everything(store: Store, session: str) -> list[object]:
    """What every query returns."""
    return [
        await store.sessions(),
        await store.session(session),
        await store.threads(),
        await store.threads(session),
        await store.calls(session),
        await store.calls(session, "main"),
        await store.compactions(),
        await store.compactions(session),
        await store.signals(),
        await store.signals(session),
        await store.messages(),
        await store.messages(session),
        await store.pending_messages(),
        await store.pending_messages(session),
        *await store.machine_deliveries("machine", 0.0),
        await store.last_handoffs(),
        await store.last_handoffs(session),
        await store.handoffs(session),
        await store.known_events(["event"]),
        await store.changes(),
    ]


async def test_level_fires_once_for_three_replicas(database: str) -> None:
    async with opened(database, "o", "o", "o") as stores:
        fires = [
            (
                level,
                store.write([RecordSignal(signal, (Message(f"{n} {level}", "s", "", 1.0),))]),
            )
            for level in range(LEVELS)
            for signal in [SignalRow("s", "main", 0, "level", 1.0, float(level))]
            for n, store in enumerate(stores)
        ]
        effects = await asyncio.gather(*(fire for _, fire in fires))
        fired = [level for (level, _), effect in zip(fires, effects, strict=True) if effect[0]]
        assert Counter(fired) == Counter(range(LEVELS))
        assert len(await stores[0].messages("s")) == len(await stores[1].signals()) == LEVELS


async def test_order_of_messages_is_the_order_of_commits(database: str) -> None:
    """Who reads after each write of any replica never finds a message before one that it knew."""

    async def write(store: PostgresStore, name: str) -> None:
        for number in range(MESSAGES):
            await store.write([QueueMessage(Message(f"{name} {number}", "s", "", 1.0))])

    async with opened(database, "o", "o", "o") as (one, other, reader):
        writing = asyncio.gather(write(one, "one"), write(other, "other"))
        known: list[str] = []
        while not writing.done():
            ids = [message.id for message in await reader.messages("s")]
            assert ids[: len(known)] == known
            known = ids
        await writing
        ids = [message.id for message in await reader.messages("s")]
        for name in ("one", "other"):
            of_writer = [id for id in ids if id.startswith(f"{name} ")]
            assert of_writer == [f"{name} {number}" for number in range(MESSAGES)]


async def test_reader_of_changes_skips_no_session(database: str) -> None:
    """Marks become visible in their order, even if several replicas write."""

    async def write(store: PostgresStore, name: str) -> None:
        for number in range(SESSIONS):
            row = SessionRow(f"{name} {number}", "claude", 1.0)
            # A list that takes longer than the other replica's.
            rest = [call(row.id, str(place)) for place in range(20 if name == "one" else 0)]
            await store.write([PutSession(row), *rest])

    async with opened(database, "o", "o", "o") as (one, other, reader):
        writing = asyncio.gather(write(one, "one"), write(other, "other"))
        mark, seen = 0, set[str]()
        finished = False
        while not finished:
            finished = writing.done()
            for changed_at, session in await reader.changes(mark):
                mark = changed_at
                seen.add(session)
        await writing
        assert len(seen) == 2 * SESSIONS


async def test_organisations_see_nothing_of_each_other(database: str) -> None:
    """No query and no write of an organisation reaches the rows of another, with the same ids."""

    async with opened(database, "one", "other") as (one, other):
        nothing = await everything(other, "s")
        assert all(await one.write(all_kinds("s")))
        before = await everything(one, "s")
        assert await everything(other, "s") == nothing
        touching: list[Write] = [
            MarkMessage("message", "delivered", ("queued",), 2.0),
            UseHandoff("handoff", 2.0),
            ForgetSessions(9.0),
        ]
        assert await other.write(touching) == [False] * 3
        assert all(await other.write(all_kinds("s")))
        assert await other.write([*touching]) == [True] * 3
        assert await everything(one, "s") == before


def test_replicas_that_start_at_once_migrate_once(database: str) -> None:
    async def run() -> None:
        stores = await asyncio.gather(*(PostgresStore.open(database) for _ in range(6)))
        await asyncio.gather(*(store.write([call("s")]) for store in stores))
        for store in stores:
            await store.close()

    asyncio.run(run())
    assert execute(database, "SELECT version FROM schema_version") == [[len(MIGRATIONS)]]
    assert execute(database, "SELECT name FROM organisations") == [["default"]]


LAST_STATEMENTS = """SELECT query FROM pg_stat_activity
WHERE application_name = 'brimline' AND pid <> pg_backend_pid()"""


async def test_query_is_one_exchange(database: str) -> None:
    """A released connection is not reset: that would be a second one."""

    async with opened(database, "o") as [store]:
        await store.session("s")
        statements = await asyncio.to_thread(execute, database, LAST_STATEMENTS)
    assert [text for [text] in statements if "RESET" in text or "sessions" not in text] == []


async def test_database_of_a_newer_version_is_refused(database: str) -> None:
    async with opened(database, "o"):
        pass
    await asyncio.to_thread(
        execute, database, "UPDATE schema_version SET version = 99, oldest_compatible = 99"
    )
    with pytest.raises(NewerStore, match="version 99"):
        await PostgresStore.open(database)


async def test_replica_of_the_version_before_goes_on_if_an_upgrade_only_adds(database: str) -> None:
    """It works while and after the newer one migrates, and can start again."""
    added = ("ALTER TABLE sessions ADD COLUMN added TEXT", "CREATE TABLE added (id TEXT)")

    async def run() -> None:
        async with opened(database, "o") as (store,):
            assert all(await store.write(all_kinds("s")))
            before = await everything(store, "s")
            await migrate_on((*MIGRATIONS, added), len(MIGRATIONS))
            assert await everything(store, "s") == before
            await store.write([PutSession(SessionRow("t", "claude", 2.0)), call("t")])
            async with opened(database, "o") as (restarted,):
                assert await everything(restarted, "t") == await everything(store, "t")
                assert len(await restarted.calls("t")) == 1

    async def migrate_on(steps: tuple[Step, ...], oldest_compatible: int) -> None:
        pool = await asyncpg.create_pool(database, min_size=1)
        async with pool, pool.acquire() as connection:
            await migrate(connection, "newer", steps, oldest_compatible)

    await run()
    stored = await asyncio.to_thread(
        execute, database, "SELECT version, oldest_compatible FROM schema_version"
    )
    assert stored == [[len(MIGRATIONS) + 1, len(MIGRATIONS)]]

    changed = ("ALTER TABLE sessions RENAME COLUMN agent TO client",)
    version = len(MIGRATIONS) + 2
    await migrate_on((*MIGRATIONS, added, changed), version)
    with pytest.raises(NewerStore, match=f"version {version}"):
        await PostgresStore.open(database)


def test_hours_before_branches_were_known_are_kept(database: str) -> None:
    """Replicas of the version before sum on in their own table, those of this one in theirs."""

    async def run() -> None:
        pool = await asyncpg.create_pool(database, min_size=1)
        async with pool, pool.acquire() as connection:
            await migrate(connection, "older", MIGRATIONS[:4])
            await connection.execute(
                """INSERT INTO session_hours (organisation, session, hour, calls, cost, agent)
                VALUES ('o', 's', 480000, 3, 1.5, 'claude')"""
            )
            await connection.execute("INSERT INTO cursors VALUES ('o', 'session_hours', 7)")
            await migrate(connection, "newer")

    asyncio.run(run())
    hours = "SELECT session, hour, branch, last_at, calls, cost, miss_cost, agent FROM branch_hours"
    assert execute(database, hours) == [["s", 480_000, "", 1.728e9, 3, 1.5, None, "claude"]]
    cursors = "SELECT name, position FROM cursors ORDER BY name"
    assert execute(database, cursors) == [["session_hours", 7]]  # all are summed again, by day too


def test_calls_that_a_version_before_stores_are_in_the_cost_of_their_session(
    database: str,
) -> None:
    """Replicas of both versions serve during an upgrade."""
    insert = """INSERT INTO calls (organisation, day, session, thread, call, seq, cycle,
        input, cache_read, cache_write, cache_write_1h, output, cost)
        VALUES ('o', '2020-01-01', 's', 'main', $1, 0, 0, 1, 1, 1, 0, 1, $2)"""

    async def run() -> None:
        pool = await asyncpg.create_pool(database, min_size=1)
        async with pool, pool.acquire() as connection:
            await migrate(connection, "older", MIGRATIONS[:7])
            await connection.execute(
                "CREATE TABLE calls_20200101 PARTITION OF calls FOR VALUES IN ('2020-01-01')"
            )
            await connection.executemany(insert, [("a", 0.5), ("b", None)])
            await migrate(connection, "newer")
            await connection.executemany(insert, [("c", 0.25), ("d", None)])
            await connection.execute("UPDATE calls SET cost = 1.0 WHERE call = 'b'")

    asyncio.run(run())
    assert execute(database, "SELECT * FROM session_costs") == [["o", "s", 1.75, 3]]


PARTITION_OF_2020 = """SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid
WHERE inhparent = 'calls'::regclass AND relname = 'calls_20200101'"""


def fill_2020(database: str, *organisations: str) -> None:
    """Store a new session, and an old one whose calls are in the partition of a day of 2020."""

    async def fill() -> None:
        async with opened(database, *organisations) as stores:
            for store in stores:
                for id, seen_at in (("old", 1.0), ("new", 9.0)):
                    await store.write([PutSession(SessionRow(id, "claude", seen_at)), call(id)])

    asyncio.run(fill())
    execute(
        database,
        "CREATE TABLE calls_20200101 PARTITION OF calls FOR VALUES IN ('2020-01-01')",
        "UPDATE calls SET day = '2020-01-01' WHERE session = 'old'",
        "UPDATE call_days SET day = '2020-01-01' WHERE session = 'old'",
    )


def test_old_day_is_dropped_when_all_its_sessions_are_forgotten(database: str) -> None:
    """Until then the calls of its forgotten sessions are deleted one by one."""

    async def forget(organisation: str) -> None:
        async with opened(database, organisation) as (store,):
            assert await store.write([ForgetSessions(5.0)]) == [True]
            assert await store.calls("old") == []
            assert len(await store.calls("new")) == 1
            assert await store.write([call("old")]) == [True]
            assert len(await store.calls("old")) == 1

    fill_2020(database, "one", "other")
    asyncio.run(forget("one"))
    assert execute(database, "SELECT organisation FROM calls_20200101") == [["other"]]
    asyncio.run(forget("other"))
    assert execute(database, PARTITION_OF_2020) == []


async def test_day_that_is_being_read_is_dropped_later(database: str) -> None:
    """The sessions are forgotten nevertheless."""
    await asyncio.to_thread(fill_2020, database, "o")
    async with opened(database, "o") as (store,):
        reader = await asyncpg.connect(database)
        try:
            async with reader.transaction():
                await reader.execute("SELECT FROM calls")
                assert await store.write([ForgetSessions(5.0)]) == [True]
                assert await store.calls("old") == []
                assert await reader.fetch(PARTITION_OF_2020)
            assert await store.write([ForgetSessions(5.0)]) == [False]
            assert not await reader.fetch(PARTITION_OF_2020)
        finally:
            await reader.close()


async def test_oldest_event_keys_are_deleted(database: str) -> None:
    """Each organisation keeps its newest keys."""
    keys = [EventKeys((str(number),), 1.0) for number in range(PRUNE_EVERY + 5)]

    async with opened(database, "one", "other") as (one, other):
        assert all(await other.write(keys))
        await one.write(keys)
        full = f"UPDATE organisations SET event_keys = {MAX_EVENT_KEYS + PRUNE_EVERY - 1}"
        await asyncio.to_thread(execute, database, f"{full} WHERE name = 'one'")
        await one.write([EventKeys(("last",), 1.0)])
        kept = await one.known_events(["0", "999", "1000", "1004", "last"])
        assert kept == {"1000", "1004", "last"}
        assert await other.known_events(["0"])


async def test_refused_value_fails_only_its_own_list(database: str) -> None:
    async with opened(database, "o") as (store,):
        lists: list[list[Write]] = [
            [call("s", "before")],
            [
                call("s", "with too large"),
                PutCall(CallRow("s", "main", "x", 2**63, 0, 1, 2, 3, 4)),
            ],
            [call("s", "\ud800")],
            [call("s", "x" * 1_000_000)],
            [call("s", "after")],
        ]
        outcomes = await asyncio.gather(*map(store.write, lists), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[1:4]] == [StoreFailed] * 3
        assert outcomes[0] == outcomes[4] == [True]
        assert {row.call for row in await store.calls("s")} == {"before", "after"}


async def test_error_of_a_shared_query_reaches_all_who_wait_for_it(database: str) -> None:
    async with opened(database, "o") as [store]:
        await store.write([PutSession(SessionRow("s", "claude", 1.0, machine="m"))])
        await asyncio.to_thread(execute, database, "DROP TABLE handoffs")
        asked = (store.machine_deliveries(machine, 0.0) for machine in ("m", "n"))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreFailed, StoreFailed]


async def test_nul_in_a_text_is_replaced(database: str) -> None:
    """PostgreSQL cannot store it; a text with one is neither refused nor lost."""

    async with opened(database, "o") as (store,):
        row = SessionRow("a\0b", "claude", 1.0, title="\0")
        assert await store.write([PutSession(row), call("a\0b")] * 2) == [True] * 2 + [False] * 2
        assert await store.session("a\0b") == SessionRow("a\ufffdb", "claude", 1.0, title="\ufffd")
        assert len(await store.calls("a\0b")) == 1


async def test_store_survives_a_crash_of_the_server() -> None:
    """What was acknowledged is there; writes and queries fail meanwhile, and work afterwards."""

    with local_server() as server:
        async with opened(server.url, "o") as (store,):
            acknowledged: list[str] = []

            async def write_until_failure() -> None:
                while True:
                    id = str(len(acknowledged))
                    await store.write([call("s", id)])
                    acknowledged.append(id)

            writing = asyncio.create_task(write_until_failure())
            while not acknowledged and not writing.done():
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.crash)
            with pytest.raises(StoreFailed):
                await writing
            with pytest.raises(StoreFailed):
                await store.sessions()
            with pytest.raises(StoreFailed):
                await store.write([call("s", "down")])
            await asyncio.to_thread(server.start)
            assert await store.write([call("s", "after")]) == [True]
            stored = {row.call for row in await store.calls("s")}
            assert acknowledged
            assert stored >= {*acknowledged, "after"}
            assert len(stored) <= len(acknowledged) + 2


async def test_organisation_whose_queries_hang_leaves_connections_to_others(database: str) -> None:
    fleet = await PostgresDatabase.open(database)
    connection = await asyncpg.connect(database)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE sessions")
            store = fleet.store("o")
            hanging = [asyncio.create_task(store.session("s")) for _ in range(30)]
            await asyncio.sleep(0.05)
            assert await asyncio.wait_for(fleet.tokens.list("p"), 5) == []
            assert await asyncio.wait_for(fleet.store("p").cursor("c"), 5) == 0
        assert await asyncio.gather(*hanging) == [None] * 30
    finally:
        await connection.close()
        await fleet.close()


def test_migration_has_time(database: str) -> None:
    """An index of a large table takes longer than any other statement may."""

    async def run() -> None:
        pool = await asyncpg.create_pool(database, min_size=1, command_timeout=0.2)
        async with pool, pool.acquire() as connection:
            await migrate(connection, "slow", (("SELECT pg_sleep(0.4)",),))

    asyncio.run(run())
    assert execute(database, "SELECT version FROM schema_version") == [[1]]


async def test_locked_organisation_is_an_error_that_says_so(database: str) -> None:
    """A write waits for those of other processes, but not forever."""
    short = f"{database}&lock_timeout=200ms"

    async with opened(short, "o") as (store,):
        await store.write([call("before")])
        holder = await asyncpg.connect(database)
        try:
            async with holder.transaction():
                await holder.execute("SELECT FROM organisations FOR UPDATE")
                with pytest.raises(StoreFailed, match="keeps the database locked"):
                    await store.write([call("s")])
            assert await store.write([call("s")]) == [True]
        finally:
            await holder.close()


async def test_error_names_the_database_without_its_password() -> None:
    with pytest.raises(StoreFailed) as raised:
        await PostgresStore.open("postgresql://user:secret@127.0.0.1:1/fleet?password=secret")
    assert "postgresql://127.0.0.1:1/fleet" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert raised.value.hint is not None


def test_invalid_url_is_an_error() -> None:
    for url in ("mysql://host/db", "postgresql://[/db"):
        with pytest.raises(StoreFailed):
            asyncio.run(PostgresStore.open(url))


async def test_closed_store_is_an_error(database: str) -> None:
    async with opened(database, "o") as (store,):
        await store.close()
        with pytest.raises(StoreFailed, match="closed"):
            await store.write([call("s")])
        with pytest.raises(StoreFailed, match="closed"):
            await store.sessions()
        with pytest.raises(StoreFailed, match="closed"):
            await store.machine_deliveries("machine", 0.0)


def test_missing_asyncpg_says_what_to_install() -> None:
    program = """
import asyncio, sys
sys.modules["asyncpg"] = None
import brimline.server.daemon
from brimline.errors import StoreFailed
from brimline.store.postgres import open_postgres
try:
    asyncio.run(open_postgres("postgresql:///"))
except StoreFailed as error:
    print(error, error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "asyncpg is not installed" in done.stdout
    assert "pip install 'brimline[fleet]'" in done.stdout
