"""Signals and messages: fired once, handed out in order, cancelled, delivered once."""

import asyncio

import msgspec

from brimline.context.inbox import Message
from brimline.store.base import (
    CancelMessages,
    MarkMessage,
    MoveMessage,
    PutCall,
    PutHandoff,
    PutSession,
    QueueMessage,
    RecordSignal,
    Store,
    UseHandoff,
)
from brimline.store.rows import HandoffRow, SessionRow, SignalRow
from brimline.testing.store.suite import call, check, fire, message, signal, states


@check
async def signal_fires_once(store: Store) -> None:
    """A signal that has fired has no effect again, and its messages are not queued."""
    first, again = fire("m1"), fire("m2")
    assert await store.write([first, again]) == [True, False]
    assert await store.write([again]) == [False]
    assert await store.signals("s") == [first.signal]
    assert await states(store) == {"m1": "queued"}


@check
async def signal_is_identified_by_its_key(store: Store) -> None:
    """Session, thread, cycle, kind, level and arm identify a signal; they are listed in order."""
    rows = [
        signal(),
        signal(session="t"),
        signal(thread="agent-1"),
        signal(cycle=1),
        signal(kind="compacted"),
        signal(level=65.5),
        signal(arm=1),
    ]
    assert await store.write([RecordSignal(row) for row in rows]) == [True] * len(rows)
    assert await store.write([RecordSignal(row) for row in rows]) == [False] * len(rows)
    assert await store.signals() == rows
    assert await store.signals("t") == [rows[1]]


@check
async def signal_is_stored_with_all_fields(store: Store) -> None:
    """Every field of a signal and of a message is stored."""
    row = SignalRow("s", "main", 3, "level", 1.5, 65.0, "text", 130_000, 65.1, arm=2)
    text = Message("m", "s", "t", 1.5, 0, "urgent", "user", "main", 3, 65.0, 9.5, "handed", 2.5,
                   blocks_stop=True)  # fmt: skip
    await store.write([RecordSignal(row, (text,))])
    assert await store.signals() == [row]
    (stored,) = await store.messages()
    assert stored == msgspec.structs.replace(text, order=stored.order)


@check
async def signal_fires_once_for_concurrent_writers(store: Store) -> None:
    """If many fire the same signal at the same time, one has an effect."""
    fires = [store.write([fire(f"m{place}")]) for place in range(20)]
    effects = await asyncio.gather(*fires)
    assert sorted(effects) == [[False]] * 19 + [[True]]
    (winner,) = await store.messages()
    assert effects[int(winner.id[1:])] == [True]


@check
async def message_is_queued_once(store: Store) -> None:
    """A message is queued once by its id, and keeps its first text and place."""
    again = Message("m1", "s", "another text", 9.0)
    writes = [QueueMessage(message("m1")), QueueMessage(message("m2")), QueueMessage(again)]
    assert await store.write(writes) == [True, True, False]
    stored = await store.messages("s")
    assert [row.text for row in stored] == ["text of m1", "text of m2"]


@check
async def messages_are_listed_in_order(store: Store) -> None:
    """The store sets the order, which grows over all sessions; that of the message is ignored."""
    given = Message("m3", "s", "t", 0.5, order=-7)
    await store.write(
        [QueueMessage(message("m1")), RecordSignal(signal(), (message("m2", "t"), given))]
    )
    await store.write([QueueMessage(message("m0"))])
    stored = await store.messages()
    assert [row.id for row in stored] == ["m1", "m2", "m3", "m0"]
    orders = [row.order for row in stored]
    assert orders == sorted(set(orders))
    assert [row.id for row in await store.messages("t")] == ["m2"]


@check
async def pending_messages_are_queued_or_handed(store: Store) -> None:
    """Messages that are queued or handed are pending, in their order; others are not."""
    states_after = ("handed", "delivered", "queued", "cancelled", "expired", "handed")
    await store.write([QueueMessage(message(str(place))) for place in range(len(states_after))])
    await store.write([QueueMessage(message("other", session="t"))])
    await store.write(
        [
            MarkMessage(str(place), state, ("queued",), 2.0)
            for place, state in enumerate(states_after)
        ]
    )
    assert [row.id for row in await store.pending_messages("s")] == ["0", "2", "5"]
    assert [row.id for row in await store.pending_messages()] == ["0", "2", "5", "other"]
    assert await store.pending_messages("none") == []
    by_id = {row.id: row for row in await store.messages()}
    assert all(row == by_id[row.id] for row in await store.pending_messages())


