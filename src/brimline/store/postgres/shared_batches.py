"""Work that callers share: what waits while a batch is under way is in the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from brimline.store.batch_results import set_results

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Process: TypeAlias = Callable[[Sequence[ItemT]], Awaitable[Sequence[ResultT | Exception]]]


class SharedBatches(Generic[ItemT, ResultT]):
    """Processes items in their order, one batch at a time.

    `process` returns the result or the error of each item; it does not raise.
    """

    def __init__(self, process: "Process[ItemT, ResultT]", max_items: int) -> None:
        self._process, self._max_items = process, max_items
        self._waiting: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._processing: asyncio.Task[None] | None = None

    async def submit(self, item: ItemT) -> ResultT:
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
            set_results(batch, await self._process([item for item, _ in batch]))
