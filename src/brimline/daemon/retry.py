"""Retries with growing pauses, and a log that does not repeat itself."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

from brimline.errors import BrimlineError
from brimline.files.bounded_dict import BoundedDict
from brimline.store.failures import StoreFailed

LOGGER = logging.getLogger("brimline.server")

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0  # each pause is twice the last
REPEAT_AFTER_S = 3_600.0  # for the same warning
MAX_REMEMBERED = 1_000

Work = Callable[[], Awaitable[None]]


class RateLimitedLog:
    """Logs each warning at most once an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at = BoundedDict[tuple[str, str], float](MAX_REMEMBERED)

    def warn(self, what: str, error: Exception, is_expected: bool = False) -> None:
        """Log a failure, with a traceback if it is unexpected."""
        now, key = self._clock(), (what, str(error))
        if now - self._logged_at.get(key, -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            return
        self._logged_at[key] = now
        is_unexpected = not (is_expected or isinstance(error, BrimlineError | OSError))
        LOGGER.warning("%s: %s", what, error, exc_info=error if is_unexpected else None)


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
