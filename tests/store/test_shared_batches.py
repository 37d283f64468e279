"""Batches that callers share: what waits while one is under way is in the next."""

import asyncio
from collections.abc import Sequence

import pytest

from brimline.store.batches import SharedBatches


class Doubler:
    """Doubles numbers and records its batches; a negative number is an error."""

    def __init__(self, max_items: int = 10) -> None:
        self.batches: list[list[int]] = []
        self.shared = SharedBatches(self._double, max_items)

    async def _double(self, numbers: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(numbers))
        await asyncio.sleep(0)
        return [2 * each if each >= 0 else ValueError(each) for each in numbers]


async def test_items_that_wait_share_the_next_batch() -> None:
    doubler = Doubler()
    first = asyncio.create_task(doubler.shared.submit(1))
    while not doubler.batches:
        await asyncio.sleep(0)
    others = await asyncio.gather(*(doubler.shared.submit(each) for each in (2, 3, 4)))
    assert (await first, others) == (2, [4, 6, 8])
    assert doubler.batches == [[1], [2, 3, 4]]


async def test_batch_has_at_most_so_many_items() -> None:
    doubler = Doubler(max_items=2)
    await asyncio.gather(*(doubler.shared.submit(each) for each in range(5)))
    assert doubler.batches == [[0, 1], [2, 3], [4]]


async def test_error_of_an_item_is_raised_to_its_caller_alone() -> None:
    shared = Doubler().shared
    good, bad = shared.submit(1), shared.submit(-1)
    results = await asyncio.gather(good, bad, return_exceptions=True)
    assert results[0] == 2
    assert isinstance(results[1], ValueError)


async def test_item_of_a_cancelled_caller_is_processed() -> None:
    doubler = Doubler()
    caller = asyncio.create_task(doubler.shared.submit(1))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await doubler.shared.submit(2) == 4
    await doubler.shared.finish()
    assert [each for batch in doubler.batches for each in batch] == [1, 2]
