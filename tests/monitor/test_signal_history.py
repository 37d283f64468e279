"""Which signals have fired, and whether a document is pending, as restored from the store."""

import pytest

from brimline.context.events import MAIN
from brimline.context.policy.signals import THRASH_WINDOW_S, Signal
from brimline.monitor.fired_signals import MAX_CYCLES, SignalHistory
from brimline.store.rows import HandoffRow, SignalRow


def compacted(cycle: int, at: float, thread: str = MAIN) -> SignalRow:
    return SignalRow("s", thread, cycle, "compacted", at)


def document(
    cycle: int, at: float, used_at: float | None = None, draft: bool = False
) -> HandoffRow:
    return HandoffRow(f"h{at}", "s", at, "/p", "hash", "text", "agent", cycle, None, draft, used_at)


@pytest.mark.parametrize(
    ("signals", "documents", "pending"),
    [
        ([], [], False),
        ([], [document(0, 10.0)], False),
        ([compacted(0, 20.0)], [], False),
        ([compacted(0, 20.0)], [document(0, 10.0)], True),
        ([compacted(0, 20.0)], [document(0, 10.0, draft=True)], True),
        ([compacted(0, 20.0)], [document(0, 10.0, used_at=21.0)], False),
        ([compacted(0, 20.0)], [document(0, 10.0, used_at=20.0)], False),
        ([compacted(0, 20.0)], [document(0, 30.0)], True),
        ([compacted(0, 20.0)], [document(1, 20.0)], True),
        ([compacted(0, 20.0)], [document(1, 30.0)], False),
        ([compacted(0, 20.0)], [document(1, 30.0), document(0, 10.0)], True),
        ([compacted(0, 20.0)], [document(1, 30.0), document(0, 10.0, used_at=21.0)], False),
        ([compacted(0, 20.0)], [document(0, 12.0, used_at=21.0), document(0, 10.0)], False),
        ([compacted(1, 40.0), compacted(0, 20.0)], [document(0, 10.0, used_at=21.0)], True),
        ([compacted(0, 20.0, thread="agent-1")], [document(0, 10.0)], False),
    ],
    ids=[
        "nothing",
        "no compaction",
        "no document",
        "not delivered",
        "draft not delivered",
        "delivered",
        "delivered at once",
        "of the cycle that ended, by a clock that went back",
        "of an unknown cycle",
        "of the next cycle",
        "of the next cycle, and one of this",
        "of the next cycle, and this one delivered",
        "delivered, and an older one not",
        "delivered after the compaction before",
        "compaction of a subagent",
    ],
)
def test_document_is_pending_after_a_restart_until_it_was_delivered(
    signals: list[SignalRow], documents: list[HandoffRow], pending: bool
) -> None:
    """Documents are in the order of the store, the last first."""
    assert SignalHistory(signals, documents).handoff_pending is pending


def level(level: float, arm: int = 0, thread: str = MAIN) -> SignalRow:
    return SignalRow("s", thread, 0, "level", 1.0, level, arm=arm)


@pytest.mark.parametrize("is_restored", [False, True])
def test_rearmed_levels_fire_again_only_below_the_highest_that_fired(is_restored: bool) -> None:
    history = SignalHistory([level(50.0), level(65.0)], [document(0, 2.0)] * is_restored)
    if not is_restored:
        assert history.fired(MAIN, 0, 70.0) == {50.0, 65.0}
        history.rearm(document(0, 2.0))
    assert history.fired(MAIN, 0, 70.0) == {65.0}
    assert history.fired(MAIN, 0, 60.0) == {60.0}
    assert history.fired(MAIN, 0, 70.0) == {60.0}


def test_draft_rearms_no_level() -> None:
    history = SignalHistory([level(50.0)], [document(0, 2.0, draft=True)])
    assert history.fired(MAIN, 0, 30.0) == {50.0}


def test_handoff_rearms_no_level_of_a_subagent() -> None:
    history = SignalHistory([level(50.0), level(65.0, thread="agent-1")])
    history.rearm(document(0, 2.0))
    assert (history.rearm_count(MAIN, 0), history.rearm_count("agent-1", 0)) == (1, 0)
    assert history.fired("agent-1", 0, 30.0) == {65.0}
    assert history.fired("agent-2", 0, 30.0) == frozenset()


def test_only_compactions_of_the_main_thread_count() -> None:
    history = SignalHistory([compacted(0, 5.0, thread="agent-1")])
    history.record(MAIN, [Signal("compacting", 0), Signal("cleared", 0), Signal("no data", 0)], 7.0)
    assert (history.compactions, history.compacted_at) == ([], 0.0)


def test_old_cycles_of_one_thread_are_dropped() -> None:
    """The memory does not grow with the cycles; other threads and late cycles stay known."""
    history = SignalHistory([level(50.0, thread="agent-1")])
    for cycle in range(MAX_CYCLES + 2):
        history.record(MAIN, [Signal("level", cycle, 50.0)], float(cycle))
        history.rearm(document(cycle, 2.0))
        history.record(MAIN, [Signal("compacted", cycle)], cycle * THRASH_WINDOW_S)
    first, last = 1, MAX_CYCLES + 1
    assert history.fired_levels("agent-1", 0) == [(50.0, 0)]
    assert [history.fired_levels(MAIN, cycle) for cycle in (0, first, last)] == [
        [],
        [(50.0, 0)],
        [(50.0, 0)],
    ]
    assert [history.rearm_count(MAIN, cycle) for cycle in (0, first, last)] == [0, 1, 1]
    signals = [Signal("compacted", cycle) for cycle in (0, first, last)]
    assert history.unfired(MAIN, signals) == signals[:1]
    assert history.compactions == [(last - back) * THRASH_WINDOW_S for back in (2, 1, 0)]


@pytest.mark.parametrize("is_restored", [False, True])
def test_rearmed_levels_of_calls_left_fire_again_only_after_more_calls_were_left(
    is_restored: bool,
) -> None:
    history = SignalHistory([level(65.0), level(-10.0)], [document(0, 2.0)] * is_restored)
    if not is_restored:
        assert history.fired(MAIN, 0, 70.0, 9) == {65.0, -10.0}
        history.rearm(document(0, 2.0))
    assert history.fired(MAIN, 0, 70.0, 9) == {65.0, -10.0}
    assert history.fired(MAIN, 0, 70.0, None) == {65.0, -10.0}
    assert history.fired(MAIN, 0, 70.0, 12) == {65.0, -12.0}
    assert history.fired(MAIN, 0, 60.0, 8) == {60.0, -12.0}
