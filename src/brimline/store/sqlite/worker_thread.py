"""A worker thread of the store: jobs that wait are carried out together, results go to the loop."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

from brimline.store.batch_results import set_results

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")
_Batch: TypeAlias = list[tuple[JobT, asyncio.Future[ResultT]]]


class WorkerThread(Generic[JobT, ResultT]):
    """Runs up to `max_batch` jobs at a time, in order.

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
        set_results(batch, results)
        self._start_batch()
