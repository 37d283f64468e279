"""Forecast how many calls are left until the limit, by the growth of the cycle so far.

    calls = CALLS x (room / pace) ** ROOM_EXPONENT / growths ** GROWTHS_EXPONENT

`room` are the tokens until the limit, `pace` is the square of the mean square root of the growths,
so that a read of a large file counts for more than an ordinary step, but for less than in a mean.
The exponents correct what a division leaves out: a context grows fast in its first calls, and the
farther the limit is, the more large reads come until then.

`scripts/forecast.py` fits the five numbers to recorded sessions, and measures each project by
those that were fitted to the others. The pace of earlier cycles, of the session or of its project,
does not improve them; the figures are in docs/concepts/forecast.md.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from brimline.context.tracker import Reading, Thread

MAX_GROWTHS = 100  # more would cost more and change nothing
PACE_CALLS = MAX_GROWTHS + 1  # the calls between which so many growths lie
MIN_GROWTHS = 6  # by fewer, a forecast is off by a factor of two
MAX_FORECAST_CALLS = 200  # a forecast of more is off by a factor of two, too

CALLS, ROOM_EXPONENT, GROWTHS_EXPONENT = 8.6, 0.763, 0.305
# From so much of the forecast to so much: 8 times out of 10 the true number is between them.
RANGE_FROM, RANGE_TO = 0.46, 1.8
MAX_SHOWN_FACTOR = 4  # people see no range whose ends differ by more

MAX_GAP_S = 300.0  # between two calls: a longer one is a pause of the user
MIN_GAPS = 3  # by fewer, there are no minutes left


class CallsLeft(NamedTuple):
    """A forecast of calls; the true number is from `low` to `high` 8 times out of 10."""

    calls: int
    low: int
    high: int

    @property
    def range(self) -> list[int]:
        return [self.low, self.high]

    def __str__(self) -> str:
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        is_narrow = self.low > 0 and self.high <= MAX_SHOWN_FACTOR * self.low
        return f"{calls} left ({self.low}-{self.high})" if is_narrow else f"{calls} left"


AT_LIMIT = CallsLeft(0, 0, 1)  # a client may begin one more call before it compacts


class Pace(NamedTuple):
    """By how many tokens the context grows with a call; of how many growths that is made."""

    tokens: float
    growths: int


def calls_left(sents: Sequence[int], compared: int, limit: int) -> CallsLeft | None:
    """How many more calls a thread can make until it reaches the limit; None if it is uncertain.

    `sents` is what the calls of the current cycle sent, in order; `compared` is what the client
    compares with the limit. 0 means that the next call finds the limit reached.
    """
    if compared >= limit:
        return AT_LIMIT
    pace = growth_pace(sents)
    if pace is None:
        return None
    room = (limit - compared) / pace.tokens
    calls = CALLS * room**ROOM_EXPONENT / pace.growths**GROWTHS_EXPONENT
    low, high = round(RANGE_FROM * calls), math.ceil(RANGE_TO * calls)
    left = CallsLeft(max(1, round(calls)), max(1, low), high)
    return left if left.calls <= MAX_FORECAST_CALLS else None


def growth_pace(sents: Sequence[int]) -> Pace | None:
    """Return the pace of the last calls; None if they are too few, or the context did not grow.

    A call that sent less than the one before counts as no growth: the client left something out.
    """
    growths = [max(0, after - before) for before, after in pairwise(sents[-PACE_CALLS:])]
    if len(growths) < MIN_GROWTHS or not any(growths):
        return None
    return Pace((sum(map(math.sqrt, growths)) / len(growths)) ** 2, len(growths))


def forecast(thread: Thread, reading: Reading) -> CallsLeft | None:
    """Return how many calls a thread has left, by the pace of its cycle; None if uncertain.

    A limit beyond the model's window is not reached: the model is full before that.
    """
    if reading.compared is None or reading.limit is None:
        return None
    end = reading.limit.tokens
    if reading.window is not None:
        end = min(end, reading.window.tokens)
    return calls_left(thread.recent_sents(PACE_CALLS), reading.compared.tokens, end)


def minutes_left(thread: Thread, left: CallsLeft | None) -> float | None:
    """Return how many minutes of work the calls left take, by the mean gap between the last ones.

    Pauses of the user do not count. None if there is no forecast, or the calls have no times.
    """
    times = [call.at for call in thread.recent_calls(PACE_CALLS) if call.at is not None]
    gaps = [after - before for before, after in pairwise(times)]
    work = [gap for gap in gaps if 0 < gap <= MAX_GAP_S]
    if left is None or len(work) < MIN_GAPS:
        return None
    return round(left.calls * sum(work) / len(work) / 60, 1)


def describe_calls_left(thread: Thread, reading: Reading) -> str:
    """Return the forecast of a thread in words, or why there is none."""
    left = forecast(thread, reading)
    if left is None:
        return f"no forecast: {_why_none(thread, reading)}"
    if not left.calls:
        return "at its limit"
    return f"about {left}{' until the window is full' if reading.left_of_window else ''}"


def _why_none(thread: Thread, reading: Reading) -> str:
    if reading.compared is None:
        if not thread.cycle:
            return "awaiting the first reply"
        ended_by = "clear" if thread.cycle_start in thread.clears else "compaction"
        return f"awaiting a reply after a {ended_by}"
    if reading.limit is None:
        return "the limit is unknown"
    if thread.call_count - thread.cycle_start <= MIN_GROWTHS:
        return "too few calls"
    is_growing = growth_pace(thread.recent_sents(PACE_CALLS)) is not None
    return "too far ahead" if is_growing else "the context does not grow"
