"""Totals of a run's calls, and their cost by list prices."""

from collections.abc import Iterable
from math import fsum

import msgspec

from brimline.context.events import MAIN, Call, Event, Spent
from brimline.context.prices import cost_of
from brimline.context.tracker import Session, Thread
from brimline.context.usage import ZERO, Usage


class RunView(msgspec.Struct, frozen=True):
    """The part of a session that belongs to a run, by its stream or its transcript.

    `since` is when the run started: a transcript may be older. A stream has none.
    """

    session: Session
    source: str
    since: float | None = None

    @property
    def main(self) -> Thread:
        return self.session.threads.get(MAIN) or Thread(MAIN)

    @property
    def calls(self) -> list[Call]:
        return self._calls_of_run(self.main)

    @property
    def all_calls(self) -> list[Call]:
        return [
            call for thread in self.session.threads.values() for call in self._calls_of_run(thread)
        ]

    @property
    def total(self) -> Usage | None:
        """All tokens of this run, or None if there are none."""
        total = sum((each.usage for each in (*self.all_calls, *self.spendings)), ZERO)
        return total if total.held else None

    @property
    def spendings(self) -> list[Spent]:
        """Tokens of this run without an occupancy."""
        threads = self.session.threads.values()
        spendings = (spent for thread in threads for spent in thread.billed_spendings)
        return [each for each in spendings if is_since(each, self.since)]

    def _calls_of_run(self, thread: Thread) -> list[Call]:
        return calls_since(thread.calls.values(), self.since)


def calls_since(calls: Iterable[Call], at: float | None) -> list[Call]:
    """The calls since a time, and those without a time."""
    return [call for call in calls if is_since(call, at)]


def is_since(event: Event, at: float | None) -> bool:
    """Whether an event is not before a time; one without a time is not."""
    return at is None or event.at is None or event.at >= at


def list_price(view: RunView) -> float | None:
    """The cost by list prices, else by the client; None without calls, or if one has no price."""
    costs = [cost_of(each) for each in (*view.all_calls, *view.spendings)]
    known = [cost.dollars for cost in costs if cost is not None]
    return fsum(known) if known and len(known) == len(costs) else None
