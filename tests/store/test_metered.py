"""What a metered store counts: each thing once, by agent."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from brimline.context.inbox import Message
from brimline.store.base import (
    MarkMessage,
    PutCall,
    PutCompaction,
    PutSession,
    QueueMessage,
    RecordSignal,
    Write,
)
from brimline.store.metered import BUCKETS_S, MAX_SERIES, MeteredStore, WriteCounts
from brimline.store.rows import SPENDINGS, TOTAL_OF, CallRow, CompactionRow, SessionRow, SignalRow
from brimline.store.sqlite import MemoryStore

SESSION = PutSession(SessionRow("s1", "claude", 1.0))


def counts_of(*batches: Sequence[Write]) -> WriteCounts:
    times = iter(range(100))
    store = MeteredStore(MemoryStore(), clock=lambda: next(times) * 0.004)

    async def write() -> None:
        for batch in batches:
            await store.write(batch)

    asyncio.run(write())
    return store.counts


def message(id: str) -> Message:
    return Message(id, "s1", "text", 1.0)


def call(number: int, read: int, write: int, cycle: int = 0) -> PutCall:
    row = CallRow("s1", "main", f"c{number}", number, cycle, 10, read, write, 5)
    return PutCall(row)


def test_calls_and_cache_misses_are_counted_once() -> None:
    counts = counts_of(
        [SESSION, call(0, 0, 20_000), call(1, 20_000, 1_000)],
        [call(1, 20_000, 1_100)],  # a copy
        [call(2, 0, 22_000)],
        [call(3, 0, 9_000, cycle=1)],
    )
    assert counts.calls == {"claude": 4}
    assert sum(counts.misses.values()) == 1
    assert counts.missed_tokens["claude"] == pytest.approx(21_000, rel=0.01)


def test_copies_of_a_fork_and_spendings_count_as_no_calls() -> None:
    copies = [call(0, 0, 20_000), call(1, 0, 22_000)]  # the second is a miss of the original
    spent = CallRow("s1", f"main{SPENDINGS}", "p", 0, 0, 10, 0, 90_000, 5, counted=False)
    own = msgspec.structs.replace(call(2, 0, 24_000).row, miss_cost=0.25)
    writes = [PutCall(msgspec.structs.replace(each.row, counted=False)) for each in copies]
    counts = counts_of([SESSION, *writes, PutCall(spent), PutCall(own)])
    assert counts.calls == {"claude": 1}
    assert sum(counts.misses.values()) == 1
    assert counts.missed_tokens["claude"] == pytest.approx(22_000, rel=0.01)
    assert counts.missed_cost == {"claude": 0.25}


def test_tokens_and_cost_are_counted_once_by_team_and_model() -> None:
    """A copy of a fork has neither."""
    priced = msgspec.structs.replace(call(0, 100, 20).row, model="opus", cost=0.5)
    copied = msgspec.structs.replace(priced, call="copied", seq=1, counted=False, cost=None)
    total_id = f"{TOTAL_OF}opus"
    spent = CallRow(
        "s1", f"main{SPENDINGS}", total_id, 0, 0, 10, 0, 90, 5, "opus", cost=0.25, counted=False
    )
    more = msgspec.structs.replace(spent, input=30, cost=0.75)
    other = msgspec.structs.replace(priced, session="s2")
    team = PutSession(SessionRow("s1", "claude", 1.0, team="web"))
    second = msgspec.structs.replace(spent, call="q", cost=0.125)
    rows = [PutCall(row) for row in (priced, copied, more, second, other)]
    counts = counts_of(
        [team, PutSession(SessionRow("s2", "codex", 1.0)), PutCall(spent), *rows], rows
    )
    assert {group: each.cost for group, each in counts.usage.items()} == {
        ("web", "opus"): 1.375, ("unknown", "opus"): 0.5,
    }  # fmt: skip
    tokens = {"input": 10, "cache_read": 100, "cache_write": 20, "output": 5}
    for beside in (more, second):
        tokens = {kind: tokens[kind] + getattr(beside, kind) for kind in tokens}
    assert counts.usage["web", "opus"].tokens == tokens
    many = [msgspec.structs.replace(priced, call=f"{n}", seq=n, model=f"m{n}") for n in range(300)]
    usage = counts_of([team, *map(PutCall, many)]).usage
    assert len(usage) == MAX_SERIES + 1
    assert usage["other", "other"].cost == pytest.approx(0.5 * (300 - MAX_SERIES))


def test_total_of_spendings_is_counted_once_by_two_replicas_and_after_a_restart() -> None:
    """Spendings without an id are one row of a model, which is written again with each."""
    store = MemoryStore()
    total = CallRow(
        "s1", f"main{SPENDINGS}", f"{TOTAL_OF}opus", 0, 0, 0, 0, 0, 0, "opus", counted=False
    )
    replicas = [MeteredStore(store) for _ in range(3)]

    async def write() -> None:
        for number, replica in enumerate((*replicas, *replicas), 1):
            grown = msgspec.structs.replace(total, input=1_000 * number, cost=0.5 * number)
            await replica.write([SESSION, PutCall(grown)])

    asyncio.run(write())
    counted = [replica.counts.usage["unknown", "opus"] for replica in replicas]
    assert sum(each.tokens["input"] for each in counted) == 6_000
    assert sum(each.cost for each in counted) == 3.0


def test_agent_of_a_session_that_is_stored_already_is_known() -> None:
    store = MemoryStore()
    asyncio.run(store.write([SESSION]))
    metered = MeteredStore(store)
    asyncio.run(metered.write([SESSION, call(0, 0, 20_000)]))
    assert metered.counts.calls == {"claude": 1}


def test_number_of_series_is_bounded() -> None:
    """Clients choose names of agents, triggers and levels: what is too many is counted as other."""
    count = MAX_SERIES + 5
    writes: list[Write] = []
    for number in range(count):
        id = f"s{number}"
        writes += [
            PutSession(SessionRow(id, f"agent {number}", 1.0)),
            PutCall(CallRow(id, "main", "c", 0, 0, 1, 1, 1, 1)),
            PutCompaction(CompactionRow(id, "main", 0, trigger=f"trigger {number}")),
            RecordSignal(SignalRow(id, "main", 0, "level", 1.0, float(number))),
        ]
    counts = counts_of(writes)
    for counter in (counts.calls, counts.compactions, counts.signals):
        assert len(counter) == MAX_SERIES + 1
        assert sum(counter.values()) == count
    assert counts.calls["other"] == 5


def test_compaction_counts_once() -> None:
    row = CompactionRow("s1", "main", 0, 1.0, "auto", 100_000)
    later = CompactionRow("s1", "main", 0, 1.0, "auto", 100_000, 20_000)
    unknown = CompactionRow("s2", "main", 0, 1.0)
    counts = counts_of(
        [SESSION, PutCompaction(row)], [PutCompaction(later), PutCompaction(unknown)]
    )
    assert counts.compactions == {("claude", "auto"): 1, ("unknown", "unknown"): 1}


def test_signals_and_messages_are_counted() -> None:
    signal = RecordSignal(SignalRow("s1", "main", 0, "level", 1.0, 50.0), (message("m1"),))
    delivered = MarkMessage("m1", "delivered", ("queued",), 2.0)
    counts = counts_of([SESSION, signal], [signal], [QueueMessage(message("m2")), delivered])
    assert counts.signals == {("claude", "level", 50.0): 1}
    assert counts.messages == {"queued": 2, "delivered": 1}


def test_writes_are_timed() -> None:
    counts = counts_of([SESSION], [SESSION])
    assert counts.writes.buckets[BUCKETS_S.index(0.005)] == 2
    assert counts.writes.total_s == pytest.approx(0.008)
    assert counts.pending_writes == 0


def test_queries_are_timed() -> None:
    times = iter((0.0, 0.004, 1.0, 1.2))
    store = MeteredStore(MemoryStore(), clock=lambda: next(times))

    async def read() -> None:
        assert await store.sessions() == []
        assert await store.known_events(["e"]) == set()

    asyncio.run(read())
    assert store.counts.reads.total_s == pytest.approx(0.204)
    assert [BUCKETS_S[at] for at, count in enumerate(store.counts.reads.buckets) if count] == [
        0.005, 0.25
    ]  # fmt: skip
    assert sum(store.counts.writes.buckets) == 0
