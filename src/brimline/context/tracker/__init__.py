"""The state of a session, folded from its events, and the readings of its threads."""

from brimline.context.tracker.call_history import CallHistory, decode_calls, encode_calls
from brimline.context.tracker.compaction_loop import find_loop
from brimline.context.tracker.reading import (
    Compared,
    Reading,
    ReadingState,
    client_shows,
    compare_figures,
    read,
    resolve_context,
)
from brimline.context.tracker.retention import (
    add_up_old_spendings,
    drop_old_calls,
    drop_stored_calls,
    refers_to_dropped_call,
)
from brimline.context.tracker.session_fold import SYNTHETIC, fold
from brimline.context.tracker.state import (
    ChangeKind,
    Compaction,
    CompactionLoop,
    PromptChange,
    Session,
    SpendingKey,
    Thread,
    context_threads,
    held_at_trigger,
    main_thread,
    merge_sessions,
    spending_key,
    total,
)

__all__ = [
    "SYNTHETIC",
    "CallHistory",
    "ChangeKind",
    "Compaction",
    "CompactionLoop",
    "Compared",
    "PromptChange",
    "Reading",
    "ReadingState",
    "Session",
    "SpendingKey",
    "Thread",
    "add_up_old_spendings",
    "client_shows",
    "compare_figures",
    "context_threads",
    "decode_calls",
    "drop_old_calls",
    "drop_stored_calls",
    "encode_calls",
    "find_loop",
    "fold",
    "held_at_trigger",
    "main_thread",
    "merge_sessions",
    "read",
    "refers_to_dropped_call",
    "resolve_context",
    "spending_key",
    "total",
]
