"""Whether a thread compacts again and again, without room for work between two compactions."""

from brimline.context.tracker.state import Compaction, CompactionLoop, Thread

# Claude Code 2.1.325 itself gives up after three compactions within 3 turns each. In 68 recorded
# sessions with 35 compactions, no two had fewer than 13 calls between them.
LOOP_CALLS = 5


def find_loop(thread: Thread) -> CompactionLoop | None:
    """Return the loop that a thread is in; None after LOOP_CALLS calls without a compaction."""
    in_row = find_compactions_in_row(thread)
    return in_row if in_row is not None and in_row.compactions > 1 else None


def find_compactions_in_row(thread: Thread, before: int | None = None) -> CompactionLoop | None:
    """Return the last compactions in a row, each within LOOP_CALLS calls of the one before.

    With `before`, those of them that are among the first `before` in memory, or were dropped.
    """
    in_row: list[Compaction] = []
    next_at, cleared_at = thread.call_count, max(thread.clears, default=-1)
    dropped = thread.dropped.loop if thread.compactions else None
    for each in reversed(thread.compactions):
        is_by_user = each.inferred or each.trigger == "manual" or each.calls <= cleared_at
        if is_by_user or next_at - each.calls > LOOP_CALLS:
            dropped = None
            break
        in_row.append(each)
        next_at = each.calls
    if before is not None:
        in_row = in_row[len(thread.compactions) - before :]
    count = len(in_row) + (dropped.compactions if dropped is not None else 0)
    if not count:
        return None
    kept = next((each.after for each in in_row if each.after is not None), None)
    return CompactionLoop(count, dropped.kept if kept is None and dropped is not None else kept)
