"""A session and its threads: what was folded from events, and every figure of a thread."""

from collections.abc import Iterable

import msgspec

from brimline.events import MAIN, Call, Trigger
from brimline.usage import NOTHING, Usage

LEARN_FROM = 5
"""How many of the last automatic compactions a limit is learned from."""


class Compaction(msgspec.Struct, frozen=True):
    """A compaction: what the context held before and after; `calls` came before it.

    `cycle` is the one that it ended, `model` what the thread ran on.

    `before` is the client's word, else what the last call held; `after` is what the next call
    sent, else the client's estimate. `inferred`: no record says so, the occupancy fell.
    """

    at: float | None
    trigger: Trigger | None
    before: int | None
    after: int | None
    calls: int
    cycle: int = 0
    model: str | None = None
    inferred: bool = False


class Thread(msgspec.Struct, frozen=True):
    """One context window: its unique calls in order, its cycles, what it holds now.

    `current` is the id of the call that tells what is held now; None: unknown. `window` is what the
    client said of this thread, whatever its model. `edits` counts the calls that the API itself cut
    the prompt of, `edited` is the last of them. `clears`: the calls before each.
    """

    name: str
    calls: dict[str, Call] = msgspec.field(default_factory=dict[str, Call])
    current: str | None = None
    cycle: int = 0
    compactions: tuple[Compaction, ...] = ()
    compacting: bool = False
    window: int | None = None
    spent: Usage = NOTHING
    ended: bool = False
    at: float | None = None
    edits: int = 0
    edited: str | None = None
    clears: tuple[int, ...] = ()

    @property
    def ends(self) -> tuple[int, ...]:
        """The calls before the end of each cycle, by a compaction or a clear."""
        return (*(made.calls for made in self.compactions), *self.clears)

    @property
    def begun(self) -> int:
        """The calls before the present cycle."""
        return max(self.ends, default=0)

    def cycle_of(self, place: int) -> int:
        """The cycle of a call by its place among the calls."""
        return sum(1 for calls in self.ends if calls <= place)

    @property
    def last(self) -> Call | None:
        """The last call that was made, also when what is held now is unknown."""
        if self.current is not None:
            return self.calls[self.current]
        return next(reversed(self.calls.values()), None)

    @property
    def holding(self) -> Call | None:
        """The call that tells what is held now; None before the first and after a compaction."""
        return None if self.current is None else self.calls[self.current]

    @property
    def peak_sent(self) -> int | None:
        """The most that a call of this thread ever sent."""
        return max((call.usage.sent for call in self.calls.values()), default=None)

    @property
    def total(self) -> Usage:
        """All tokens billed: each call once, and what was billed without telling its calls."""
        return sum((call.usage for call in self.calls.values()), self.spent)

    @property
    def model(self) -> str | None:
        """The model of the last call, as the user named it where that is known."""
        last = self.last
        return (last.asked_for or last.model) if last else None

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they were first used."""
        return tuple(dict.fromkeys(c.model for c in self.calls.values() if c.model is not None))

    @property
    def learned(self) -> int | None:
        """The lowest point of the model's last automatic compactions: the limit is not above it."""
        model = self.last.model if self.last else None
        automatic = [c for c in self.compactions if c.trigger == "auto" and c.model == model]
        seen = [c.before for c in automatic if c.before is not None]
        return min(seen[-LEARN_FROM:], default=None)

    @property
    def most_sent(self) -> int:
        """The most that a call on the thread's present model sent: no less is its window."""
        model = self.last.model if self.last else None
        return max((c.usage.sent for c in self.calls.values() if c.model == model), default=0)


class Session(msgspec.Struct, frozen=True):
    """One conversation of an agent, its threads by name, the windows reported by model."""

    agent: str | None = None
    id: str | None = None
    project: str | None = None
    version: str | None = None
    title: str | None = None
    records_compactions: bool = False
    at: float | None = None
    threads: dict[str, Thread] = msgspec.field(default_factory=dict[str, Thread])
    windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])


def total(threads: Iterable[Thread]) -> tuple[int, Usage]:
    """The unique calls and all tokens of many threads: a call in two files counts once."""
    calls: dict[str, Usage] = {}
    spent = NOTHING
    for thread in threads:
        for id, call in thread.calls.items():
            if call.final or id not in calls:
                calls[id] = call.usage
        spent = spent + thread.spent
    return len(calls), sum(calls.values(), spent)


def main_of(session: Session) -> Thread | None:
    """The session's own thread."""
    return session.threads.get(MAIN)
