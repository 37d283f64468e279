"""The historic formulas by name, computed beside the reading so that anyone can audit them.

`latest` is ours. Each other one was a tool's answer to "how full is the window?"; what is wrong
with it stands beside it.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import add

import msgspec

from brimline.tracker import Thread
from brimline.usage import Usage


class Components(msgspec.Struct, frozen=True):
    """The raw figures that the summing formulas are made of, each call counted once."""

    max_cache_read: int
    sum_input: int
    sum_output: int
    sum_cache_creation: int
    unique_calls: int


class Formulas(msgspec.Struct, frozen=True):
    """Every formula's value for one thread, None where no call was made yet."""

    latest: int | None
    max_cache_read_plus_sums: int | None
    sum_cache_creation: int | None
    last_input: int | None
    result_sums: int | None
    effective: int | None
    components: Components

    @property
    def by_name(self) -> dict[str, int | None]:
        """The values by their formula's name."""
        return {name: getattr(self, name) for name in FORMULAS}


def components(calls: Sequence[Usage]) -> Components:
    """The raw figures of these calls."""
    return Components(
        max_cache_read=max((call.cache_read for call in calls), default=0),
        sum_input=sum(call.input for call in calls),
        sum_output=sum(call.output for call in calls),
        sum_cache_creation=sum(call.cache_write for call in calls),
        unique_calls=len(calls),
    )


def latest(calls: Sequence[Usage]) -> int:
    """Ours: what the last call sent."""
    return calls[-1].sent


def max_cache_read_plus_sums(calls: Sequence[Usage]) -> int:
    """max(cache_read) + sum(input) + sum(output): starts low, never falls after a compaction."""
    raw = components(calls)
    return raw.max_cache_read + raw.sum_input + raw.sum_output


def sum_cache_creation(calls: Sequence[Usage]) -> int:
    """sum(cache_creation) + sum(input) + sum(output): each cache miss adds the prompt again."""
    raw = components(calls)
    return raw.sum_cache_creation + raw.sum_input + raw.sum_output


def last_input(calls: Sequence[Usage]) -> int:
    """The last call's uncached input alone: a few tokens wherever the cache works."""
    return calls[-1].input


def result_sums(calls: Sequence[Usage]) -> int:
    """What a result message sums up: every prompt of the session added to the next."""
    return sum(call.sent for call in calls)


def effective(calls: Sequence[Usage]) -> int:
    """The cost view of the last prompt: what it was billed like, not what it holds."""
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


def series(calls: Sequence[Usage]) -> dict[str, list[int]]:
    """Every formula's value after each of these calls."""
    inputs = list(accumulate(call.input for call in calls))
    outputs = list(accumulate(call.output for call in calls))
    most_read = accumulate((call.cache_read for call in calls), max)
    written = accumulate(call.cache_write for call in calls)
    spent = [given + made for given, made in zip(inputs, outputs, strict=True)]
    return {
        "latest": [call.sent for call in calls],
        "max_cache_read_plus_sums": list(map(add, most_read, spent)),
        "sum_cache_creation": list(map(add, written, spent)),
        "last_input": [call.input for call in calls],
        "result_sums": list(accumulate(call.sent for call in calls)),
        "effective": [call.effective for call in calls],
    }


def off_by(value: int | None, truth: int | None) -> float | None:
    """How far a formula is off, in per cent of the truth; None where either is unknown."""
    if value is None or not truth:
        return None
    return round(100 * (value - truth) / truth, 1)


def audit(thread: Thread) -> Formulas:
    """Every formula on a thread's unique calls; the one that holds now is the last."""
    last = thread.last
    others = [call.usage for call in thread.calls.values() if call is not last]
    calls = [*others, last.usage] if last else []
    values = {name: formula(calls) if calls else None for name, formula in FORMULAS.items()}
    return Formulas(**values, components=components(calls))
