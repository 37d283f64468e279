"""Which signals have fired, and whether a document is pending, as restored from the store."""

import pytest

from brimline.events import MAIN
from brimline.monitor.signal_history import SignalHistory
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
