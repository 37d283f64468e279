"""Revisions order the monitors that share a store; a claim replaces what telemetry reported."""

from brimline.store.base import (
    ClaimSession,
    EventKeys,
    ExpectRevision,
    ForgetSessions,
    PutCall,
    PutSession,
    PutThread,
    QueueMessage,
    Store,
)
from brimline.testing.store.forgetting import ALL, all_writes, count_rows
from brimline.testing.store.suite import call, check, message, pair_check, session, thread

CLAIMED = [1, 0, 0, 0, 1, 2, 2, 1, 1, 0]  # without threads, calls and compactions


@check
async def expected_revision_is_advanced(store: Store) -> None:
    """A session has revision 0 until an expected revision advances it; others keep theirs."""
    assert await store.revision("s") == 0
    for revision in range(3):
        assert await store.write([ExpectRevision("s", revision)]) == [True]
    assert [await store.revision(id) for id in ("s", "other")] == [3, 0]


@check
async def unexpected_revision_stops_its_list(store: Store) -> None:
    """If the revision is another, neither it nor what follows has an effect."""
    await store.write([ExpectRevision("s", 0)])
    for revision in (0, 2, 7):
        writes = [ExpectRevision("s", revision), EventKeys(("e",), 1.0), PutSession(session())]
        assert await store.write(writes) == [False] * 3
    assert await store.write([ExpectRevision("new", 1), PutThread(thread(0, 1))]) == [False] * 2
    assert not await store.known_events(["e"])
    assert await store.sessions() == await store.threads() == []
    assert [await store.revision(id) for id in ("s", "new")] == [1, 0]


@check
async def revisions_of_one_list_follow_each_other(store: Store) -> None:
    """What comes before a revision that is not expected has its effect."""
    writes = [
        ExpectRevision("s", 0),
        EventKeys(("e",), 1.0),
        PutSession(session()),
        ExpectRevision("s", 1),
        ExpectRevision("s", 1),
        PutThread(thread(0, 1)),
    ]
    assert await store.write(writes) == [True] * 4 + [False] * 2
    assert await store.revision("s") == 2


@check
async def repeated_event_stops_its_list_after_the_revision(store: Store) -> None:
    """A repeated event advances the revision that its list expects, and nothing else."""
    await store.write([EventKeys(("e",), 1.0)])
    writes = [ExpectRevision("s", 0), EventKeys(("e",), 1.0), PutSession(session())]
    assert await store.write(writes) == [True, False, False]
    assert await store.revision("s") == 1


@check
async def revision_is_no_change(store: Store) -> None:
    """A revision alone is not among the changes."""
    await store.write([ExpectRevision("s", 0)])
    assert await store.changes() == []


@check
async def forgotten_session_has_no_revision(store: Store) -> None:
    """A session that comes back after it was forgotten starts at revision 0."""
    await store.write([ExpectRevision("s", 0), PutSession(session("s", 1.0))])
    await store.write([ExpectRevision("now", 0), PutSession(session("now", 9.0))])
    await store.write([ForgetSessions(5.0)])
    assert [await store.revision(id) for id in ("s", "now")] == [0, 1]


@check
async def claim_replaces_what_telemetry_reported(store: Store) -> None:
    """Calls, threads and compactions go; signals, messages and documents stay."""
    await store.write([*all_writes("s", 1.0), *all_writes("other", 1.0)])
    ((_, _), (mark, _)) = await store.changes()
    assert await store.write([ClaimSession("s", "m")]) == [True]
    assert await count_rows(store, "s") == CLAIMED
    assert await count_rows(store, "other") == ALL
    row = await store.session("s")
    assert row is not None
    assert row.machine == "m"
    assert [await store.revision(id) for id in ("s", "other")] == [1, 0]
    assert [id for _, id in await store.changes(mark)] == ["s"]


@check
async def claimed_session_is_not_claimed_again(store: Store) -> None:
    """A claim of a session with a machine has no effect, also by another machine."""
    writes = [ClaimSession("s", "m"), *all_writes("s", 1.0)]
    await store.write([PutSession(session("s")), *writes])
    changes = await store.changes()
    assert await store.write([ClaimSession("s", "m"), ClaimSession("s", "n")]) == [False] * 2
    assert await store.changes() == changes
    assert await store.revision("s") == 1
    row = await store.session("s")
    assert row is not None
    assert row.machine == "m"
    writes = [ClaimSession("s", "m"), PutCall(call("c2", 2))]
    assert await store.write(writes) == [False, True]
    assert len(await store.calls("s")) == 2


@check
async def claim_comes_before_the_session(store: Store) -> None:
    """A claim of a session that is not stored lets no telemetry in that expects no revision."""
    await store.write([PutCall(call("telemetry", 1))])
    assert await store.write([ClaimSession("s", "m"), *all_writes("s", 1.0)]) == [True] * 8
    assert [row.call for row in await store.calls("s")] == ["c"]
    assert await store.write([ExpectRevision("s", 0), PutCall(call("d", 2))]) == [False] * 2


@check
async def claim_takes_effect_in_its_place(store: Store) -> None:
    """What a list writes before the claim is deleted, what it writes after the claim is not."""
    writes = [
        PutCall(call("before", 1)),
        QueueMessage(message("m1")),
        ClaimSession("s", "m"),
        PutCall(call("after", 2)),
    ]
    assert await store.write(writes) == [True] * 4
    assert [row.call for row in await store.calls("s")] == ["after"]


@pair_check
async def revision_of_both_advances_once(one: Store, other: Store) -> None:
    """Of two that expect the same revision one wins, and the other reads what it wrote."""
    for revision in range(10):
        await one.revision("s")
        effects = [
            (await store.write([ExpectRevision("s", revision)]))[0] for store in (one, other)
        ]
        assert effects == [True, False]
        assert await other.revision("s") == revision + 1
        one, other = other, one
