"""Share the event loop: long work runs in slices, so that hooks do not wait for all of it."""

import asyncio
from time import perf_counter

SLICE_S = 0.001
BACKGROUND_SLICE_S = 0.0003
# Background work pauses this many times as long as it ran: a hook returns to the loop about eight
# times before it is answered, and could wait for a slice each time.
BACKGROUND_PAUSE_SHARE = 3.0


class TimeSlice:
    """The time that one task has used without letting others run."""

    def __init__(self, background: bool = False) -> None:
        self._slice_s = BACKGROUND_SLICE_S if background else SLICE_S
        self._pause = BACKGROUND_PAUSE_SHARE if background else 0.0
        self._started = perf_counter()

    async def pause_if_over(self) -> None:
        """Let others run if the slice is used up, and begin a new one."""
        used = perf_counter() - self._started
        if used > self._slice_s:
            await asyncio.sleep(used * self._pause)
            self._started = perf_counter()


class Turns:
    """Lets many ready tasks continue one by one, one in each round of the loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)
