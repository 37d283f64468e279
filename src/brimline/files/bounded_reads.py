"""Blocking reads outside the event loop: each in a thread, waited for only so long.

A file system that hangs (NFS, FUSE) hangs every thread that reads from it, for as long as it likes.
Such a thread is left behind: the caller goes on with what it knew before, the number of threads is
bounded, and a read that hangs is not started a second time.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

LOGGER = logging.getLogger("brimline.reads")

MAX_READ_THREADS = 32
# If every thread has been in its present read for longer than this, new reads are refused.
HUNG_AFTER_S = 1.0

READ_WAIT_S = 0.05  # a hook waits this long for settings; its client gives up after 0.2 s

FRESH_S = 60.0
MAX_CACHED_KEYS = 256

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class ReadThreads:
    """Runs blocking reads in daemon threads, which are reused.

    The threads of concurrent.futures are joined at exit: there one hung read would keep the process
    from ending.
    """

    def __init__(
        self, max_threads: int = MAX_READ_THREADS, hung_after_s: float = HUNG_AFTER_S
    ) -> None:
        self._max_threads = max_threads
        self._hung_after_s = hung_after_s
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads = 0
        self._busy_since: dict[int, float] = {}

    def start(self, read: Callable[[], ResultT]) -> "asyncio.Future[ResultT]":
        """Start a read and return its future; TimeoutError if every thread hangs."""
        if self._is_exhausted():
            raise TimeoutError(f"{self._max_threads} reads are hanging")
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._jobs.put((read, future))
        if not self._idle.acquire(blocking=False) and self._threads < self._max_threads:
            self._threads += 1
            name = f"read-{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    async def run(self, read: Callable[[], ResultT], timeout_s: float | None = None) -> ResultT:
        """Return what a read returns; TimeoutError if it takes longer, while its thread goes on."""
        future = self.start(read)
        await asyncio.wait([future], timeout=timeout_s)
        if not future.done():
            future.cancel()
            raise TimeoutError(f"not read within {timeout_s:g} s")
        return future.result()

    def _is_exhausted(self) -> bool:
        began = list(self._busy_since.values())
        return (
            len(began) == self._max_threads and max(began) < time.monotonic() - self._hung_after_s
        )

    def _work(self) -> None:
        me = threading.get_ident()
        while True:
            read, future = self._jobs.get()
            self._busy_since[me] = time.monotonic()
            settle, outcome = _run(read, future)
            del self._busy_since[me]
            # Before the result is there: whoever awaits it may start the next read at once.
            self._idle.release()
            _settle(future, settle, outcome)


def _run(
    read: Callable[[], Any], future: "asyncio.Future[Any]"
) -> tuple[Callable[[Any], None], object]:
    """Return the method of the future to call, and its argument."""
    try:
        return future.set_result, read()
    except Exception as error:  # noqa: BLE001 - it is raised where the future is awaited
        return future.set_exception, error


def _settle(future: "asyncio.Future[Any]", settle: Callable[[Any], None], outcome: object) -> None:
    def in_loop() -> None:
        if not future.done():  # its caller gave up
            settle(outcome)

    with suppress(RuntimeError):  # the loop is closed
        future.get_loop().call_soon_threadsafe(in_loop)


# The threads of this process; one pool, because one bound is for all of them.
SHARED_READS = ReadThreads()


class _CachedRead(Generic[ValueT]):
    """A value, when it was read, and the read that is under way."""

    def __init__(self, value: ValueT) -> None:
        self.value = value
        self.read_at: float | None = None
        self.pending: asyncio.Future[ValueT] | None = None
        self.pending_since = 0.0


class CachedReads(Generic[KeyT, ValueT]):
    """The values of a blocking read by key; those older than `fresh_s` are read again in a thread.

    A value that was never read is `default`. One read at a time is under way for a key.
    """

    def __init__(
        self,
        read: Callable[[KeyT], ValueT],
        default: ValueT,
        *,
        wait_s: float = READ_WAIT_S,
        fresh_s: float = FRESH_S,
        threads: ReadThreads = SHARED_READS,
    ) -> None:
        self._read = read
        self._default = default
        self._wait_s = wait_s
        self._fresh_s = fresh_s
        self._threads = threads
        self._entries: dict[KeyT, _CachedRead[ValueT]] = {}

    def get(self, key: KeyT) -> ValueT:
        """Return the last known value at once; a stale one is read again meanwhile."""
        entry = self._entry(key)
        if self._is_stale(entry):
            self._start(key, entry)
        return entry.value

    async def refresh(self, key: KeyT) -> ValueT:
        """Return a fresh value, or the last known one if reading takes longer than `wait_s`."""
        entry = self._entry(key)
        if self._is_stale(entry):
            self._start(key, entry)
            # Counted from its start: only the first caller waits for a read that hangs.
            left = entry.pending_since + self._wait_s - time.monotonic()
            if entry.pending is not None and left > 0:
                await asyncio.wait([entry.pending], timeout=left)
        return entry.value

    def _entry(self, key: KeyT) -> _CachedRead[ValueT]:
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MAX_CACHED_KEYS:
                self._drop_oldest()
            entry = self._entries[key] = _CachedRead(self._default)
        return entry

    def _drop_oldest(self) -> None:
        """Drop the key that was first asked for; one that is being read stays, to be read once."""
        for key, entry in self._entries.items():
            if entry.pending is None:
                del self._entries[key]
                return

    def _is_stale(self, entry: _CachedRead[ValueT]) -> bool:
        return entry.read_at is None or time.monotonic() - entry.read_at > self._fresh_s

    def _start(self, key: KeyT, entry: _CachedRead[ValueT]) -> None:
        if entry.pending is not None:
            return
        try:
            entry.pending = self._threads.start(lambda: self._read(key))
        except TimeoutError as error:
            LOGGER.warning("cannot read the settings now, using the last ones: %s", error)
            entry.read_at = time.monotonic()
            return
        entry.pending_since = time.monotonic()
        entry.pending.add_done_callback(lambda done: self._finish(entry, done))

    def _finish(self, entry: _CachedRead[ValueT], done: "asyncio.Future[ValueT]") -> None:
        entry.pending, entry.read_at = None, time.monotonic()
        if done.cancelled():
            return
        if (error := done.exception()) is not None:
            LOGGER.warning("a read failed, its last value is used: %r", error)
        else:
            entry.value = done.result()
