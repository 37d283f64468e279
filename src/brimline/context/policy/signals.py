"""Which signals a reading causes, when two sources disagree, and when hooks are silent. Pure."""

from collections.abc import Sequence, Set
from typing import Literal, TypeAlias

import msgspec

from brimline.context.policy.levels import (
    LevelMeasure,
    calls_figure,
    figure_of,
    highest_reached,
)
from brimline.context.tracker import Compared, Reading
from brimline.context.usage import percent, percent_raw

SignalKind: TypeAlias = Literal[
    "level", "compacting", "compacted", "cleared", "thrash", "no data", "no window", "disagree"
]

MAX_COMPACTIONS = 3  # more than this in THRASH_WINDOW_S is thrashing

THRASH_WINDOW_S = 600.0

# The share of what is pending that counts for a level: of 679 levels that fired early by it, the
# next call reached 658 (docs/concepts/measure.md).
SAFE_PENDING_SHARE = 0.8


class Signal(msgspec.Struct, frozen=True):
    """An event of a thread to report, in the cycle of its reading."""

    kind: SignalKind
    cycle: int
    level: float = 0.0


def decide(
    before: Reading | None,
    after: Reading,
    levels: Sequence[float],
    fired: Set[float],
    of: LevelMeasure = "window",
    cleared: bool = False,
    early: bool = True,
    calls_levels: Sequence[float] = (),
    calls_left: int | None = None,
) -> list[Signal]:
    """Return the signals when a reading becomes another; `fired` are the levels of its cycle.

    A cycle ends by a compaction, unless it was `cleared`. Cycles before the first reading, with
    `before` None, cause no signals. A level fires `early` if the next call will reach it. If one of
    calls left fires together with another, the later signal is the one whose message counts.
    """
    signals: list[Signal] = []
    if after.state == "compacting" and (before is None or before.state != "compacting"):
        signals.append(Signal("compacting", after.cycle))
    if before is not None and after.cycle > before.cycle:
        signals.append(Signal("cleared" if cleared else "compacted", after.cycle - 1))
    expected = expect_next_call(after) if early else after
    if after.state == "compacting":
        return signals
    reached = (
        highest_reached(calls_levels, calls_figure(calls_left), fired),
        highest_reached(levels, figure_of(expected, of), fired),
    )
    last = (*levels[-1:], *calls_levels[-1:])
    new = sorted((level for level in reached if level is not None), key=lambda level: level in last)
    return [*signals, *(Signal("level", after.cycle, level) for level in new)]


def expect_next_call(reading: Reading, share: float = SAFE_PENDING_SHARE) -> Reading:
    """Return the reading as the next call will make it, with a share of what is pending."""
    if reading.held is None or not reading.pending:
        return reading
    tokens = reading.held + round(share * reading.pending)
    earlier = reading.compared.parts.get("earlier reasoning", 0) if reading.compared else 0
    parts = {"held": tokens, "earlier reasoning": earlier} if earlier else {"held": tokens}
    window = reading.window.tokens if reading.window else None
    limit = reading.limit.tokens if reading.limit else None
    return msgspec.structs.replace(
        reading,
        sent=tokens,
        held=tokens,
        percent=percent(tokens, window),
        percent_raw=percent_raw(tokens, window),
        percent_of_limit=percent_raw(tokens + earlier, limit),
        pending=0,
        compared=Compared(tokens + earlier, parts),
    )


def is_thrashing(compactions: Sequence[float], now: float) -> bool:
    """Return whether there were too many compactions in the last ten minutes, by their times."""
    return sum(1 for at in compactions if now - THRASH_WINDOW_S <= at <= now) > MAX_COMPACTIONS


MAX_DIFFERENCE = 0.02  # two figures for the same call that differ by a larger share disagree
DISAGREE_AFTER_S = 60.0  # a disagreement is a signal after this time...
DISAGREE_TIMES = 3  # ...and this many observations: one source is always a little ahead
MAX_CALLS_WITHOUT_HOOK = 5  # after this many calls without a hook, hooks count as broken


class Comparison(msgspec.Struct, frozen=True):
    """Since when two sources differ, and how often that was seen."""

    since: float | None = None
    seen: int = 0

    @property
    def disagree(self) -> bool:
        """Whether they differed often enough; `is_lasting` says whether for long enough."""
        return self.seen >= DISAGREE_TIMES

    def is_lasting(self, at: float) -> bool:
        """Return whether they disagree, and have for a while."""
        return self.disagree and self.since is not None and at - self.since >= DISAGREE_AFTER_S


AGREED = Comparison()


def compare(before: Comparison, one: int | None, other: int | None, at: float) -> Comparison:
    """Return the comparison after both reported what was sent; None is ignored."""
    if one is None or other is None:
        return before
    if abs(one - other) <= MAX_DIFFERENCE * max(one, other):
        return AGREED
    since = at if before.since is None else before.since
    return Comparison(since, before.seen + 1)


def are_hooks_silent(calls: int, first_call_at: float | None, installed_at: float | None) -> bool:
    """Return whether installed hooks must be broken: too many calls without a hook.

    A session that began before they were installed does not have them.
    """
    if installed_at is None or first_call_at is None or first_call_at < installed_at:
        return False
    return calls >= MAX_CALLS_WITHOUT_HOOK
