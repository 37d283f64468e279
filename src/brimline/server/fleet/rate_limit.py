"""How many requests and bytes a token may send."""

import math
import time
from collections.abc import Callable

from starlette.types import Message, Receive

from brimline.api.responses import RequestRefused
from brimline.files.bounded_dict import BoundedDict
from brimline.settings import FleetSettings

MINUTE_S = 60.0
MAX_KEYS = 10_000


class Allowance:
    """A token bucket for each key, which holds what it gets in a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._left = BoundedDict[str, tuple[float, float]](MAX_KEYS)  # the time, and what was left

    def spend(self, key: str, amount: float) -> None:
        """Take an amount, even if less is left: then the next request has to wait."""
        self._left[key] = self._clock(), self._amount_left(key) - amount

    def wait_s(self, key: str) -> float:
        """Return how long a key has to wait until 1 is left; 0 if that much is left now."""
        left = self._amount_left(key)
        return 0.0 if left >= 1 else (1 - left) * MINUTE_S / self._per_minute

    def _amount_left(self, key: str) -> float:
        at, left = self._left.get(key, (self._clock(), self._per_minute))
        refilled = (self._clock() - at) * self._per_minute / MINUTE_S
        return min(left + refilled, self._per_minute)


class RateLimit:
    """The limits of the settings, for each token or user."""

    def __init__(
        self, settings: FleetSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._requests = Allowance(settings.requests_per_minute, clock)
        self._bytes = Allowance(settings.bytes_per_minute, clock)

    def count_request(self, key: str) -> None:
        """Count a request; raises RequestRefused if its sender has to wait."""
        if wait_s := max(self._requests.wait_s(key), self._bytes.wait_s(key)):
            raise too_many("too many requests or bytes in a minute", wait_s)
        self._requests.spend(key, 1)

    def count_body(self, key: str, receive: Receive) -> Receive:
        """Return `receive` with the bytes of the body counted."""

        async def count() -> Message:
            message = await receive()
            self._bytes.spend(key, len(message.get("body", b"")))
            return message

        return count


def too_many(problem: str, wait_s: float) -> RequestRefused:
    """Return the error for a sender who has to wait."""
    after_s = math.ceil(wait_s)
    return RequestRefused(429, problem, f"Try again in {after_s} s.", after_s)
