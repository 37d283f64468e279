"""Of the processes that share a database, one does a task."""

import asyncio

from brimline.store.postgres import open_database
from brimline.store.postgres.pool import ConnectionPool
from postgres_server import execute

END_CONNECTIONS = """SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"""


async def test_one_process_is_elected_until_it_ends(database: str) -> None:
    """Each organisation and task has an election of its own."""

    one, other = await open_database(database), await open_database(database)
    ours, theirs = one.store("elected"), other.store("elected")
    assert [await ours.is_elected("export") for _ in range(2)] == [True, True]
    assert [await theirs.is_elected("export") for _ in range(2)] == [False, False]
    assert await theirs.is_elected("another task")
    assert await other.store("other organisation").is_elected("export")
    await one.close()
    assert await theirs.is_elected("export")
    await other.close()


async def test_task_that_is_given_up_is_free_while_its_connection_stays_open(database: str) -> None:
    one, other = await ConnectionPool.open(database), await ConnectionPool.open(database)
    assert await one.election.is_elected("task")
    assert not await other.election.is_elected("task")
    await one.election.close()
    assert await other.election.is_elected("task")
    await one.close()
    await other.close()


async def test_process_that_lost_its_connection_is_not_elected_any_more(database: str) -> None:
    """PostgreSQL has freed its lock: another process may have it."""

    one = await open_database(database)
    store = one.store("interrupted")
    assert await store.is_elected("export")
    await asyncio.to_thread(execute, database, END_CONNECTIONS)
    assert not await store.is_elected("export")
    assert await store.is_elected("export")
    await one.close()
