"""A store that counts what is written to it, for the metrics of the daemon."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from itertools import compress, groupby
from operator import attrgetter
from typing import TypeAlias, TypeVar

from brimline.context.cache_misses import MissFinder
from brimline.context.events import Call
from brimline.context.inbox import Message
from brimline.files.bounded_dict import BoundedDict
from brimline.store.base import (
    MarkMessage,
    PutCall,
    PutCompaction,
    PutSession,
    QueueMessage,
    RecordSignal,
    Store,
    Write,
)
from brimline.store.rows import (
    TOTAL_OF,
    CallRow,
    CompactionRow,
    HandoffRow,
    SessionRow,
    SignalRow,
    ThreadRow,
)

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
MAX_SESSIONS = 10_000  # whose agents and caches are remembered
MAX_SERIES = 200  # of a metric: clients choose names of agents, triggers and levels
UNKNOWN, OTHER = "unknown", "other"
TOKEN_KINDS = ("input", "cache_read", "cache_write", "output")

TotalKey: TypeAlias = tuple[str, str, str]  # session, thread, and id of a row
KeyT = TypeVar("KeyT", bound=Hashable)
ResultT = TypeVar("ResultT")


class DurationCounts:
    """How long something took: `buckets` has one more than BUCKETS_S, for all above."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0

    def add(self, duration_s: float) -> None:
        self.total_s += duration_s
        self.buckets[bisect_left(BUCKETS_S, duration_s)] += 1


class UsageCounts:
    """The tokens of calls by kind, and what they cost in USD, with what is spent beside them."""

    def __init__(self) -> None:
        self.tokens = Counter[str]()
        self.cost = 0.0

    def add(self, row: CallRow, before: CallRow | None = None) -> None:
        """Add a row, or what it has more than an earlier version of it."""
        self.cost += max(0.0, (row.cost or 0.0) - ((before and before.cost) or 0.0))
        if row.counted or row.is_spending:
            for kind in TOKEN_KINDS:
                counted = 0 if before is None else getattr(before, kind)
                self.tokens[kind] += max(0, getattr(row, kind) - counted)


class WriteCounts:
    """What was written since the start, each count by its labels, and how long that took."""

    def __init__(self) -> None:
        self.calls = Counter[str]()  # by agent
        self.compactions = Counter[tuple[str, str]]()  # by agent and trigger
        self.signals = Counter[tuple[str, str, float]]()  # by agent, kind and level
        self.messages = Counter[str]()  # by state
        self.misses = Counter[tuple[str, str]]()  # by agent and cause
        self.missed_tokens = Counter[str]()  # by agent
        self.missed_cost: dict[str, float] = {}
        self.usage: dict[tuple[str, str], UsageCounts] = {}  # by team and model
        self.pending_writes = 0
        self.reads, self.writes = DurationCounts(), DurationCounts()
        self._agents = BoundedDict[str, str](MAX_SESSIONS)
        self._teams = BoundedDict[str, str](MAX_SESSIONS)
        self._calls = BoundedDict[tuple[str, str], tuple[MissFinder, tuple[int, int]]](MAX_SESSIONS)
        self._compacted = BoundedDict[tuple[str, str, int], bool](MAX_SESSIONS)

    def note_sessions(self, writes: Iterable[Write]) -> None:
        """Remember the agents and teams of sessions, also of those that were stored already."""
        for write in writes:
            if isinstance(write, PutSession):
                self._agents[write.row.id] = write.row.agent
                if write.row.team is not None:
                    self._teams[write.row.id] = write.row.team

    def add(self, write: Write) -> None:
        """Count a write that had an effect, other than a call."""
        match write:
            case PutCompaction(row):
                self._add_compaction(row)
            case RecordSignal(signal, messages):
                agent = self._agents.get(signal.session, UNKNOWN)
                key = agent, signal.kind, signal.level
                self.signals[bounded(self.signals, key, (OTHER, signal.kind, 0.0))] += 1
                self.messages["queued"] += len(messages)
            case QueueMessage():
                self.messages["queued"] += 1
            case MarkMessage():
                self.messages[write.to] += 1
            case _:
                pass

    def _add_compaction(self, row: CompactionRow) -> None:
        key = row.session, row.thread, row.cycle
        if key not in self._compacted:  # else its `after` is known now
            self._compacted[key] = True
            agent = self._agents.get(row.session, UNKNOWN)
            key = agent, row.trigger or UNKNOWN
            self.compactions[bounded(self.compactions, key, (OTHER, OTHER))] += 1

    def add_calls(self, rows: Iterable[CallRow], totals: dict[TotalKey, CallRow]) -> None:
        """Count calls, their cache misses, and spendings; a later copy of a call is not counted.

        `totals` are the stored versions of rows that add up spendings; it gets those of `rows`.
        """
        for thread, calls in groupby(rows, attrgetter("session", "thread")):
            finder, last = self._calls.get(thread) or (MissFinder(), (-1, -1))
            agent = bounded(self.calls, self._agents.get(thread[0], UNKNOWN), OTHER)
            for row in calls:
                place = row.cycle, row.seq
                if row.is_spending:
                    key = row.session, row.thread, row.call
                    self._add_usage(row, totals.get(key))
                    totals[key] = row
                elif place > last:
                    self._add_usage(row)
                    self._add_call(row, agent, finder, last[0] not in (-1, row.cycle))
                    last = place
            self._calls[thread] = finder, last

    def _add_usage(self, row: CallRow, before: CallRow | None = None) -> None:
        group = self._teams.get(row.session, UNKNOWN), row.model or UNKNOWN
        group = bounded(self.usage, group, (OTHER, OTHER))
        self.usage.setdefault(group, UsageCounts()).add(row, before)

    def _add_call(self, row: CallRow, agent: str, finder: MissFinder, is_new_cycle: bool) -> None:
        call = Call(id=row.call, usage=row.usage, model=row.model, at=row.at)
        miss = finder.add(call, "compaction" if is_new_cycle else None)
        if not row.counted:  # another session made it, and has its miss
            return
        self.calls[agent] += 1
        if miss is not None:
            self.misses[agent, miss.cause] += 1  # causes are few
            self.missed_tokens[agent] += miss.tokens
            self.missed_cost[agent] = self.missed_cost.get(agent, 0.0) + (row.miss_cost or 0.0)


