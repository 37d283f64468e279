"""Sessions, threads, calls, handoffs, events and changes."""

import asyncio

import msgspec

from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    PutCall,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    RecordSignal,
    SetReceive,
    Store,
    UseHandoff,
)
from brimline.store.rows import SPENDINGS, CallRow, HandoffRow, SessionRow, ThreadRow
from brimline.testing.store.suite import call, check, handoff, session, signal, thread

TEXT = "Grüße, 世界 🙂\n\t\"quoted\" 'too'; DROP TABLE sessions; -- %s ? {0} \\ \x01"


@check
async def new_store_is_empty(store: Store) -> None:
    """A new store holds nothing, and writing nothing is allowed."""
    assert await store.write([]) == []
    assert await store.sessions() == await store.threads() == await store.signals() == []
    assert await store.messages() == await store.calls("s") == await store.handoffs("s") == []
    assert (
        await store.compactions()
        == await store.pending_messages()
        == await store.last_handoffs()
        == []
    )
    assert await store.write([ForgetSessions(9.0)]) == [False]
    assert await store.session("s") is None
    assert await store.costs() == {}
    assert await store.changes() == []


@check
async def session_is_stored_with_all_fields(store: Store) -> None:
    """Every field of a session is stored, any text unchanged."""
    fields = ("h", "/p", "m", "1.0", TEXT, "/t", "other", 99.5, "next", 98.5, TEXT, "sm-1")
    fields = (*fields, "ada", "tools", "m-1", "all")
    row = SessionRow(TEXT, "codex", 1.25, *fields)
    assert await store.write([PutSession(row)]) == [True]
    assert await store.session(TEXT) == row
    assert await store.sessions() == [row]


@check
async def sessions_of_a_machine_get_what_it_accepts(store: Store) -> None:
    """Those of other machines do not, and each that changes is among the changes."""
    machines = {"a": "m1", "b": "m1", "c": "m2", "d": None}
    await store.write(
        [PutSession(SessionRow(id, "claude", 1.0, machine=each)) for id, each in machines.items()]
    )
    await store.write([PutSession(SessionRow("b", "claude", 1.0, receive="all"))])
    (mark, _) = (await store.changes())[-1]
    assert await store.write([SetReceive("m1", "all"), SetReceive("m3", "all")]) == [True, False]
    receive = {row.id: row.receive for row in await store.sessions()}
    assert receive == {"a": "all", "b": "all", "c": None, "d": None}
    assert [id for _, id in await store.changes(mark)] == ["a"]
    assert await store.write([SetReceive("m1", "all"), SetReceive("m1", "off")]) == [False, True]
    assert sorted(id for _, id in await store.changes(mark)) == ["a", "b"]


@check
async def session_is_filled_in(store: Store) -> None:
    """A field that is None leaves the stored value; any other value replaces it."""
    await store.write([PutSession(session(model="old", title="a title"))])
    assert await store.write([PutSession(session(model="new", project="/p"))]) == [True]
    assert await store.session("s") == session(model="new", title="a title", project="/p")


@check
async def fork_stays_one(store: Store) -> None:
    """A row of a session that does not say that it is a fork leaves the stored mark."""
    forked = msgspec.structs.replace(session(), is_fork=True)
    assert await store.write([PutSession(session()), PutSession(forked)]) == [True, True]
    assert await store.write([PutSession(forked), PutSession(session())]) == [False, False]
    assert await store.session("s") == forked


@check
async def seen_at_never_goes_back(store: Store) -> None:
    """`seen_at` does not go back; the other fields of a late report count."""
    await store.write([PutSession(session(seen_at=5.0))])
    assert await store.write([PutSession(session(seen_at=3.0, model="m"))]) == [True]
    assert await store.write([PutSession(session(seen_at=7.0))]) == [True]
    assert await store.session("s") == session(seen_at=7.0, model="m")


@check
async def session_with_nothing_new_has_no_effect(store: Store) -> None:
    """A session with nothing new has no effect and is no change, in one list or later."""
    put = PutSession(session(title=""))
    assert await store.write([put, put]) == [True, False]
    changes = await store.changes()
    assert await store.write([put]) == [False]
    assert await store.write([put, PutSession(session(seen_at=0.5))]) == [False, False]
    assert await store.changes() == changes
    assert await store.session("s") == put.row


@check
async def sessions_are_listed_last_seen_first(store: Store) -> None:
    """Sessions are listed with the last seen first."""
    seen = {"a": 2.0, "b": 9.0, "c": 5.0}
    await store.write([PutSession(session(id, at)) for id, at in seen.items()])
    assert [row.id for row in await store.sessions()] == ["b", "c", "a"]


