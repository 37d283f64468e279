"""Jobs that are carried out together: what waits while a batch is under way is in the next one."""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")
_Batch: TypeAlias = list[tuple[JobT, asyncio.Future[ResultT]]]
_Process: TypeAlias = Callable[[Sequence[JobT]], Awaitable[Sequence[ResultT | Exception]]]


def _set_results(batch: _Batch[JobT, ResultT], results: Sequence[ResultT | Exception]) -> None:
    """Set the result or the error of each job, unless its caller was cancelled."""
    for (_, future), result in zip(batch, results, strict=True):
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


class WorkerThread(Generic[JobT, ResultT]):
    """Runs in a thread up to `max_batch` jobs at a time, in order.

    `run` returns a result or an exception for each job; `end` is called last, in the thread too.
    One batch is under way at a time. What is submitted meanwhile is the next one: to wake the
    thread, and then the event loop, costs more than most jobs.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Sequence[JobT]], Sequence[ResultT | Exception]],
        end: Callable[[], None],
        max_batch: int,
    ) -> None:
        self._run, self._end, self._max_batch = run, end, max_batch
        self._waiting: _Batch[JobT, ResultT] = []
        self._batches: queue.SimpleQueue[_Batch[JobT, ResultT] | None] = queue.SimpleQueue()
        self._busy = self._closing = False
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def submit(self, job: JobT) -> ResultT:
        """Return the result of a job; it is carried out even if the caller is cancelled."""
        future: asyncio.Future[ResultT] = self._loop.create_future()
        self._waiting.append((job, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._start_batch)
        return await future

    async def close(self) -> None:
        """Finish the jobs that wait, then end; nothing may be submitted any more."""
        self._closing = True
        if not self._busy:
            self._batches.put(None)
        await self._ended
        self._thread.join()

    def _start_batch(self) -> None:
        batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
        self._busy = bool(batch)
        if batch:
            self._batches.put(batch)
        elif self._closing:
            self._batches.put(None)

    def _work(self) -> None:
        while batch := self._batches.get():
            self._call_in_loop(self._finish, batch, self._results([job for job, _ in batch]))
        self._end()
        self._call_in_loop(self._ended.set_result, None)

    def _results(self, jobs: Sequence[JobT]) -> Sequence[ResultT | Exception]:
        try:
            return self._run(jobs)
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            return [error] * len(jobs)

    def _call_in_loop(self, call: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    def _finish(self, batch: _Batch[JobT, ResultT], results: Sequence[ResultT | Exception]) -> None:
        _set_results(batch, results)
        self._start_batch()


class SharedBatches(Generic[JobT, ResultT]):
    """Processes items in the event loop in their order, one batch at a time.

    `process` returns the result or the error of each item; it does not raise.
    """

    def __init__(self, process: "_Process[JobT, ResultT]", max_items: int) -> None:
        self._process, self._max_items = process, max_items
        self._waiting: _Batch[JobT, ResultT] = []
        self._processing: asyncio.Task[None] | None = None

    async def submit(self, item: JobT) -> ResultT:
        """Return the result of an item, which is processed even if the caller is cancelled."""
        future: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._processing is None or self._processing.done():
            self._processing = asyncio.create_task(self._process_waiting())
        return await future

    async def finish(self) -> None:
        """Wait until nothing is under way."""
        if self._processing is not None:
            await self._processing

    async def _process_waiting(self) -> None:
        while self._waiting:
            batch = self._waiting[: self._max_items]
            del self._waiting[: self._max_items]
            _set_results(batch, await self._process([item for item, _ in batch]))
