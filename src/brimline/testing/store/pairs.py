"""Two stores on the same file: keys decide between them as between two callers."""

import asyncio

from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    MarkMessage,
    PutCompaction,
    PutSession,
    PutThread,
    QueueMessage,
    Store,
)
from brimline.testing.store.suite import (
    compaction,
    fire,
    message,
    pair_check,
    session,
    states,
    thread,
)

ROUNDS = 20


@pair_check
async def one_sees_what_the_other_wrote(one: Store, other: Store) -> None:
    """What one has written, the other reads; both have the same marks of changes."""
    await one.write([QueueMessage(message("m1"))])
    (mark, _), *_ = await other.changes()
    await other.write([QueueMessage(message("m2"))])
    assert [row.id for row in await one.messages()] == ["m1", "m2"]
    assert [id for _, id in await one.changes(mark)] == ["s"]


@pair_check
async def signal_of_both_fires_once(one: Store, other: Store) -> None:
    """A signal that both fire at the same time fires once, with one message."""
    for place in range(ROUNDS):
        writes = [[fire(f"{name} {place}", thread=str(place))] for name in ("one", "other")]
        effects = await asyncio.gather(one.write(writes[0]), other.write(writes[1]))
        assert sorted(effects) == [[False], [True]]
    assert len(await one.messages()) == len(await other.signals()) == ROUNDS


@pair_check
async def message_of_both_is_handed_out_once(one: Store, other: Store) -> None:
    """A message that both hand out at the same time is handed out once."""
    await one.write([QueueMessage(message(str(place))) for place in range(ROUNDS)])
    for place in range(ROUNDS):
        mark = MarkMessage(str(place), "handed", ("queued",), 1.0)
        effects = await asyncio.gather(one.write([mark]), other.write([mark]))
        assert sorted(effects) == [[False], [True]]
    assert set((await states(one)).values()) == {"handed"}


@pair_check
async def event_of_both_has_an_effect_once(one: Store, other: Store) -> None:
    """An event that both write has an effect once, with the writes after it."""
    for place in range(ROUNDS):
        writes = [EventKeys((str(place),), 1.0), QueueMessage(message(str(place)))]
        effects = await asyncio.gather(one.write(writes), other.write(writes))
        assert sorted(effects) == [[False, False], [True, True]]
        for store in (one, other):
            assert await store.known_events([str(place)]) == {str(place)}
    assert len(await other.messages()) == ROUNDS


@pair_check
async def later_thread_counts(one: Store, other: Store) -> None:
    """If both write a thread, the higher (cycle, seq) counts, not the last write."""
    for seq in range(ROUNDS):
        newer, older = PutThread(thread(1, seq)), PutThread(thread(0, seq))
        await asyncio.gather(one.write([newer]), other.write([older]))
        assert await other.threads() == [thread(1, seq)]


@pair_check
async def compaction_of_both_is_merged(one: Store, other: Store) -> None:
    """What each of the two reports of a compaction is stored; the same has an effect once."""
    for cycle in range(ROUNDS):
        before = PutCompaction(compaction(cycle=cycle, before=9, inferred=True))
        after = PutCompaction(compaction(cycle=cycle, after=3))
        writes = [one.write([before, after]), other.write([after])]
        effects = await asyncio.gather(*writes)
        assert sorted(effects) in ([[False], [True, True]], [[True], [True, False]])
        (stored,) = (await other.compactions())[cycle:]
        assert stored == compaction(cycle=cycle, before=9, after=3)


@pair_check
async def repeated_write_of_the_other_has_no_effect(one: Store, other: Store) -> None:
    """A write has no effect if the other wrote the same last."""
    put, newer = PutSession(session(title="a")), PutSession(session(title="b"))
    assert await one.write([put]) == [True]
    assert await other.write([put]) == [False]
    assert await other.write([newer]) == [True]
    assert await one.write([newer]) == [False]
    assert await one.write([put]) == [True]
    assert await other.session("s") == put.row


@pair_check
async def session_is_forgotten_once_by_both(one: Store, other: Store) -> None:
    """If both forget the same sessions, one has an effect."""
    for place in range(ROUNDS):
        await one.write([PutSession(session(str(place), seen_at=place))])
        forget = [ForgetSessions(place + 1.0)]
        effects = await asyncio.gather(one.write(forget), other.write(forget))
        assert sorted(effects) == [[False], [True]]
    assert await one.sessions() == await other.changes() == []


@pair_check
async def one_forgets_what_the_other_knows(one: Store, other: Store) -> None:
    """A session that one forgets is new for the other too, with marks that grow."""
    put = PutSession(session(title="a"))
    for _ in range(ROUNDS):
        assert await other.write([put, fire("m")]) == [True, True]
        ((mark, _),) = await one.changes()
        assert await one.write([ForgetSessions(9.0)]) == [True]
        assert await other.session("s") is None
        assert await other.pending_messages("s") == []
        assert await other.write([put]) == [True]
        assert [id for _, id in await other.changes(mark)] == ["s"]
        await one.write([ForgetSessions(9.0)])
