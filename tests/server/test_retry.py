"""What goes wrong beside the requests: said once, and gone on with."""

import asyncio
from pathlib import Path

import pytest

from brimline.server import retry
from brimline.server.retry import (
    MAX_REMEMBERED,
    REPEAT_AFTER_S,
    RateLimitedLog,
    growing_pauses,
    is_transient,
    retry_until_stored,
    run_forever,
)
from brimline.store.failures import StoreFailed

FULL = StoreFailed("brimline.db", "database or disk is full", "Free some space on that disk.")
REFUSED = StoreFailed("brimline.db", "Python int too large to convert to SQLite INTEGER")


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here."""
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)


def test_said_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    """The same trouble is said once, until an hour has passed; another one at once."""
    now = [0.0]
    told = RateLimitedLog(lambda: now[0])
    for at in (0.0, 1.0, REPEAT_AFTER_S - 1.0, REPEAT_AFTER_S + 1.0):
        now[0] = at
        told.warn("following", FULL)
    told.warn("following", REFUSED)
    told.warn("forgetting", FULL)
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        "following", "following", "following", "forgetting",
    ]  # fmt: skip


def test_many_troubles(caplog: pytest.LogCaptureFixture) -> None:
    """So many troubles are not all remembered."""
    told = RateLimitedLog()
    for number in range(MAX_REMEMBERED + 1):
        told.warn(str(number), FULL)
    told.warn("0", FULL)
    assert len(caplog.records) == MAX_REMEMBERED + 2


def test_unforeseen(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours is said with its place, what the machine does is not."""
    told = RateLimitedLog()
    for error in (FULL, OSError(28, "No space left on device"), KeyError("x")):
        told.warn("it", error)
    assert [record.exc_info is not None for record in caplog.records] == [False, False, True]


def test_pauses_grow() -> None:
    """Each pause is twice the one before, up to the longest."""
    found = [pause for pause, _ in zip(growing_pauses(), range(17), strict=False)]
    assert found[:3] == [0.001, 0.002, 0.004]
    assert found[-1] == retry.MAX_PAUSE_S


def test_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Work that breaks off is begun anew, however often; the reason is said once."""
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)
        if len(begun) > 4:
            await asyncio.Event().wait()
        raise FULL

    async def run() -> None:
        task = asyncio.create_task(run_forever("the work", work))
        async with asyncio.timeout(20):
            while len(begun) < 5:
                await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert [record.message.splitlines()[0] for record in caplog.records] == [
        "the work failed, will retry: brimline.db: database or disk is full"
    ]


@pytest.mark.parametrize(("error", "tried"), [(FULL, 3), (REFUSED, 1), (KeyError("x"), 1)])
def test_until_it_is_kept(error: Exception, tried: int, caplog: pytest.LogCaptureFixture) -> None:
    """What the store may keep later is tried until it does; what it never will is given up."""
    times: list[int] = []

    async def work() -> None:
        times.append(1)
        if len(times) < 3:
            raise error

    asyncio.run(retry_until_stored("a mark", work, RateLimitedLog()))
    assert len(times) == tried
    assert len(caplog.records) == 1


def test_what_the_store_tells(tmp_path: Path) -> None:
    """A disk or a lock may pass, as the store itself says it; a value that it refuses does not."""
    import sqlite3

    from brimline.store.sqlite.connections import store_failed

    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert is_transient(store_failed(tmp_path, full))
    assert not is_transient(store_failed(tmp_path, OverflowError("Python int too large")))
    assert not is_transient(OSError(28, "No space left on device"))
