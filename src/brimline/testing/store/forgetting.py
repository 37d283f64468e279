"""Sessions that are forgotten: with all that is theirs, and nothing of anybody else's."""

from brimline.store.base import (
    EventKey,
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


def whole(id: str, seen_at: float) -> list[Write]:
    """One of everything, for a session."""
    return [
        PutSession(session(id, seen_at)),
        PutThread(thread(3, 7, session=id)),
        PutCall(call("c", 1, session=id)),
        PutCompaction(compaction(session=id)),
        RecordSignal(signal(session=id), (message(f"warning to {id}", session=id),)),
        QueueMessage(message(f"message to {id}", session=id)),
        PutHandoff(handoff(f"handoff of {id}", session=id)),
    ]


async def held(store: Store, id: str) -> list[int]:
    """How much there is of a session, of each kind."""
    rows = (
        await store.threads(id),
        await store.calls(id),
        await store.compactions(id),
        await store.signals(id),
        await store.messages(id),
        await store.pending_messages(id),
        await store.handoffs(id),
        await store.last_handoffs(id),
    )
    known = int(await store.session(id) is not None)
    return [known, *map(len, rows)]


NOTHING = [0] * 9
ALL = [1, 1, 1, 1, 1, 2, 2, 1, 1]


@check
async def forgotten_with_all_that_is_theirs(store: Store) -> None:
    """Of a session that was last seen before the time nothing is left; of one seen then, all is."""
    for id, seen_at in (("old", 1.0), ("now", 5.0), ("older", 0.5)):
        await store.write(whole(id, seen_at))
    assert await store.write([ForgetSessions(5.0)]) == [True]
    assert await held(store, "old") == await held(store, "older") == NOTHING
    assert await held(store, "now") == ALL
    assert [row.id for row in await store.sessions()] == ["now"]


@check
async def forgotten_once(store: Store) -> None:
    """Where no session was last seen before the time nothing happens."""
    await store.write(whole("old", 1.0))
    assert await store.write([ForgetSessions(1.0), ForgetSessions(2.0), ForgetSessions(2.0)]) == [
        False,
        True,
        False,
    ]
    assert await store.write([ForgetSessions(2.0)]) == [False]


@check
async def not_forgotten_where_never_seen(store: Store) -> None:
    """What came before its session was heard of waits for it."""
    await store.write(whole("s", 1.0)[1:])
    assert await store.write([ForgetSessions(9.0)]) == [False]
    assert await held(store, "s") == [0, *ALL[1:]]


@check
async def forgotten_without_a_trace_among_changes(store: Store) -> None:
    """A forgotten session is no change any more, also where the same list told of it."""
    await store.write(whole("now", 5.0))
    told = await store.changes()
    await store.write([*whole("old", 1.0), ForgetSessions(5.0)])
    assert await store.changes() == told
    await store.write(whole("old", 1.0))
    await store.write([ForgetSessions(5.0)])
    assert await store.changes() == told


@check
async def marks_go_on(store: Store) -> None:
    """No mark is given twice: who goes on from that of a forgotten session misses nothing."""
    await store.write(whole("old", 1.0))
    ((last, _),) = await store.changes()
    await store.write([ForgetSessions(5.0)])
    await store.write([PutSession(session("new", 6.0))])
    assert [id for _, id in await store.changes(last)] == ["new"]
    await store.write([ForgetSessions(7.0), PutSession(session("newer", 8.0))])
    assert [id for _, id in await store.changes(last + 1)] == ["newer"]


@check
async def messages_go_on(store: Store) -> None:
    """The order of messages grows on, also where the last one was forgotten."""
    await store.write(whole("now", 9.0))
    await store.write(whole("old", 1.0))
    last = (await store.messages())[-1].order
    await store.write([ForgetSessions(5.0), QueueMessage(message("m", session="now"))])
    assert (await store.messages())[-1].order > last


@check
async def events_are_not_forgotten(store: Store) -> None:
    """An event that was brought by a session that is forgotten has no effect again."""
    await store.write([EventKey("e", 1.0), *whole("old", 1.0), ForgetSessions(5.0)])
    assert await store.write([EventKey("e", 9.0), *whole("old", 9.0)]) == [False] * 8
    assert await held(store, "old") == NOTHING
    assert await store.has_event("e") is True


@check
async def session_that_comes_back_begins_anew(store: Store) -> None:
    """Nothing of before is in the way: cycles, signals and ids are free again."""
    await store.write([PutSession(session("s", 3.0, title="before")), *whole("s", 3.0)])
    await store.write(
        [MarkMessage("message to s", "delivered", ("queued",), 4.0), ForgetSessions(5.0)]
    )
    assert await store.write([PutThread(thread(0, 0)), *whole("s", 2.0)]) == [True] * 8
    assert await store.session("s") == session("s", 2.0)
    assert await held(store, "s") == ALL
    assert [id for _, id in await store.changes()] == ["s"]