@check
async def end_of_cycle_cancels_its_messages(store: Store) -> None:
    """The level messages of a thread up to a cycle are cancelled, no others."""
    rows = [
        message("now", cycle=1),
        message("before", cycle=0),
        message("next", cycle=2),
        message("no cycle", cycle=None),
        message("other thread", thread="agent-1"),
        message("no thread", thread=None),
        message("other session", session="t"),
    ]
    await store.write([QueueMessage(row) for row in rows])
    assert await store.write([CancelMessages("s", "main", 1)] * 2) == [True, False]
    cancelled = {id for id, state in (await states(store)).items() if state == "cancelled"}
    assert cancelled == {"now", "before"}


@check
async def end_of_cycle_cancels_handed_messages(store: Store) -> None:
    """A message that was handed out is cancelled, one that was delivered or expired is not."""
    ids = ("handed", "delivered", "expired")
    await store.write([QueueMessage(message(id)) for id in ids])
    await store.write([MarkMessage(id, id, ("queued",), 2.0) for id in ids])
    assert await store.write([CancelMessages("s", "main", 0)]) == [True]
    assert await states(store) == {
        "handed": "cancelled",
        "delivered": "delivered",
        "expired": "expired",
    }
    assert await store.write([MarkMessage("handed", "delivered", ("handed",), 3.0)]) == [False]


@check
async def mark_stores_the_text_that_the_agent_gets(store: Store) -> None:
    """A message has the text of its last mark with one; a mark without a text keeps it."""
    await store.write([QueueMessage(message("m"))])
    hand = MarkMessage("m", "handed", ("queued",), 5.0, text="as handed out")
    assert await store.write([hand, MarkMessage("m", "delivered", ("handed",), 6.0)])
    (stored,) = await store.messages()
    assert stored.text == "as handed out"


@check
async def mark_has_an_effect_only_from_named_states(store: Store) -> None:
    """A message changes its state only from those that are named; `handed_at` stays."""
    await store.write([QueueMessage(message("m"))])
    hand = MarkMessage("m", "handed", ("queued",), 5.0)
    deliver = MarkMessage("m", "delivered", ("handed",), 6.0)
    assert await store.write([deliver, hand, hand, deliver]) == [False, True, False, True]
    without_states = MarkMessage("m", "handed", (), 7.0)
    unknown = MarkMessage("none", "handed", ("queued",), 7.0)
    assert await store.write([without_states, unknown]) == [False, False]
    (stored,) = await store.messages()
    assert (stored.state, stored.handed_at) == ("delivered", 5.0)


@check
async def message_is_handed_out_once_for_concurrent_writers(store: Store) -> None:
    """If many hand out the same message at the same time, one has an effect."""
    await store.write([QueueMessage(message("m"))])
    marks = [MarkMessage("m", "handed", ("queued",), float(at)) for at in range(20)]
    effects = await asyncio.gather(*(store.write([mark]) for mark in marks))
    assert sorted(effects) == [[False]] * 19 + [[True]]
    (stored,) = await store.messages()
    assert effects[int(stored.handed_at or 0)] == [True]


@check
async def message_is_handed_out_again_once(store: Store) -> None:
    """Of two that saw the same `handed_at`, one hands the message out again."""
    await store.write([QueueMessage(message("m")), MarkMessage("m", "handed", ("queued",), 1.1)])
    again = [
        MarkMessage("m", "handed", ("queued", "handed"), at, handed_at=1.1) for at in (40.0, 41.0)
    ]
    assert await store.write(again) == [True, False]
    (stored,) = await store.messages()
    assert stored.handed_at == 40.0
    unlike = MarkMessage("m", "queued", ("handed",), 42.0, handed_at=1.1)
    assert await store.write([unlike]) == [False]


@check
async def list_is_applied_in_order(store: Store) -> None:
    """A later write of a list sees the effect of an earlier one."""
    writes = [
        fire("m1"),
        CancelMessages("s", "main", 0),
        fire("m1", thread="agent-1"),
        QueueMessage(message("m1")),
    ]
    assert await store.write(writes) == [True, True, True, False]
    assert await states(store) == {"m1": "cancelled"}


@check
async def lists_do_not_mix(store: Store) -> None:
    """Lists that are written at the same time are applied one after the other."""
    lists = [[QueueMessage(message(f"{name}{place}")) for place in range(5)] for name in "abcdefgh"]
    await asyncio.gather(*(store.write(writes) for writes in lists))
    names = [row.id[0] for row in await store.messages()]
    assert [names[start] * 5 for start in range(0, 40, 5)] == [
        "".join(names[start : start + 5]) for start in range(0, 40, 5)
    ]


