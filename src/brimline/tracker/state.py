"""A session and its threads: what was folded from events, and every figure of a thread."""

from collections.abc import Iterable, Iterator

import msgspec

from brimline.events import MAIN, Call, Trigger
from brimline.tracker.call_history import CallHistory
from brimline.usage import ZERO, Usage

LEARNED_COMPACTIONS = 5  # how many of the last automatic compactions a limit is learned from


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


class DroppedCalls(msgspec.Struct, frozen=True):
    """The figures of the oldest calls of a thread, which it no longer holds one by one.

    `most_sent` is by model, in the order of first use. `cycle_ends` counts the compactions and
    clears that were dropped with them, `cycle_start` is the number of calls before the last of
    these. `automatic` has, by model, what the last automatic compactions among them found.
    `sents` is what each `stride`th call since `cycle_start` sent.
    """

    count: int = 0
    usage: Usage = ZERO
    first_at: float | None = None
    most_sent: dict[str | None, int] = msgspec.field(default_factory=dict[str | None, int])
    cycle_ends: int = 0
    cycle_start: int = 0
    automatic: dict[str | None, tuple[int, ...]] = msgspec.field(
        default_factory=dict[str | None, tuple[int, ...]]
    )
    sents: tuple[int, ...] = ()
    stride: int = 1


NO_CALLS_DROPPED = DroppedCalls()


class Thread(msgspec.Struct, frozen=True):
    """One context window: its unique calls in order, its cycles, what it holds now.

    The fold keeps every call. `retention.drop_old_calls` reduces the oldest ones, and the
    compactions before them, to their figures in `dropped`: no property changes by that.

    `current` is the id of the call that tells what is held now; None: unknown. `window` is what the
    client said of this thread, whatever its model. `edits` counts the calls that the API itself cut
    the prompt of, `edited` is the last of them. `clears`: the calls before each.
    """

    name: str
    calls: CallHistory = msgspec.field(default_factory=CallHistory)
    current: str | None = None
    cycle: int = 0
    compactions: tuple[Compaction, ...] = ()
    compacting: bool = False
    window: int | None = None
    spent: Usage = ZERO
    ended: bool = False
    at: float | None = None
    edits: int = 0
    edited: str | None = None
    clears: tuple[int, ...] = ()
    dropped: DroppedCalls = NO_CALLS_DROPPED

    @property
    def call_count(self) -> int:
        """The unique calls so far, the dropped ones included."""
        return self.dropped.count + len(self.calls)

    def calls_from(self, place: int) -> Iterator[Call]:
        """The calls from a place among all calls on, as far as they are still held."""
        return self.calls.in_order(max(0, place - self.dropped.count))

    @property
    def cycle_ends(self) -> tuple[int, ...]:
        """The calls before the end of each cycle, by a compaction or a clear."""
        return (*(made.calls for made in self.compactions), *self.clears)

    @property
    def cycle_start(self) -> int:
        """The calls before the present cycle."""
        return max((self.dropped.cycle_start, *self.cycle_ends))

    def cycle_of(self, place: int) -> int:
        """The cycle of a call by its place among the calls, which is still held."""
        return self.dropped.cycle_ends + sum(1 for calls in self.cycle_ends if calls <= place)

    @property
    def last(self) -> Call | None:
        """The last call that was made, also when what is held now is unknown."""
        if self.current is not None:
            return self.calls[self.current]
        return self.calls.last

    @property
    def current_call(self) -> Call | None:
        """The call that tells what is held now; None before the first and after a compaction."""
        return None if self.current is None else self.calls[self.current]

    @property
    def first_at(self) -> float | None:
        """When the first call was made."""
        if self.dropped.count:
            return self.dropped.first_at
        return next((call.at for call in self.calls.in_order()), None)

    @property
    def peak_sent(self) -> int | None:
        """The most that a call of this thread ever sent."""
        held = self.calls.sums.most_sent.values()
        return max((*self.dropped.most_sent.values(), *held), default=None)

    @property
    def total(self) -> Usage:
        """All tokens billed: each call once, and what was billed without telling its calls."""
        return self.spent + self.dropped.usage + self.calls.sums.usage

    @property
    def sents_of_cycle(self) -> list[int]:
        """What the calls of the present cycle sent, in their order.

        Of a cycle with many dropped calls it is evenly spaced calls, and the last one.
        """
        dropped, begun = self.dropped, self.cycle_start
        if begun >= dropped.count:
            return [call.usage.sent for call in self.calls_from(begun)]
        held = [call.usage.sent for call in self.calls.values()]
        first = -(dropped.count - dropped.cycle_start) % dropped.stride
        last = held[-1:] if (len(held) - 1 - first) % dropped.stride else []
        return [*dropped.sents, *held[first :: dropped.stride], *last]

    @property
    def model(self) -> str | None:
        """The model of the last call, as the user named it where that is known."""
        last = self.last
        return (last.asked_for or last.model) if last else None

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they were first used."""
        used = dict.fromkeys((*self.dropped.most_sent, *self.calls.sums.most_sent))
        return tuple(model for model in used if model is not None)

    @property
    def learned(self) -> int | None:
        """The lowest point of the model's last automatic compactions: the limit is not above it."""
        model = self.last.model if self.last else None
        automatic = [c for c in self.compactions if c.trigger == "auto" and c.model == model]
        seen = [c.before for c in automatic if c.before is not None]
        all_seen = (*self.dropped.automatic.get(model, ()), *seen)
        return min(all_seen[-LEARNED_COMPACTIONS:], default=None)

    @property
    def most_sent(self) -> int:
        """The most that a call on the thread's present model sent: no less is its window."""
        model = self.last.model if self.last else None
        held = self.calls.sums.most_sent
        return max(self.dropped.most_sent.get(model, 0), held.get(model, 0))


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
    """The unique calls and all tokens of many threads: a call in two files counts once.

    The threads must hold all their calls.
    """
    calls: dict[str, Usage] = {}
    spent = ZERO
    for thread in threads:
        for id, call in thread.calls.items():
            if call.final or id not in calls:
                calls[id] = call.usage
        spent = spent + thread.spent
    return len(calls), sum(calls.values(), spent)


def main_thread(session: Session) -> Thread | None:
    """The session's own thread."""
    return session.threads.get(MAIN)
