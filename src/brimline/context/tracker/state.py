"""A session and its threads, as folded from events, with every figure of a thread."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from brimline.context.client_report import Quotas
from brimline.context.events import MAIN, Call, Spent, Trigger, is_compaction_thread
from brimline.context.tracker.call_history import CallHistory
from brimline.context.usage import ZERO, Usage

LEARNED_COMPACTIONS = 5  # how many of the last automatic compactions a limit is learned from


class Compaction(msgspec.Struct, frozen=True):
    """A compaction: `calls` came before it, `cycle` is the cycle that it ended.

    `before` is what the context held by the client, else by the last call; `after` is what the next
    call sent, else the client's estimate. `inferred`: it has no record, but the occupancy fell.
    `overflow`: the API had refused a request that was too long. `branch` is that of the last call,
    `version` the client's.
    """

    at: float | None
    trigger: Trigger | None
    before: int | None
    after: int | None
    calls: int
    cycle: int = 0
    model: str | None = None
    inferred: bool = False
    overflow: bool = False
    branch: str | None = None
    version: str | None = None


ChangeKind: TypeAlias = Literal["rewind", "context edit", "resume", "effort switch"]


class PromptChange(msgspec.Struct, frozen=True):
    """A change of what is sent, other than new messages at its end; `calls` came before it.

    A resume is one that the client recorded, or by another version of it. `to` is the call that a
    rewind went back to, None for the empty start.
    """

    calls: int
    kind: ChangeKind
    to: str | None = None


def held_at_trigger(compaction: Compaction) -> int | None:
    """Return what was held at an automatic compaction; None for others and after an overflow."""
    is_automatic = compaction.trigger == "auto" and not compaction.overflow
    return compaction.before if is_automatic else None


class CompactionLoop(msgspec.Struct, frozen=True):
    """Compactions by the client in a row, each within a few calls of the one before.

    `kept` is what stayed after the last of them; None if that is not known.
    """

    compactions: int
    kept: int | None = None


class DroppedCalls(msgspec.Struct, frozen=True):
    """The totals of the oldest calls of a thread, which were dropped from memory.

    `most_sent` is by model ("" if unknown), in the order of first use. `cycle_ends` counts the
    compactions and clears that were dropped with them, `cycle_start` is the number of calls before
    the last of these. `automatic` has, by model, `before` of the last automatic compactions among
    them. `sents` is what each `stride`th call since `cycle_start` sent. `loop` has those that the
    compactions in memory continue, if they are a loop.
    """

    count: int = 0
    usage: Usage = ZERO
    first_at: float | None = None
    most_sent: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    cycle_ends: int = 0
    cycle_start: int = 0
    automatic: dict[str, tuple[int, ...]] = msgspec.field(
        default_factory=dict[str, tuple[int, ...]]
    )
    sents: tuple[int, ...] = ()
    stride: int = 1
    loop: CompactionLoop | None = None


NO_CALLS_DROPPED = DroppedCalls()


SpendingKey: TypeAlias = tuple[str | None, str | None, str | None]


def spending_key(spent: Spent) -> SpendingKey:
    """Return what identifies a spending of a thread."""
    return spent.id, spent.model, spent.service_tier


class Thread(msgspec.Struct, frozen=True):
    """One context window: its unique calls in order, its cycles, what it holds now.

    The fold keeps every call. `retention.drop_old_calls` reduces the oldest ones, and the
    compactions before them, to their totals in `dropped`: no property changes by that.

    `current` is the id of the call that shows what is held now; None: unknown. `window` is what the
    client reported for this thread. `edits` counts the calls whose prompt the API itself cut,
    `edited` is the last of them. `clears`: the number of calls before each clear. `sustained` is
    the most that two calls in a row sent at least, since the last automatic compaction, by model
    ("" if unknown: JSON has only texts as keys). `fell_from` is what was held before the last call
    if that sent far less, without a record of a compaction. `spendings` are the tokens without an
    occupancy; those without an id are added up by model and service tier. `changes` are those of
    the prompt that are no new cycle. `pending` and `earlier_reasoning` are what the client adds to
    what the current call held, by its own estimates (`events.Added`). `title` is what a subagent is
    to do.
    """

    name: str
    calls: CallHistory = msgspec.field(default_factory=CallHistory)
    current: str | None = None
    cycle: int = 0
    compactions: tuple[Compaction, ...] = ()
    compacting: bool = False
    window: int | None = None
    spendings: tuple[Spent, ...] = ()
    ended: bool = False
    at: float | None = None
    edits: int = 0
    edited: str | None = None
    clears: tuple[int, ...] = ()
    dropped: DroppedCalls = NO_CALLS_DROPPED
    sustained: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    fell_from: int | None = None
    changes: tuple[PromptChange, ...] = ()
    pending: int = 0
    earlier_reasoning: int = 0
    title: str | None = None

    @property
    def call_count(self) -> int:
        """The number of unique calls so far, with the dropped ones."""
        return self.dropped.count + len(self.calls)

    def calls_from(self, place: int) -> list[Call]:
        """Return the calls from a place among all calls on, as far as they are in memory."""
        return self.calls.in_order(max(0, place - self.dropped.count))

    def recent_calls(self, count: int) -> list[Call]:
        """Return the last calls of the present cycle, at most so many."""
        return self.calls_from(max(self.cycle_start, self.call_count - count))

    def recent_sents(self, count: int) -> list[int]:
        """What the last calls of the present cycle sent, at most so many."""
        return [call.usage.sent for call in self.recent_calls(count)]

    @property
    def cycle_ends(self) -> tuple[int, ...]:
        """The number of calls before each compaction and clear."""
        return (*(each.calls for each in self.compactions), *self.clears)

    @property
    def last_clear(self) -> int:
        """The number of calls before the last clear that is in memory; 0 if there is none."""
        return max(self.clears, default=0)

    @property
    def cycle_start(self) -> int:
        """The number of calls before the present cycle."""
        return max((self.dropped.cycle_start, *self.cycle_ends))

    def cycle_of(self, place: int) -> int:
        """Return the cycle of a call in memory, by its place among all calls."""
        return self.dropped.cycle_ends + sum(1 for calls in self.cycle_ends if calls <= place)

    @property
    def last(self) -> Call | None:
        """The last call, also if it is unknown what is held now."""
        return self.current_call or self.calls.last

    @property
    def current_call(self) -> Call | None:
        """The call that shows what is held now; None before the first and after a compaction."""
        return None if self.current is None else self.calls[self.current]

    @property
    def first_at(self) -> float | None:
        if self.dropped.count:
            return self.dropped.first_at
        return next((call.at for call in self.calls.values()), None)

    @property
    def peak_sent(self) -> int | None:
        in_memory = self.calls.sums.most_sent.values()
        return max((*self.dropped.most_sent.values(), *in_memory), default=None)

    @property
    def spent(self) -> Usage:
        """All tokens that were billed without an occupancy."""
        return sum((each.usage for each in self.spendings), ZERO)

    @property
    def billed_spendings(self) -> tuple[Spent, ...]:
        """The spendings, with the thread's model and time if they have none of their own."""
        return tuple(
            each
            if each.model is not None and each.at is not None
            else msgspec.structs.replace(
                each,
                model=self.model if each.model is None else each.model,
                at=self.at if each.at is None else each.at,
            )
            for each in self.spendings
        )

    @property
    def total(self) -> Usage:
        """All tokens billed: of each call once, and those that were reported without calls."""
        return self.spent + self.dropped.usage + self.calls.sums.usage

    @property
    def sents_of_cycle(self) -> list[int]:
        """What the calls of the present cycle sent, in their order.

        Of a cycle with many dropped calls it has evenly spaced calls, and the last one.
        """
        dropped = self.dropped
        if self.cycle_start >= dropped.count:
            return [call.usage.sent for call in self.calls_from(self.cycle_start)]
        sents = [call.usage.sent for call in self.calls.in_order()]
        first = -(dropped.count - dropped.cycle_start) % dropped.stride
        last = sents[-1:] if (len(sents) - 1 - first) % dropped.stride else []
        return [*dropped.sents, *sents[first :: dropped.stride], *last]

    @property
    def model(self) -> str | None:
        """The model of the last call, as the user named it if that is known."""
        last = self.last
        return (last.asked_for or last.model) if last else None

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order of their first use."""
        used = dict.fromkeys((*self.dropped.most_sent, *self.calls.sums.most_sent))
        return tuple(model for model in used if model)

    @property
    def compacted_at(self) -> tuple[int, ...]:
        """What the context held at the present model's last automatic compactions."""
        model = self.last.model if self.last else None
        held = (held_at_trigger(each) for each in self.compactions if each.model == model)
        known = (
            *self.dropped.automatic.get(model or "", ()),
            *(tokens for tokens in held if tokens),
        )
        return known[-LEARNED_COMPACTIONS:]

    @property
    def sustained_sent(self) -> int:
        """What two calls in a row on the present model sent at least, without a compaction."""
        return self.sustained.get((self.last and self.last.model) or "", 0)

    @property
    def first_sent(self) -> int | None:
        """What the first call of the present cycle sent; None if that is not certain.

        A thread with a single call may be the end of a file.
        """
        if self.call_count < 2:
            return None
        if self.cycle_start < self.dropped.count:
            return self.dropped.sents[0]
        first = self.calls.call_at(self.cycle_start - self.dropped.count)
        return first.usage.sent if first else None

    @property
    def most_sent(self) -> int:
        """The most that a call of the present model sent: its window is not smaller."""
        return self.most_sent_by(self.last.model if self.last else None)

    def most_sent_by(self, model: str | None) -> int:
        in_memory, name = self.calls.sums.most_sent, model or ""
        return max(self.dropped.most_sent.get(name, 0), in_memory.get(name, 0))


