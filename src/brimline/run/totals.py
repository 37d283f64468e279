"""What the calls of a run add up to, and what they cost by list prices."""

from collections.abc import Iterable

import msgspec

from brimline.events import MAIN, Call
from brimline.prices import cost, tier_of
from brimline.survey.summary import day_of
from brimline.tracker import Session, Thread
from brimline.usage import ZERO, Usage


class Seen(msgspec.Struct, frozen=True):
    """A session as its stream or its transcript tells it; `since` is when the run began.

    A stream is the run's alone, and has no `since`. A transcript may begin long before.
    """

    session: Session
    source: str
    since: float | None = None

    @property
    def main(self) -> Thread:
        """The session's own thread."""
        return self.session.threads.get(MAIN) or Thread(MAIN)

    @property
    def calls(self) -> list[Call]:
        """The main thread's calls in this run."""
        return self._of_run(self.main)

    @property
    def all_calls(self) -> list[Call]:
        """The calls of all threads in this run."""
        return [call for thread in self.session.threads.values() for call in self._of_run(thread)]

    @property
    def total(self) -> Usage | None:
        """All tokens of this run; None where none are told.

        What a transcript says was spent without a call has no time: it counts where every call is
        of this run.
        """
        calls, threads = self.all_calls, self.session.threads.values()
        spent = sum((thread.spent for thread in threads), ZERO)
        if len(calls) < sum(len(thread.calls) for thread in threads):
            spent = ZERO
        total = sum((call.usage for call in calls), spent)
        return total if total.held else None

    def _of_run(self, thread: Thread) -> list[Call]:
        return since(thread.calls.values(), self.since)


def since(calls: Iterable[Call], at: float | None) -> list[Call]:
    """The calls that were made since a time; one without a time counts."""
    return [call for call in calls if at is None or call.at is None or call.at >= at]


def price(calls: Iterable[Call]) -> float | None:
    """What calls cost by list prices; None without a call, or where one's price is not known."""
    prices = [
        cost(call.model, day_of(call.at), tier_of(call.model, call.usage), call.usage)
        for call in calls
    ]
    known = [one for one in prices if one is not None]
    return sum(known) if known and len(known) == len(prices) else None
