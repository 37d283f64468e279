"""Moves pending messages from a cleared session to the session that continues it."""

from brimline.context.inbox import is_pending
from brimline.monitor.stable_ids import end_message_id
from brimline.store.base import MarkMessage, MoveMessage, PutSession, Store, Write
from brimline.store.rows import SessionRow


async def record_continuation(
    store: Store, session: str, other: str, at: float, now: float
) -> None:
    """Record that a session continues as another since a time, and forward its messages.

    A clear that is reported again has no effect if the session was resumed since.
    """
    if session == other:  # some clients keep the session when they clear
        return
    row = await store.session(session)
    if row is not None and row.became != other:
        at = max(at, row.seen_at)
        cleared = SessionRow(row.id, row.agent, row.seen_at, became=other, became_at=at)
        await store.write([PutSession(cleared), *_cancel_end_message(row, now)])
    elif row is not None and row.continued_as is None:
        return
    await forward_messages(store, session, other, now)


def _cancel_end_message(row: SessionRow, now: float) -> list[Write]:
    """Cancel the message to a parent that a session has ended, as clients report of a clear."""
    if row.parent is None or row.ended_at is None:
        return []
    id = end_message_id(row.parent, row.id, row.ended_at)
    return [MarkMessage(id, "cancelled", ("queued",), now)]


async def forward_messages(store: Store, session: str, to: str, now: float) -> None:
    """Move pending messages to another session, except those about a cycle of the old one.

    A message that was handed to a hook is moved when its delivery was not acknowledged in time.
    """
    writes: list[Write] = []
    for each in await store.pending_messages(session):
        if each.cycle is None and is_pending(each, now):
            if each.state == "handed":
                writes.append(MarkMessage(each.id, "queued", ("handed",), now, each.handed_at))
            writes.append(MoveMessage(each.id, to))
    if writes:
        await store.write(writes)
