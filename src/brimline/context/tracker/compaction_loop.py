"""Whether a thread compacts again and again, without room for work between two compactions."""

import msgspec

from brimline.context.tracker.state import Compaction, Thread

# Claude Code 2.1.325 itself gives up after three compactions within 3 turns each. In 68 recorded
# sessions with 35 compactions, no two had fewer than 13 calls between them.
LOOP_CALLS = 5


class CompactionLoop(msgspec.Struct, frozen=True):
    """Compactions by the client in a row, each within LOOP_CALLS calls of the one before.

    `kept` is what stayed after the last of them; None if that is not known.
    """

    compactions: int
    kept: int | None = None


def find_loop(thread: Thread) -> CompactionLoop | None:
    """Return the loop that a thread is in; None after LOOP_CALLS calls without a compaction."""
    in_row: list[Compaction] = []
    next_at, cleared_at = thread.call_count, max(thread.clears, default=-1)
    for each in reversed(thread.compactions):
        if each.inferred or each.trigger == "manual" or each.calls <= cleared_at:
            break
        if next_at - each.calls > LOOP_CALLS:
            break
        in_row.append(each)
        next_at = each.calls
    if len(in_row) < 2:
        return None
    kept = (each.after for each in in_row if each.after is not None)
    return CompactionLoop(len(in_row), next(kept, None))
