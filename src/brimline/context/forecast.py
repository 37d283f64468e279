"""Forecast how many calls are left until the limit, by the growth of the cycle so far.

The pace is the mean growth of the last calls, without the largest and the smallest tenth. The
largest are single reads of large files. A median, which leaves out all large ones, is worse: rare
and large steps are what fills a context. Measured at 1,767 moments of 15 recorded cycles that ended
in an automatic compaction: the median error in calls, its factor, and its direction:

| pace of the last calls       | calls off | factor | side      |
|------------------------------|-----------|--------|-----------|
| median of 10                 | 35        | 1.66   | 19 late   |
| median of 50                 | 33        | 1.61   | 18 late   |
| mean of 20                   | 19        | 1.53   | 4 early   |
| mean of all                  | 23        | 1.91   | 21 early  |
| mean of 20 without tenths    | 22        | 1.53   | 3 late    |
| mean of 100 without tenths   | 19        | 1.47   | 1 early   |

With at most 10 calls left the error is 2, with 11 to 30 it is 8.

There is no forecast if it would mislead. At the same moments: a forecast of more than 200 calls is
off by a factor of 1.7 to 3.3; one by a pace of which a single growth is more than half, by 2.7 to
3.5; one right after such a growth, by 4 to 5. Of 1,767 forecasts 1,665 remain.

The range is meant to hold the true number 8 times out of 10. The error of a forecast depends on
how many growths it is made from much more than on how they differ: a range by their variance is
wider at the same coverage. `scripts/forecast.py` measures the coverage; the figures are in
docs/concepts/forecast.md.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from brimline.context.tracker import Reading, Thread

MAX_PACE_CALLS = 100  # more would cost more and change nothing
PACE_CALLS = MAX_PACE_CALLS + 1  # the calls between which so many growths lie
MIN_GROWTHS = 3  # with fewer there is no forecast
TRIM_DIVISOR = 10  # a tenth of the growths is left out at either end,
MIN_TRIMMED_GROWTHS = 5  # if there are at least this many
MAX_FORECAST_CALLS = 200  # a forecast of more is too uncertain
# The range ends at 1 + EARLY / sqrt(growths) times fewer and 1 + LATE / sqrt(growths) times more
# calls, and one call beyond. Fitted to recorded sessions; contexts fill fast at their beginning,
# so that most errors are on the late side.
EARLY, LATE = 5, 7
MAX_SHOWN_FACTOR = 4  # people see no range whose ends differ by more


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


def calls_left(sents: Sequence[int], compared: int, limit: int) -> CallsLeft | None:
    """How many more calls a thread can make until it reaches the limit; None if it is uncertain.

    `sents` is what the calls of the current cycle sent, in order; `compared` is what the client
    compares with the limit. 0 means that the next call finds the limit reached.
    """
    pace = growth_pace(sents)
    if pace is None:
        return None
    tokens, calls = pace
    # Whole numbers, rounded up: a float would make one call more of an exact fit.
    left = max(0, -((compared - limit) * calls // tokens))
    return _with_range(left, len(_growths(sents))) if left <= MAX_FORECAST_CALLS else None


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
    sents = thread.recent_sents(PACE_CALLS)
    if len(sents) <= MIN_GROWTHS:
        return "too few calls"
    if len(_growths(sents)) < MIN_GROWTHS:
        return "the context hardly grows"
    return "uneven growth" if growth_pace(sents) is None else "too far ahead"


def _with_range(left: int, growths: int) -> CallsLeft:
    fewer, more = (1 + factor / math.sqrt(growths) for factor in (EARLY, LATE))
    return CallsLeft(left, max(0, math.floor(left / fewer) - 1), math.ceil(left * more) + 1)


def growth_pace(sents: Sequence[int]) -> tuple[int, int] | None:
    """The tokens and the number of calls by which the context grew; None if they show no pace.

    Those are too few calls, a single jump that is most of the growth, and one by the last call. A
    call that sent less than the one before does not count: the client left something out.
    """
    steps = _growths(sents)
    if len(steps) < MIN_GROWTHS or 2 * (sents[-1] - sents[-2]) > sum(steps):
        return None
    off = max(1, len(steps) // TRIM_DIVISOR) if len(steps) >= MIN_TRIMMED_GROWTHS else 0
    middle = steps[off : len(steps) - off]
    return None if 2 * middle[-1] > sum(middle) else (sum(middle), len(middle))


def _growths(sents: Sequence[int]) -> list[int]:
    """By how much each of the last calls grew, the smallest first."""
    return sorted(b - a for a, b in pairwise(sents[-PACE_CALLS:]) if b > a)