@check
async def thread_is_stored_with_all_fields(store: Store) -> None:
    """Every field of a thread is stored, also before its session is."""
    fields = (1.5, 2, 3, 200_000, "set", 170_000, "learned", 0.1, 120.5, 0.2, 8, 9, "m", 12, 3)
    fields = (*fields, "client", "learned", TEXT)
    row = ThreadRow("s", "main", 2, 7, "hook", "measured", *fields)
    bare = ThreadRow("s", "agent-1", 0, 0, "hook", "unknown")
    other = ThreadRow("t", "main", 0, 0, "hook", "unknown")
    assert await store.write([PutThread(one) for one in (row, other, bare)]) == [True] * 3
    assert await store.threads("s") == [bare, row]
    assert await store.threads() == [bare, row, other]


@check
async def thread_is_ordered_by_cycle_and_seq(store: Store) -> None:
    """The higher (cycle, seq) counts, not the clock or the order of arrival."""
    wanted = thread(cycle=1, seq=2, sent=5, at=1.0)
    assert await store.write([PutThread(wanted)]) == [True]
    for late in (thread(1, 1, at=9.0), thread(0, 99, at=9.0), thread(1, 2, sent=6, at=9.0)):
        assert await store.write([PutThread(late)]) == [False]
    assert await store.threads("s") == [wanted]
    assert await store.write([PutThread(thread(2, 0)), PutThread(thread(2, 1))]) == [True, True]
    assert await store.threads("s") == [thread(2, 1)]


@check
async def call_is_stored_with_all_fields(store: Store) -> None:
    """Every field of a call is stored, also large counts."""
    row = CallRow("s", "main", TEXT, 2**53 + 1, 0, 1, 2**40, 3, 4, "m", 1.5, 3, 0.25, 0.125)
    await store.write([PutCall(row)])
    assert await store.calls("s", "main") == [row]


@check
async def copied_calls_are_in_the_sums_of_another_session(store: Store) -> None:
    """A call of the session itself is no copy, nor is one that another session has copied."""
    own, later, copied = call(TEXT, 0), call("later", 1), call("copied", 2)
    copied = msgspec.structs.replace(copied, counted=False)
    spent = msgspec.structs.replace(copied, call="spent", cost=0.5)
    await store.write([PutCall(row) for row in (own, later, copied, spent)])
    calls = [TEXT, "later", "copied", "spent", "unknown"]
    assert await store.copied_calls("fork", calls) == {TEXT, "later", "spent"}
    assert await store.copied_calls("s", calls) == set()
    assert await store.copied_calls("fork", ["later", TEXT]) == set()  # it begins otherwise
    assert await store.copied_calls("fork", []) == set()


@check
async def last_copy_of_a_call_counts(store: Store) -> None:
    """A later copy replaces a call; the same again and an earlier one have no effect."""
    copies = [call("c", 1, output=1), call("c", 2, output=80), call("c", 2, output=90)]
    assert await store.write([PutCall(copy) for copy in copies]) == [True] * 3
    assert await store.write([PutCall(copies[2]), PutCall(copies[0])]) == [False, False]
    assert await store.calls("s") == [copies[2]]
    for model in ("m", "n", None):
        changed = msgspec.structs.replace(copies[2], model=model)
        assert await store.write([PutCall(changed), PutCall(changed)]) == [True, False]
        assert await store.calls("s") == [changed]


@check
async def cost_of_a_session_is_that_of_its_calls_and_spendings(store: Store) -> None:
    """Each counts once, as it was stored last; a session without a price has no cost."""

    def costly(
        id: str, seq: int, cost: float | None, thread: str = "main", session: str = "s"
    ) -> PutCall:
        row = call(id, seq, thread=thread, session=session)
        return PutCall(msgspec.structs.replace(row, cost=cost))

    await store.write([PutCall(call("free", 0)), costly("other", 0, 4.0, session="t")])
    assert (await store.costs("s"), await store.costs("unknown")) == ({}, {})
    spending = msgspec.structs.replace(call("title", 0, thread=f"main{SPENDINGS}"), cost=0.5)
    first = [costly("a", 1, 1.0), costly("b", 2, 2.0), costly("a", 1, 1.0, thread="agent-1")]
    await store.write([*first, PutCall(msgspec.structs.replace(spending, counted=False))])
    assert await store.costs("s") == {"s": 4.5}
    await store.write([costly("a", 1, 1.0), costly("b", 3, 0.25), costly("b", 2, 8.0)])
    assert await store.costs() == {"s": 2.75, "t": 4.0}
    await store.write([costly("free", 1, 0.25), costly("other", 1, None, session="t")])
    assert await store.costs() == {"s": 3.0}


