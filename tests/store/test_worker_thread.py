"""The worker thread of the store."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from brimline.store.batches import WorkerThread

MAX_WAIT_S = 60.0


def test_jobs_run_in_order_in_one_other_thread() -> None:
    threads: list[str] = []

    def run(jobs: Sequence[int]) -> list[int]:
        threads.append(threading.current_thread().name)
        return [job * 2 for job in jobs]

    async def use() -> list[int]:
        worker = WorkerThread[int, int](
            "mine", run, lambda: threads.append(threading.current_thread().name), max_batch=2
        )
        results = await asyncio.gather(*map(worker.submit, range(5)))
        await worker.close()
        return results

    assert asyncio.run(use()) == [0, 2, 4, 6, 8]
    assert set(threads) == {"mine"}


def test_exception_is_raised_for_its_batch_and_the_next_batch_runs() -> None:
    def run(jobs: Sequence[int]) -> list[float]:
        return [1 / job for job in jobs]

    async def use() -> float:
        worker = WorkerThread[int, float]("mine", run, lambda: None, max_batch=1)
        with pytest.raises(ZeroDivisionError):
            await worker.submit(0)
        result = await worker.submit(4)
        await worker.close()
        return result

    assert asyncio.run(use()) == 0.25


def test_jobs_submitted_during_a_batch_are_the_next_one() -> None:
    batches: list[list[int]] = []
    begun, go = threading.Event(), threading.Event()

    def run(jobs: Sequence[int]) -> list[int]:
        begun.set()
        assert go.wait(MAX_WAIT_S)
        batches.append(list(jobs))
        return list(jobs)

    async def use() -> None:
        worker = WorkerThread[int, int]("mine", run, lambda: None, max_batch=3)
        first = asyncio.ensure_future(worker.submit(0))
        assert await asyncio.to_thread(begun.wait, MAX_WAIT_S)
        later_jobs = [asyncio.ensure_future(worker.submit(job)) for job in range(1, 6)]
        await asyncio.sleep(0)
        go.set()
        await worker.close()
        await asyncio.gather(first, *later_jobs)

    asyncio.run(use())
    assert batches == [[0], [1, 2, 3], [4, 5]]
