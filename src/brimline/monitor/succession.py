"""A session that was cleared goes on as another one: what waits for it is that one's."""

from msgspec.structs import replace

from brimline.store.base import Mark, PutSession, Queue, Store, Write
from brimline.store.rows import SessionRow


async def go_on(store: Store, session: str, other: str, at: float) -> None:
    """Keep that a session goes on as another since then, and have that one told what waits.

    A client that clears may also keep the session that it has.
    """
    if session == other:
        return
    row = await store.session(session)
    if row is not None:
        ended = SessionRow(row.id, row.agent, at, ended_at=at, became=other)
        await store.write([PutSession(ended)])
    await forward(store, session, other, at)


async def forward(store: Store, session: str, to: str, now: float) -> None:
    """Have what waits for a session wait for the one that it became.

    What belongs to a cycle of the old one, a level's text, is no news to the new one.
    """
    writes: list[Write] = []
    for message in await store.waiting(session):
        if message.cycle is None:
            new = replace(message, id=f"{message.id}>{to}", session=to, state="queued")
            writes += [Queue(new), Mark(message.id, "cancelled", ("queued", "handed"), now)]
    if writes:
        await store.write(writes)