class Session(msgspec.Struct, frozen=True):
    """One conversation of an agent: its threads by name, and windows by model.

    `windows` were reported by the client, as the longest replies `max_outputs` and the longest
    prompts `input_limits`; `observed_windows` follow from other records. `unmetered` counts the
    replies without usage since the last call. `quotas` are those of the account that it uses, as
    its records have them. `is_fork`: its records say that it continues a copy of another session.
    """

    agent: str | None = None
    id: str | None = None
    project: str | None = None
    version: str | None = None
    title: str | None = None
    records_compactions: bool = False
    at: float | None = None
    threads: dict[str, Thread] = msgspec.field(default_factory=dict[str, Thread])
    windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    observed_windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    unmetered: int = 0
    effort: str | None = None
    quotas: Quotas | None = None
    max_outputs: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    input_limits: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    is_fork: bool = False

    @property
    def sizes(self) -> tuple[dict[str, int], ...]:
        """All that decides windows and limits by model."""
        return self.windows, self.observed_windows, self.max_outputs, self.input_limits


def total(threads: Iterable[Thread]) -> tuple[int, Usage]:
    """Return the number of unique calls and all tokens of threads that hold all their calls."""
    calls: dict[str, Usage] = {}
    spent = ZERO
    for thread in threads:
        for id, call in thread.calls.items():
            if call.final or id not in calls:
                calls[id] = call.usage
        spent = spent + thread.spent
    return len(calls), sum(calls.values(), spent)


def main_thread(session: Session) -> Thread | None:
    return session.threads.get(MAIN)


def merge_sessions(parts: Sequence[Session]) -> Session:
    """Return one session of the parts that its files contain.

    A thread is that of the last part that has it; all but threads and windows is that of the last
    part with the main thread.
    """
    own = next((part for part in reversed(parts) if MAIN in part.threads), parts[-1])
    threads = {name: thread for part in parts for name, thread in part.threads.items()}
    tables = zip(*(part.sizes for part in parts), strict=True)
    windows, observed, outputs, inputs = (
        {model: size for table in column for model, size in table.items()} for column in tables
    )
    return msgspec.structs.replace(
        own,
        threads=threads,
        windows=windows,
        observed_windows=observed,
        max_outputs=outputs,
        input_limits=inputs,
    )


def context_threads(session: Session) -> dict[str, Thread]:
    """Return the threads that hold a context, the main one first; none before the first call.

    The main thread is empty if only subagents called a model, or its file is gone.
    """
    threads = {
        name: thread for name, thread in session.threads.items() if not is_compaction_thread(name)
    }
    return {MAIN: Thread(MAIN), **threads} if threads else {}
