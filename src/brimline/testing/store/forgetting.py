"""Old sessions are deleted with everything that belongs to them, and nothing else."""

import msgspec

from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    MarkMessage,
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    Store,
    Write,
)
from brimline.testing.store.suite import (
    call,
    check,
    compaction,
    handoff,
    message,
    session,
    signal,
    thread,
)


def all_writes(id: str, seen_at: float) -> list[Write]:
    """Return one write of each kind for a session."""
    return [
        PutSession(session(id, seen_at)),
        PutThread(thread(3, 7, session=id)),
        PutCall(msgspec.structs.replace(call("c", 1, session=id), cost=0.5)),
        PutCompaction(compaction(session=id)),
        RecordSignal(signal(session=id), (message(f"warning to {id}", session=id),)),
        QueueMessage(message(f"message to {id}", session=id)),
        PutHandoff(handoff(f"handoff of {id}", session=id)),
    ]


async def count_rows(store: Store, id: str) -> list[int]:
    """Return the number of rows of a session, of each kind."""
    rows = (
        await store.threads(id),
        await store.calls(id),
        await store.compactions(id),
        await store.signals(id),
        await store.messages(id),
        await store.pending_messages(id),
        await store.handoffs(id),
        await store.last_handoffs(id),
        await store.costs(id),
    )
    known = int(await store.session(id) is not None)
    return [known, *map(len, rows)]


NOTHING = [0] * 10
ALL = [1, 1, 1, 1, 1, 2, 2, 1, 1, 1]


@check
async def session_is_forgotten_with_all_its_rows(store: Store) -> None:
    """A session that was last seen before the time is deleted, one seen at the time is not."""
    for id, seen_at in (("old", 1.0), ("now", 5.0), ("older", 0.5)):
        await store.write(all_writes(id, seen_at))
    assert await store.write([ForgetSessions(5.0)]) == [True]
    assert await count_rows(store, "old") == await count_rows(store, "older") == NOTHING
    assert await count_rows(store, "now") == ALL
    assert [row.id for row in await store.sessions()] == ["now"]


@check
async def forgetting_has_an_effect_once(store: Store) -> None:
    """If no session was last seen before the time, nothing happens."""
    await store.write(all_writes("old", 1.0))
    effects = await store.write([ForgetSessions(at) for at in (1.0, 2.0, 2.0)])
    assert effects == [False, True, False]
    assert await store.write([ForgetSessions(2.0)]) == [False]


@check
async def rows_without_a_session_are_not_forgotten(store: Store) -> None:
    """Rows that were stored before their session stay."""
    await store.write(all_writes("s", 1.0)[1:])
    assert await store.write([ForgetSessions(9.0)]) == [False]
    assert await count_rows(store, "s") == [0, *ALL[1:]]


@check
async def forgotten_session_is_not_among_changes(store: Store) -> None:
    """A forgotten session is no longer a change, even if the same list wrote it."""
    await store.write(all_writes("now", 5.0))
    changes = await store.changes()
    await store.write([*all_writes("old", 1.0), ForgetSessions(5.0)])
    assert await store.changes() == changes
    await store.write(all_writes("old", 1.0))
    await store.write([ForgetSessions(5.0)])
    assert await store.changes() == changes


@check
async def marks_are_never_used_twice(store: Store) -> None:
    """A stream that continues from the mark of a forgotten session misses nothing."""
    await store.write(all_writes("old", 1.0))
    ((last, _),) = await store.changes()
    await store.write([ForgetSessions(5.0)])
    await store.write([PutSession(session("new", 6.0))])
    assert [id for _, id in await store.changes(last)] == ["new"]
    await store.write([ForgetSessions(7.0), PutSession(session("newer", 8.0))])
    assert [id for _, id in await store.changes(last + 1)] == ["newer"]


@check
async def message_order_grows_after_forgetting(store: Store) -> None:
    """The order of messages grows, even if the last one was deleted."""
    await store.write(all_writes("now", 9.0))
    await store.write(all_writes("old", 1.0))
    last = (await store.messages())[-1].order
    await store.write([ForgetSessions(5.0), QueueMessage(message("m", session="now"))])
    assert (await store.messages())[-1].order > last


@check
async def events_are_not_forgotten(store: Store) -> None:
    """An event of a forgotten session has no effect when it comes again."""
    await store.write([EventKeys(("e",), 1.0), *all_writes("old", 1.0), ForgetSessions(5.0)])
    assert await store.write([EventKeys(("e",), 9.0), *all_writes("old", 9.0)]) == [False] * 8
    assert await count_rows(store, "old") == NOTHING
    assert await store.known_events(["e"]) == {"e"}


@check
async def forgotten_session_starts_from_nothing(store: Store) -> None:
    """A session that comes back may use all cycles, signals and ids again."""
    await store.write([PutSession(session("s", 3.0, title="before")), *all_writes("s", 3.0)])
    await store.write(
        [MarkMessage("message to s", "delivered", ("queued",), 4.0), ForgetSessions(5.0)]
    )
    assert await store.write([PutThread(thread(0, 0)), *all_writes("s", 2.0)]) == [True] * 8
    assert await store.session("s") == session("s", 2.0)
    assert await count_rows(store, "s") == ALL
    assert [id for _, id in await store.changes()] == ["s"]
