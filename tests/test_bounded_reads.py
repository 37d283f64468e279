"""Blocking reads: the event loop goes on while they hang, and threads do not pile up."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from operator import getitem
from typing import Any

import pytest

from brimline.bounded_reads import CachedReads, ReadThreads

PATIENCE_S = 20.0


class HangingFileSystem:
    """Reads that hang until they are let go, and how many were begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.released = threading.Event()

    def read(self, key: str) -> str:
        """Hang, then return a text."""
        self.begun.append(key)
        assert self.released.wait(PATIENCE_S)
        return f"content of {key}"


@contextmanager
def hanging() -> Generator[HangingFileSystem]:
    """A file system that hangs, and is let go at the end."""
    made = HangingFileSystem()
    try:
        yield made
    finally:
        made.released.set()


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine, which may not hang."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work

    asyncio.run(bounded())


async def until(fits: Callable[[], bool]) -> None:
    """Let the loop go on until something is so."""
    while not fits():
        await asyncio.sleep(0.001)


def test_result_and_error_of_a_read() -> None:
    """A read returns what it returns, and raises what it raises."""

    async def go() -> None:
        threads = ReadThreads()
        assert await threads.run(lambda: 1) == 1
        with pytest.raises(KeyError):
            await threads.run(partial(getitem, {}, "missing"))

    run(go())


def test_read_that_hangs_times_out() -> None:
    """Whoever waits gets a TimeoutError, and others are served meanwhile."""

    async def go() -> None:
        threads = ReadThreads()
        with hanging() as disk:
            with pytest.raises(TimeoutError):
                await threads.run(lambda: disk.read("x"), 0.01)
            assert await threads.run(lambda: 1) == 1

    run(go())


def test_idle_threads_are_reused() -> None:
    """A hundred reads one after the other need one thread."""

    async def go() -> None:
        threads = ReadThreads()
        names = {await threads.run(lambda: threading.current_thread().name) for _ in range(100)}
        assert len(names) == 1

    run(go())


def test_reads_are_refused_when_every_thread_hangs() -> None:
    """Hung reads take at most so many threads; then a read fails at once, until one is free."""

    async def go() -> None:
        threads = ReadThreads(max_threads=3, hung_after_s=0.0)
        with hanging() as disk:
            futures = [threads.start(lambda: disk.read("x")) for _ in range(3)]
            await until(lambda: len(disk.begun) == 3)
            with pytest.raises(TimeoutError, match="3 reads are hanging"):
                threads.start(lambda: 1)
            disk.released.set()
            await asyncio.gather(*futures)
            assert await threads.run(lambda: 1) == 1

    run(go())


def test_hung_read_does_not_keep_a_process_alive() -> None:
    """A process ends while a read hangs."""
    script = (
        "import asyncio, time\n"
        "from brimline.bounded_reads import ReadThreads\n"
        "async def go():\n"
        "    ReadThreads().start(lambda: time.sleep(1000))\n"
        "    await asyncio.sleep(0.01)\n"
        "asyncio.run(go())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)


def test_fresh_value_is_read_once() -> None:
    """Within its time a value is not read again."""

    async def go() -> None:
        keys: list[str] = []

        def read(key: str) -> str:
            keys.append(key)
            return key.upper()

        cached = CachedReads(read, "unknown", wait_s=PATIENCE_S)
        assert cached.get("a") == "unknown"
        assert [await cached.refresh("a") for _ in range(3)] == ["A"] * 3
        assert (await cached.refresh("b"), cached.get("a"), keys) == ("B", "A", ["a", "b"])

    run(go())


def test_stale_value_is_read_again() -> None:
    """After its time a value is read again; without waiting, the old one is returned first."""

    async def go() -> None:
        numbers = iter(range(100))
        cached = CachedReads[str, int](
            lambda key: next(numbers), -1, wait_s=PATIENCE_S, fresh_s=-1.0
        )
        assert [await cached.refresh("a") for _ in range(3)] == [0, 1, 2]
        assert cached.get("a") == 2
        await until(lambda: cached.get("a") > 2)

    run(go())


def test_hanging_read_gives_the_default_and_is_started_once() -> None:
    """A read that hangs is waited for once; the loop goes on, and no second read is started."""

    async def go() -> None:
        with hanging() as disk:
            cached = CachedReads(disk.read, "default", wait_s=0.01)
            answers = await asyncio.gather(*(cached.refresh("a") for _ in range(50)))
            assert set(answers) == {"default"}
            assert await cached.refresh("a") == "default"
            assert disk.begun == ["a"]
            disk.released.set()
            await until(lambda: cached.get("a") == "content of a")
            assert disk.begun == ["a"]

    run(go())


def test_read_that_fails_leaves_the_last_value(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is logged, and the value of before is used."""

    async def go() -> None:
        outcomes = iter([lambda: 1, lambda: 1 // 0, lambda: 3])
        cached = CachedReads[str, int](
            lambda key: next(outcomes)(), 0, wait_s=PATIENCE_S, fresh_s=-1.0
        )
        assert [await cached.refresh("a") for _ in range(3)] == [1, 1, 3]

    run(go())
    assert "ZeroDivisionError" in caplog.text


def test_number_of_keys_is_bounded() -> None:
    """Of many keys the oldest are dropped, and read again when they are asked for."""

    async def go() -> None:
        keys: list[int] = []

        def read(key: int) -> int:
            keys.append(key)
            return key

        cached = CachedReads(read, -1, wait_s=PATIENCE_S)
        for key in range(300):
            assert await cached.refresh(key) == key
        assert await cached.refresh(299) == 299
        assert await cached.refresh(0) == 0
        assert keys == [*range(300), 0]

    run(go())
