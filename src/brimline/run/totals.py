"""Totals of a run's calls, and their cost by list prices."""

from collections.abc import Iterable

import msgspec

from brimline.events import MAIN, Call
from brimline.prices import compute_cost, tier_of
from brimline.survey.summary import day_of
from brimline.tracker import Session, Thread
from brimline.usage import ZERO, Usage


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
        """All tokens of this run, or None if there are none.

        Tokens that a transcript reports without a call have no time: they count only if all calls
        are of this run.
        """
        calls, threads = self.all_calls, self.session.threads.values()
        spent = sum((thread.spent for thread in threads), ZERO)
        if len(calls) < sum(len(thread.calls) for thread in threads):
            spent = ZERO
        total = sum((call.usage for call in calls), spent)
        return total if total.held else None

    def _calls_of_run(self, thread: Thread) -> list[Call]:
        return calls_since(thread.calls.values(), self.since)


def calls_since(calls: Iterable[Call], at: float | None) -> list[Call]:
    """The calls since a time, and those without a time."""
    return [call for call in calls if at is None or call.at is None or call.at >= at]


def list_price(calls: Iterable[Call]) -> float | None:
    """The cost by list prices; None without calls, or if a price is unknown."""
    prices = [
        compute_cost(call.model, day_of(call.at), tier_of(call.model, call.usage), call.usage)
        for call in calls
    ]
    known = [one for one in prices if one is not None]
    return sum(known) if known and len(known) == len(prices) else None
