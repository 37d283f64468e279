"""Historic formulas for the occupancy, for comparison with the reading.

`latest` is ours. Each of the others was used by a tool; its docstring says what is wrong with it.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import add

import msgspec

from brimline.context.tracker import Thread
from brimline.context.usage import Usage


class Components(msgspec.Struct, frozen=True):
    """The raw figures of the formulas that sum up, each call counted once."""

    max_cache_read: int
    sum_input: int
    sum_output: int
    sum_cache_creation: int
    unique_calls: int


class Formulas(msgspec.Struct, frozen=True):
    """Every formula's value for one thread; None without a call."""

    latest: int | None
    max_cache_read_plus_sums: int | None
    sum_cache_creation: int | None
    last_input: int | None
    result_sums: int | None
    effective: int | None
    components: Components

    @property
    def by_name(self) -> dict[str, int | None]:
        return {name: getattr(self, name) for name in FORMULAS}


def sum_components(calls: Sequence[Usage]) -> Components:
    return Components(
        max_cache_read=max((call.cache_read for call in calls), default=0),
        sum_input=sum(call.input for call in calls),
        sum_output=sum(call.output for call in calls),
        sum_cache_creation=sum(call.cache_write for call in calls),
        unique_calls=len(calls),
    )


def latest(calls: Sequence[Usage]) -> int:
    return calls[-1].sent


def max_cache_read_plus_sums(calls: Sequence[Usage]) -> int:
    """max(cache_read) + sum(input) + sum(output): starts low, never falls after a compaction."""
    raw = sum_components(calls)
    return raw.max_cache_read + raw.sum_input + raw.sum_output


def sum_cache_creation(calls: Sequence[Usage]) -> int:
    """sum(cache_creation) + sum(input) + sum(output): each cache miss adds the prompt again."""
    raw = sum_components(calls)
    return raw.sum_cache_creation + raw.sum_input + raw.sum_output


def last_input(calls: Sequence[Usage]) -> int:
    """The last call's uncached input alone: a few tokens if the cache works."""
    return calls[-1].input


def result_sums(calls: Sequence[Usage]) -> int:
    """What a result message sums up: every prompt of the session added to the next."""
    return sum(call.sent for call in calls)


def effective(calls: Sequence[Usage]) -> int:
    """The last prompt as it was billed, not what it holds."""
    return calls[-1].effective


FORMULAS: dict[str, Callable[[Sequence[Usage]], int]] = {
    formula.__name__: formula
    for formula in (
        latest,
        max_cache_read_plus_sums,
        sum_cache_creation,
        last_input,
        result_sums,
        effective,
    )
}


def formula_series(calls: Sequence[Usage]) -> dict[str, list[int]]:
    """Every formula's value after each of these calls."""
    inputs = list(accumulate(call.input for call in calls))
    outputs = list(accumulate(call.output for call in calls))
    most_read = accumulate((call.cache_read for call in calls), max)
    written = accumulate(call.cache_write for call in calls)
    spent = list(map(add, inputs, outputs))
    return {
        "latest": [call.sent for call in calls],
        "max_cache_read_plus_sums": list(map(add, most_read, spent)),
        "sum_cache_creation": list(map(add, written, spent)),
        "last_input": [call.input for call in calls],
        "result_sums": list(accumulate(call.sent for call in calls)),
        "effective": [call.effective for call in calls],
    }


def percent_error(value: int | None, truth: int | None) -> float | None:
    """The error of a formula in percent of the truth; None if either is unknown."""
    if value is None or not truth:
        return None
    return round(100 * (value - truth) / truth, 1)


SUMS = ("max_cache_read_plus_sums", "sum_cache_creation", "result_sums")  # of all calls


def audit(thread: Thread) -> Formulas:
    """Apply every formula to a thread's unique calls since its last clear, the current call last.

    The formulas that need all of these calls are None if some of them were dropped from memory.
    """
    counted = thread.calls_from(thread.last_clear)
    last = thread.last
    others = [call.usage for call in counted if call is not last]
    calls = [*others, last.usage] if last and len(others) < len(counted) else others
    unknown = () if is_complete(thread) else SUMS
    values = {
        name: formula(calls) if calls and name not in unknown else None
        for name, formula in FORMULAS.items()
    }
    return Formulas(**values, components=sum_components(calls))


def is_complete(thread: Thread) -> bool:
    """Return whether all calls since the last clear are in memory."""
    return thread.dropped.count <= thread.last_clear
