"""Work in the background, and retries with growing pauses."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

from brimline.daemon.log_limit import RateLimitedLog
from brimline.errors import StoreFailed

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0  # each pause is twice the last

Work = Callable[[], Awaitable[None]]


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed: the store gives a hint about a full disk or a lock.

    It gives none about a value that it refuses.
    """
    return isinstance(error, StoreFailed) and error.hint is not None


def growing_pauses() -> Iterator[float]:
    """Yield pauses in seconds that double up to MAX_PAUSE_S."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, MAX_PAUSE_S)


async def run_forever(what: str, work: Work) -> None:
    """Run endless work; restart it after a pause if it fails or ends."""
    log, waits = RateLimitedLog(), growing_pauses()
    while True:
        begun = time.monotonic()
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - logged; other work goes on
            log.warn(f"{what} failed, will retry", error)
        if time.monotonic() - begun > MAX_PAUSE_S:
            waits = growing_pauses()
        await asyncio.sleep(next(waits))


async def repeat(interval_s: float, work: Work) -> None:
    """Do work again and again, with a pause after each time."""
    while True:
        await work()
        await asyncio.sleep(interval_s)


@asynccontextmanager
async def running(works: Mapping[str, Work]) -> AsyncGenerator[None, None]:
    """Run endless works, by their names, in the background of the block."""
    tasks = [asyncio.create_task(run_forever(name, work)) for name, work in works.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def retry_until_stored(what: str, work: Work, log: RateLimitedLog) -> None:
    """Retry a write until the store accepts it, or refuses it for good."""
    for pause in growing_pauses():
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - runs in the background
            log.warn(what, error)
            if not is_transient(error):
                return
            await asyncio.sleep(pause)
        else:
            return
