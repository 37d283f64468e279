"""A log that does not repeat itself: the same warning at most once an hour."""

import logging
import time
from collections.abc import Callable

from brimline.errors import BrimlineError
from brimline.files.bounded_dict import BoundedDict

LOGGER = logging.getLogger("brimline.server")

REPEAT_AFTER_S = 3_600.0  # for the same warning
MAX_REMEMBERED = 1_000


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
