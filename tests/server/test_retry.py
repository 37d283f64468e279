"""Failures outside of requests: logged once, then retried."""

import asyncio
from pathlib import Path

import pytest

from brimline.daemon import retry
from brimline.daemon.log_limit import MAX_REMEMBERED, REPEAT_AFTER_S, RateLimitedLog
from brimline.daemon.retry import growing_pauses, is_transient, retry_until_stored, run_forever
from brimline.errors import StoreFailed

FULL = StoreFailed("brimline.db", "database or disk is full", "Free some space on that disk.")
REFUSED = StoreFailed("brimline.db", "Python int too large to convert to SQLite INTEGER")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)


def test_same_problem_is_logged_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = RateLimitedLog(lambda: now[0])
    for at in (0.0, 1.0, REPEAT_AFTER_S - 1.0, REPEAT_AFTER_S + 1.0):
        now[0] = at
        log.warn("following", FULL)
    log.warn("following", REFUSED)
    log.warn("forgetting", FULL)
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        "following", "following", "following", "forgetting",
    ]  # fmt: skip


def test_remembered_problems_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog()
    for number in range(MAX_REMEMBERED + 1):
        log.warn(str(number), FULL)
    log.warn("0", FULL)
    assert len(caplog.records) == MAX_REMEMBERED + 2


def test_bug_is_logged_with_its_traceback_and_an_os_error_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = RateLimitedLog()
    for error in (FULL, OSError(28, "No space left on device"), KeyError("x")):
        log.warn("it", error)
    assert [record.exc_info is not None for record in caplog.records] == [False, False, True]


def test_pauses_double_up_to_the_longest() -> None:
    pauses = [pause for pause, _ in zip(growing_pauses(), range(17), strict=False)]
    assert pauses[:3] == [0.001, 0.002, 0.004]
    assert pauses[-1] == retry.MAX_PAUSE_S


def test_failed_work_is_restarted_and_its_reason_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
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
    assert [record.message.partition(" hint: ")[0] for record in caplog.records] == [
        "the work failed, will retry: brimline.db: database or disk is full"
    ]


@pytest.mark.parametrize(("error", "tried"), [(FULL, 3), (REFUSED, 1), (KeyError("x"), 1)])
def test_temporary_store_failure_is_retried_and_a_permanent_one_given_up(
    error: Exception, tried: int, caplog: pytest.LogCaptureFixture
) -> None:
    times: list[int] = []

    async def work() -> None:
        times.append(1)
        if len(times) < 3:
            raise error

    asyncio.run(retry_until_stored("a mark", work, RateLimitedLog()))
    assert len(times) == tried
    assert len(caplog.records) == 1


def test_full_disk_and_lock_are_temporary_but_a_refused_value_is_not(tmp_path: Path) -> None:
    import sqlite3

    from brimline.store.sqlite.connections import store_failed

    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert is_transient(store_failed(tmp_path, full))
    assert not is_transient(store_failed(tmp_path, OverflowError("Python int too large")))
    assert not is_transient(OSError(28, "No space left on device"))
