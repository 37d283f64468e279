"""A session that was cleared goes on as another one: what waits for it is that one's."""

from brimline.inbox import is_pending
from brimline.store.base import MarkMessage, MoveMessage, PutSession, Store, Write
from brimline.store.rows import SessionRow


async def record_continuation(
    store: Store, session: str, other: str, at: float, now: float
) -> None:
    """Keep that a session went on as another at a time, and have that one told what waits.

    A client that clears may also keep the session that it has; and what is told again may be long
    past.
    """
    if session == other:
        return
    row = await store.session(session)
    if row is not None and row.became != other:
        at = max(at, row.seen_at)
        cleared = SessionRow(row.id, row.agent, row.seen_at, became=other, became_at=at)
        await store.write([PutSession(cleared)])
    elif row is not None and row.continued_as is None:
        return
    await forward_messages(store, session, other, now)


async def forward_messages(store: Store, session: str, to: str, now: float) -> None:
    """Have what waits for a session wait for the one that it became.

    What belongs to a cycle of the old one, a level's text, is no news to the new one. What a hook
    was given may still be passed on: it follows when that took too long.
    """
    writes: list[Write] = []
    for message in await store.pending_messages(session):
        if message.cycle is None and is_pending(message, now):
            if message.state == "handed":
                writes.append(
                    MarkMessage(message.id, "queued", ("handed",), now, message.handed_at)
                )
            writes.append(MoveMessage(message.id, to))
    if writes:
        await store.write(writes)
