"""What goes wrong beside the requests: it is said once, and gone on with after a pause."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator

from brimline.bounded_dict import BoundedDict
from brimline.errors import BrimlineError
from brimline.store.failures import StoreFailed

LOGGER = logging.getLogger("brimline.server")

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0
"""Seconds: the first pause and the longest; each is twice the one before."""

REPEAT_AFTER_S = 3_600.0
"""After so many seconds the same trouble is said again."""

MAX_REMEMBERED = 1_000
"""So many troubles, at most, are remembered."""

Work = Callable[[], Awaitable[None]]


class RateLimitedLog:
    """Says what goes wrong, the same trouble once an hour: it may come every second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at = BoundedDict[tuple[str, str], float](MAX_REMEMBERED)

    def warn(self, what: str, error: Exception, foreseen: bool = False) -> None:
        """Say what does not go on, and why; with the place in our code where it is unforeseen."""
        now, key = self._clock(), (what, str(error))
        if now - self._logged_at.get(key, -REPEAT_AFTER_S) < REPEAT_AFTER_S:
            return
        self._logged_at[key] = now
        ours = not (foreseen or isinstance(error, BrimlineError | OSError))
        LOGGER.warning("%s: %s", what, error, exc_info=error if ours else None)


def is_transient(error: Exception) -> bool:
    """Whether the same may go well later: the store says what to do about a disk or a lock.

    Of a value that it does not take it says nothing: that will never go well.
    """
    return isinstance(error, StoreFailed) and error.hint is not None


def growing_pauses() -> Iterator[float]:
    """Growing pauses, without an end."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, MAX_PAUSE_S)


async def run_forever(what: str, work: Work) -> None:
    """Do work that has no end; where it fails, begin anew after a pause."""
    log, waits = RateLimitedLog(), growing_pauses()
    while True:
        begun = time.monotonic()
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - it is said, and nothing else ends by it
            log.warn(f"{what} broke off, and goes on later", error)
        if time.monotonic() - begun > MAX_PAUSE_S:
            waits = growing_pauses()
        await asyncio.sleep(next(waits))


async def retry_until_stored(what: str, work: Work, log: RateLimitedLog) -> None:
    """Have the store keep something that is to be kept, as soon as it can."""
    for pause in growing_pauses():
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - nobody else waits for it
            log.warn(what, error)
            if not is_transient(error):
                return
            await asyncio.sleep(pause)
        else:
            return
