"""What the calls of a thread cost, and what a cache miss added to each."""

from collections.abc import Iterable, Iterator
from copy import copy
from math import fsum

from brimline.context.cache_misses import MissFinder, prompt_changes
from brimline.context.events import Call, Spent, is_compaction_thread
from brimline.context.prices import cost_of
from brimline.context.tracker import Thread


class CallCosts:
    """The costs of one thread's calls, whose rows are made again only for the last ones.

    The finder has seen all calls but the last, which a later copy may replace.
    """

    __slots__ = ("_finder", "_seen")

    def __init__(self) -> None:
        self._finder, self._seen = MissFinder(), 0

    def costs_from(self, thread: Thread, first: int) -> Iterator[tuple[float | None, float | None]]:
        """Yield cost and miss cost, in USD, of each call in memory from a place on."""
        costs = _sum_costs(thread, thread.calls_from(first))
        if is_compaction_thread(thread.name):  # these calls do not continue each other
            yield from ((cost, None) for cost in costs)
            return
        changes = prompt_changes(thread)
        if not thread.dropped.count <= self._seen <= first:
            self._finder, self._seen = MissFinder(thread.dropped.count), thread.dropped.count
        for place, call in enumerate(thread.calls_from(self._seen), self._seen):
            is_last = place + 1 == thread.call_count
            finder = copy(self._finder) if is_last else self._finder
            change, rewound_to = changes.get(place, (None, None))
            miss = finder.add(call, change, thread.calls.get(rewound_to or ""))
            self._seen = place if is_last else place + 1
            if place >= first:
                yield next(costs), miss.cost if miss else None


def _sum_costs(thread: Thread, calls: Iterable[Call]) -> Iterator[float | None]:
    """Yield the cost of each call with its other passes, in USD; None if no price is known."""
    passes: dict[str | None, list[Spent]] = {}
    for spent in thread.billed_spendings:
        passes.setdefault(spent.id, []).append(spent)
    for call in calls:
        costs = [cost_of(each) for each in (call, *passes.get(call.id, ()))]
        known = [cost.dollars for cost in costs if cost is not None]
        yield fsum(known) if known else None