@check
async def calls_are_listed_in_order(store: Store) -> None:
    """Calls are listed by thread, then by (cycle, seq), not as they were written."""
    rows = [call("d", 1, cycle=1), call("b", 2), call("c", 1), call("a", 1, thread="agent-1")]
    await store.write([PutCall(row) for row in rows])
    assert [row.call for row in await store.calls("s")] == ["a", "c", "b", "d"]
    assert [row.call for row in await store.calls("s", "main")] == ["c", "b", "d"]
    assert await store.calls("s", "none") == await store.calls("t") == []


@check
async def handoffs_are_listed_last_first(store: Store) -> None:
    """The first document of an id is stored; the last one written comes first."""
    one, two = handoff("one", at=9.0), handoff("two", at=1.0)
    draft = HandoffRow("three", "t", 1.5, "/p", "ff", TEXT, "draft", 2, 3, True, 4.5)
    writes = [PutHandoff(one), PutHandoff(two), PutHandoff(draft)]
    assert await store.write(writes) == [True, True, True]
    assert await store.write([PutHandoff(handoff("one", at=11.0))]) == [False]
    assert await store.handoffs("s") == [two, one]
    (stored,) = await store.handoffs("t")
    assert stored == draft
    assert stored.draft is True


@check
async def last_handoffs_have_no_text(store: Store) -> None:
    """The last document of a session, or of each with the last one first; the text is empty."""
    documents = [handoff("1"), handoff("2", "t", at=9.0), handoff("3", at=0.5), handoff("4", "u")]
    await store.write([PutHandoff(row) for row in documents])
    await store.write([UseHandoff("3", 5.0)])
    last = msgspec.structs.replace(documents[2], text="", used_at=5.0)
    assert await store.last_handoffs("s") == [last]
    assert [row.id for row in await store.last_handoffs()] == ["4", "3", "2"]
    assert {row.text for row in await store.last_handoffs()} == {""}
    assert await store.last_handoffs("none") == []


@check
async def last_use_of_a_handoff_is_stored(store: Store) -> None:
    """A document may be re-injected after several compactions; the last time is stored."""
    uses = [UseHandoff("h", at) for at in (5.0, 6.0, 5.5)]
    uses.append(UseHandoff("none", 6.0))
    effects = await store.write([PutHandoff(handoff("h")), *uses])
    assert effects == [True, True, True, False, False]
    assert [row.used_at for row in await store.handoffs("s")] == [6.0]


@check
async def repeated_event_stops_its_list(store: Store) -> None:
    """An event that is stored already has no effect, nor have the writes after it."""
    first = [EventKeys(("e",), 1.0), PutCall(call("a", 1))]
    again = [
        PutCall(call("b", 2)),
        EventKeys(("e",), 2.0),
        PutCall(call("c", 3)),
        EventKeys(("f",), 2.0),
    ]
    assert await store.write(first) == [True, True]
    assert await store.write(again) == [True, False, False, False]
    assert [row.call for row in await store.calls("s")] == ["a", "b"]
    assert await store.write([EventKeys(("f",), 3.0)]) == [True]


@check
async def events_are_known_once_stored(store: Store) -> None:
    """An event is known once it was written, but not if another one stopped its list."""
    assert await store.known_events(["e"]) == set()
    await store.write([EventKeys(("e",), 1.0), PutSession(session())])
    await store.write([PutCall(call("c", 1)), EventKeys(("e",), 2.0), EventKeys(("after",), 2.0)])
    assert await store.known_events(["after", "e", "E"]) == {"e"}
    assert await store.known_events([]) == set()


@check
async def known_event_keeps_others_with_it_from_being_stored(store: Store) -> None:
    """Of several events in one write all are stored, or none."""
    await store.write([EventKeys(("b",), 1.0)])
    assert (
        await store.write([EventKeys(("a", "b", "c"), 2.0), PutCall(call("x", 1))]) == [False] * 2
    )
    assert await store.known_events(["a", "b", "c"]) == {"b"}
    assert await store.write([EventKeys(("a", "c"), 3.0), PutCall(call("x", 1))]) == [True] * 2
    assert await store.known_events(["a", "b", "c"]) == {"a", "b", "c"}


