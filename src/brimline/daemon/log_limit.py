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
    """Logs each warning once in a while, by default in an hour."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        repeat_after_s: float = REPEAT_AFTER_S,
        by_reason: bool = True,
    ) -> None:
        """Without `by_reason`, all failures of the same work are one warning."""
        self._clock, self._repeat_after_s, self._by_reason = clock, repeat_after_s, by_reason
        self._logged_at = BoundedDict[tuple[str, str], float](MAX_REMEMBERED)

    def warn(self, what: str, error: Exception, is_expected: bool = False) -> None:
        """Log a failure, with a traceback if it is unexpected."""
        now, key = self._clock(), (what, str(error) if self._by_reason else "")
        if now - self._logged_at.get(key, -self._repeat_after_s) < self._repeat_after_s:
            return
        self._logged_at[key] = now
        is_unexpected = not (is_expected or isinstance(error, BrimlineError | OSError))
        text = " ".join(str(error).splitlines())
        LOGGER.warning("%s: %s", what, text, exc_info=error if is_unexpected else None)