@check
async def message_marks_its_own_session_as_changed(store: Store) -> None:
    """A message changes the session that gets it, not that of its signal; so do its marks."""
    await store.write([RecordSignal(signal(), (message("m", session="parent"),))])
    assert {id for _, id in await store.changes()} == {"s", "parent"}
    for write in (
        MarkMessage("m", "handed", ("queued",), 2.0),
        CancelMessages("parent", "main", 0),
    ):
        before = (await store.changes())[-1][0]
        await store.write([PutCall(call("c", 1)), write])
        assert "parent" in {id for _, id in await store.changes(before)}


@check
async def message_is_moved_to_another_session(store: Store) -> None:
    """It is pending for another session, in its order, otherwise as it was; both change."""
    await store.write(
        [QueueMessage(message("m1")), QueueMessage(message("m2")), QueueMessage(message("m3"))]
    )
    (mark, _), *_ = reversed(await store.changes())
    (first, *_) = await store.messages()
    assert await store.write([MoveMessage("m2", "t"), MoveMessage("m1", "t")]) == [True, True]
    assert [row.id for row in await store.pending_messages("t")] == ["m1", "m2"]
    assert [row.id for row in await store.pending_messages("s")] == ["m3"]
    assert (await store.messages("t"))[0] == msgspec.structs.replace(first, session="t")
    assert {id for _, id in await store.changes(mark)} == {"s", "t"}


@check
async def message_is_not_moved_unless_queued(store: Store) -> None:
    """A message that is there already, not queued or unknown stays as it is."""
    await store.write([QueueMessage(message("m1")), QueueMessage(message("m2"))])
    await store.write([MarkMessage("m1", "handed", ("queued",), 2.0)])
    before = await store.changes()
    moves = [MoveMessage("m1", "t"), MoveMessage("m2", "s"), MoveMessage("none", "t")]
    assert await store.write(moves) == [False] * 3
    assert await store.messages("t") == []
    assert await store.changes() == before


@check
async def messages_of_a_machine_are_those_of_its_sessions(store: Store) -> None:
    """Pending messages and unused documents of people are found by the machine of the session."""
    machines = {"a": "m1", "b": "m2", "c": None}
    sessions = [SessionRow(id, "claude", 1.0, machine=each) for id, each in machines.items()]
    await store.write([PutSession(row) for row in sessions])
    sent = [message(f"{id}{n}", session=id, sender="user") for id in "abc" for n in "12"]
    await store.write([QueueMessage(each) for each in [*sent, message("level", session="a")]])
    await store.write([MarkMessage("a1", "handed", ("queued",), 1.0)])
    await store.write([MarkMessage("b1", "delivered", ("queued",), 1.0)])
    pending = [(await store.machine_deliveries(machine, 0.0))[0] for machine in ("m1", "m2")]
    assert [[row.id for row in rows] for rows in pending] == [["a1", "a2"], ["b2"]]
    documents = [
        HandoffRow(id, of, at, "/h.md", "00", text, "user", 0, None)
        for id, of, at, text in (
            ("old", "a", 1.0, "text"),
            ("head", "a", 5.0, ""),
            ("one", "a", 5.0, "text"),
            ("used", "a", 5.0, "text"),
            ("two", "a", 5.0, "text"),
            ("other", "b", 5.0, "text"),
        )
    ]
    await store.write([*map(PutHandoff, documents), UseHandoff("used", 6.0)])
    assert (await store.machine_deliveries("m1", 5.0))[1] == [documents[2], documents[4]]
    assert await store.machine_deliveries("m3", 0.0) == ([], [])


@check
async def machines_that_ask_at_once_get_their_own_deliveries(store: Store) -> None:
    """It gets documents also if no message waits, and none that is older than it asks for."""
    ids = ("message", "document", "neither")
    await store.write([PutSession(SessionRow(id, "claude", 1.0, machine=id)) for id in ids])
    queued = message("m", session="message", sender="user")
    document = HandoffRow("d", "document", 5.0, "/h.md", "00", "text", "user", 0, None)
    await store.write([QueueMessage(queued), PutHandoff(document)])
    asked = [*((id, 5.0) for id in ids), ("document", 6.0), ("document", 4.0)]
    answers = await asyncio.gather(*(store.machine_deliveries(*each) for each in asked))
    [stored] = await store.messages("message")
    assert [messages for messages, _ in answers] == [[stored], [], [], [], []]
    assert [documents for _, documents in answers] == [[], [document], [], [], [document]]