@check
async def event_has_an_effect_once_for_concurrent_writers(store: Store) -> None:
    """If many write the same event at the same time, one has an effect."""
    lists = [[EventKeys(("e",), 1.0), PutCall(call(f"c{place}", place))] for place in range(20)]
    effects = await asyncio.gather(*(store.write(writes) for writes in lists))
    assert sorted(effects) == [[False, False]] * 19 + [[True, True]]
    assert len(await store.calls("s")) == 1


@check
async def reading_sees_what_was_written(store: Store) -> None:
    """A query after a write sees it, even if others write at the same time."""

    async def write_and_read(place: int) -> bool:
        await store.write([PutCall(call(f"c{place}", place))])
        return f"c{place}" in {row.call for row in await store.calls("s")}

    assert all(await asyncio.gather(*(write_and_read(place) for place in range(50))))


@check
async def changes_since_a_mark(store: Store) -> None:
    """Each session that changed since a mark is listed once, in the order of its last change."""
    for id in ("a", "b", "a"):
        await store.write([PutSession(session(id)), PutThread(thread(0, 0)), EventKeys((id,), 1.0)])
        await store.write([PutHandoff(handoff(f"{id} {len(await store.changes())}", id))])
    changes = await store.changes()
    assert [id for _, id in changes] == ["s", "b", "a"]
    assert sorted({mark for mark, _ in changes}) == [mark for mark, _ in changes]
    assert await store.changes(changes[-1][0]) == []
    assert await store.changes(changes[0][0]) == changes[1:]


@check
async def changes_of_recent_sessions(store: Store) -> None:
    """Sessions that were last seen before a time are left out if that is asked for."""
    for id, at in (("a", 4.0), ("b", 5.0), ("c", 6.0)):
        await store.write([PutSession(msgspec.structs.replace(session(id), seen_at=at))])
    await store.write([PutHandoff(handoff("h", "unknown"))])
    assert [id for _, id in await store.changes()] == ["a", "b", "c", "unknown"]
    recent = await store.changes(seen_since=5.0)
    assert [id for _, id in recent] == ["b", "c"]
    assert await store.changes(recent[0][0], 5.0) == recent[1:]


@check
async def no_effect_is_no_change(store: Store) -> None:
    """A write without effect is not a change."""
    writes = [PutSession(session()), PutThread(thread(1, 1)), PutCall(call("c", 1))]
    await store.write(writes)
    changes = await store.changes()
    await store.write([*writes, PutThread(thread(0, 9)), UseHandoff("none", 1.0)])
    assert await store.changes() == changes


@check
async def cursor_never_goes_back(store: Store) -> None:
    """A cursor begins at 0 and only advances; it is no change of a session."""
    assert await store.cursor("export") == 0
    writes = [PutCursor("export", position) for position in (0, 7, 7, 3, 8)]
    assert await store.write(writes) == [False, True, False, False, True]
    assert await store.write([PutCursor("other", 2)]) == [True]
    assert (await store.cursor("export"), await store.cursor("other")) == (8, 2)
    assert await store.changes() == []


@check
async def signals_are_read_on_from_a_position(store: Store) -> None:
    """Each signal has a position of its own, which grows, also after older ones were deleted."""
    rows = [signal(session=id, cycle=cycle) for id in ("a", "b") for cycle in (0, 1)]
    await store.write([RecordSignal(row) for row in (*rows, rows[0])])
    read = await store.signals_after(0, 10)
    assert [row for _, row in read] == rows
    assert await store.signals_after(read[0][0], 2) == read[1:3]
    assert await store.signals_after(read[-1][0], 10) == []
    await store.write([PutSession(session("b")), ForgetSessions(9.0), RecordSignal(rows[3])])
    assert [row for _, row in await store.signals_after(read[-1][0], 10)] == [rows[3]]


@check
async def main_threads_of_recent_sessions(store: Store) -> None:
    """A session is there with its main thread if it was seen since the time, and has one."""
    sessions = [session("old", 1.0), session("now", 5.0), session("without", 6.0)]
    await store.write([PutSession(row) for row in sessions])
    mains = [thread(0, 1, sent=7, session=row.id) for row in sessions[:2]]
    subagent = msgspec.structs.replace(thread(0, 1, session="without"), thread="a-1")
    await store.write([PutThread(row) for row in (*mains, subagent)])
    assert await store.main_threads(5.0) == [(sessions[1], mains[1])]
    found = sorted(await store.main_threads(0.0), key=lambda pair: pair[0].id)
    assert found == [(sessions[1], mains[1]), (sessions[0], mains[0])]
