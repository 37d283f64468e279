"""Blocking reads: the event loop continues while they hang, and threads do not pile up."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from operator import getitem

import pytest

from brimline.files.bounded_reads import CachedReads, ReadThreads

PATIENCE_S = 20.0

pytestmark = pytest.mark.timeout(PATIENCE_S)


class HangingFileSystem:
    """Reads that hang until they are released, and their number."""

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
    """A hanging file system, released after the test."""
    file_system = HangingFileSystem()
    try:
        yield file_system
    finally:
        file_system.released.set()


async def until(fits: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    while not fits():
        await asyncio.sleep(0.001)


async def test_read_returns_its_result_or_raises_its_error() -> None:
    threads = ReadThreads()
    assert await threads.run(lambda: 1) == 1
    with pytest.raises(KeyError):
        await threads.run(partial(getitem, {}, "missing"))


async def test_hanging_read_times_out_while_others_are_served() -> None:
    threads = ReadThreads()
    with hanging() as disk:
        with pytest.raises(TimeoutError):
            await threads.run(lambda: disk.read("x"), 0.01)
        assert await threads.run(lambda: 1) == 1


async def test_idle_threads_are_reused() -> None:
    threads = ReadThreads()
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(100)}
    assert len(names) == 1


async def test_reads_are_refused_when_every_thread_hangs() -> None:
    threads = ReadThreads(max_threads=3, hung_after_s=0.0)
    with hanging() as disk:
        futures = [threads.start(lambda: disk.read("x")) for _ in range(3)]
        await until(lambda: len(disk.begun) == 3)
        with pytest.raises(TimeoutError, match="3 reads are hanging"):
            threads.start(lambda: 1)
        disk.released.set()
        await asyncio.gather(*futures)
        assert await threads.run(lambda: 1) == 1


def test_hung_read_does_not_keep_a_process_alive() -> None:
    script = (
        "import asyncio, time\n"
        "from brimline.files.bounded_reads import ReadThreads\n"
        "async def go():\n"
        "    ReadThreads().start(lambda: time.sleep(1000))\n"
        "    await asyncio.sleep(0.01)\n"
        "asyncio.run(go())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE_S)


async def test_fresh_value_is_read_once() -> None:
    keys: list[str] = []

    def read(key: str) -> str:
        keys.append(key)
        return key.upper()

    cached = CachedReads(read, "unknown", wait_s=PATIENCE_S)
    assert cached.get("a") == "unknown"
    assert [await cached.refresh("a") for _ in range(3)] == ["A"] * 3
    assert (await cached.refresh("b"), cached.get("a"), keys) == ("B", "A", ["a", "b"])


async def test_stale_value_is_read_again() -> None:
    """Without waiting, the old value is returned first."""
    numbers = iter(range(100))
    cached = CachedReads[str, int](lambda key: next(numbers), -1, wait_s=PATIENCE_S, fresh_s=-1.0)
    assert [await cached.refresh("a") for _ in range(3)] == [0, 1, 2]
    assert cached.get("a") == 2
    await until(lambda: cached.get("a") > 2)


async def test_hanging_read_gives_the_default_and_is_started_once() -> None:
    with hanging() as disk:
        cached = CachedReads(disk.read, "default", wait_s=0.01)
        answers = await asyncio.gather(*(cached.refresh("a") for _ in range(50)))
        assert set(answers) == {"default"}
        assert await cached.refresh("a") == "default"
        await until(lambda: disk.begun == ["a"])
        disk.released.set()
        await until(lambda: cached.get("a") == "content of a")
        assert disk.begun == ["a"]


async def test_failed_read_is_logged_and_keeps_the_last_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = iter([lambda: 1, lambda: 1 // 0, lambda: 3])
    cached = CachedReads[str, int](lambda key: next(outcomes)(), 0, wait_s=PATIENCE_S, fresh_s=-1.0)
    assert [await cached.refresh("a") for _ in range(3)] == [1, 1, 3]
    assert "ZeroDivisionError" in caplog.text


async def test_number_of_keys_is_bounded() -> None:
    """The oldest are dropped and read again when requested."""
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
