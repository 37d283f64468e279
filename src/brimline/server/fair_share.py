"""Sharing the event loop: long work in slices, so that a hook never waits behind all of it."""

import asyncio
from time import perf_counter

SLICE_S = 0.001


class TimeSlice:
    """The time that one task has used without letting others run."""

    def __init__(self) -> None:
        self._started = perf_counter()

    async def pause_if_over(self) -> None:
        """Let others run if the slice is used up, and begin a new one."""
        if perf_counter() - self._started > SLICE_S:
            await asyncio.sleep(0)
            self._started = perf_counter()


class Turns:
    """Lets many tasks that are all ready go on one by one, one in each round of the loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        """Wait for this task's turn."""
        async with self._lock:
            await asyncio.sleep(0)