def bounded(counts: Mapping[KeyT, object], key: KeyT, other: KeyT) -> KeyT:
    """Return the key, or another one if there are too many keys already."""
    return key if key in counts or len(counts) < MAX_SERIES else other


class MeteredStore:
    """Passes everything on to another store, and counts what has an effect."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.perf_counter) -> None:
        self._store = store
        self._clock = clock
        self.counts = WriteCounts()

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        rows = [write.row for write in writes if isinstance(write, PutCall)]
        totals = await self._stored_totals(rows)
        self.counts.pending_writes += 1
        began = self._clock()
        try:
            effects = await self._store.write(writes)
        finally:
            self.counts.pending_writes -= 1
        self.counts.writes.add(self._clock() - began)
        self.counts.note_sessions(writes)
        effective = list(compress(writes, effects))
        effective_rows = (write.row for write in effective if isinstance(write, PutCall))
        self.counts.add_calls(effective_rows, totals)
        for write in effective:
            if not isinstance(write, PutCall):
                self.counts.add(write)
        return effects

    async def _stored_totals(self, rows: Iterable[CallRow]) -> dict[TotalKey, CallRow]:
        """Return the stored versions of rows that grow: spendings without an id, added up.

        They are read, not remembered: another replica, or a process before this one, wrote some.
        """
        threads = {(row.session, row.thread) for row in rows if row.call.startswith(TOTAL_OF)}
        stored = [row for thread in threads for row in await self._store.calls(*thread)]
        return {(row.session, row.thread, row.call): row for row in stored}

    async def sessions(self) -> list[SessionRow]:
        return await self._timed(self._store.sessions())

    async def session(self, id: str) -> SessionRow | None:
        return await self._timed(self._store.session(id))

    async def threads(self, session: str | None = None) -> list[ThreadRow]:
        return await self._timed(self._store.threads(session))

    async def main_threads(self, seen_since: float) -> list[tuple[SessionRow, ThreadRow]]:
        return await self._timed(self._store.main_threads(seen_since))

    async def calls(self, session: str, thread: str | None = None) -> list[CallRow]:
        return await self._timed(self._store.calls(session, thread))

    async def costs(self, session: str | None = None) -> dict[str, float]:
        return await self._timed(self._store.costs(session))

    async def copied_calls(self, session: str, calls: Sequence[str]) -> set[str]:
        return await self._timed(self._store.copied_calls(session, calls))

    async def compactions(self, session: str | None = None) -> list[CompactionRow]:
        return await self._timed(self._store.compactions(session))

    async def signals(self, session: str | None = None) -> list[SignalRow]:
        return await self._timed(self._store.signals(session))

    async def signals_after(self, position: int, limit: int) -> list[tuple[int, SignalRow]]:
        return await self._timed(self._store.signals_after(position, limit))

    async def messages(self, session: str | None = None) -> list[Message]:
        return await self._timed(self._store.messages(session))

    async def pending_messages(self, session: str | None = None) -> list[Message]:
        return await self._timed(self._store.pending_messages(session))

    async def machine_deliveries(
        self, machine: str, since: float
    ) -> tuple[list[Message], list[HandoffRow]]:
        return await self._timed(self._store.machine_deliveries(machine, since))

    async def last_handoffs(self, session: str | None = None) -> list[HandoffRow]:
        return await self._timed(self._store.last_handoffs(session))

    async def handoffs(self, session: str) -> list[HandoffRow]:
        return await self._timed(self._store.handoffs(session))

    async def known_events(self, keys: Sequence[str]) -> set[str]:
        return await self._timed(self._store.known_events(keys))

    async def cursor(self, name: str) -> int:
        return await self._timed(self._store.cursor(name))

    async def revision(self, session: str) -> int:
        return await self._timed(self._store.revision(session))

    async def changes(self, after: int = 0, seen_since: float = 0.0) -> list[tuple[int, str]]:
        return await self._timed(self._store.changes(after, seen_since))

    async def close(self) -> None:
        await self._store.close()

    async def _timed(self, query: Awaitable[ResultT]) -> ResultT:
        began = self._clock()
        result = await query
        self.counts.reads.add(self._clock() - began)
        return result
