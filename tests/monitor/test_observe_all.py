"""Several observations of a session at once: calls are stored together."""

import pytest
from msgspec.structs import replace

from brimline.agents.observations import Observation
from brimline.context.events import AnyEvent, Call, Cleared, Compacted, Spent
from brimline.errors import StoreFailed
from brimline.monitor import monitor
from brimline.store.base import ClaimSession, EventKeys, PutSession
from brimline.store.rows import SessionRow

from .fleet import Fleet, call

EVENTS: list[AnyEvent] = [
    call(1, 60_000),
    call(2, 104_000),
    call(3, 135_000),
    Compacted(at=4.0, trigger="auto"),
    call(5, 30_000),
    call(6, 40_000),
    call(6, 40_500),
    Cleared(at=7.0),
    call(8, 20_000),
]


def observations(fleet: Fleet, *events: AnyEvent) -> list[Observation]:
    return [fleet.observation(each) for each in events]


async def fired_levels(fleet: Fleet) -> list[float]:
    return [row.level for row in await fleet.store.signals("s") if row.kind == "level"]


async def stored_calls(fleet: Fleet) -> list[str]:
    return [row.call for row in await fleet.store.calls("s")]


@pytest.mark.parametrize("shared", [False, True])
async def test_calls_are_stored_in_one_transaction_and_as_one_by_one(shared: bool) -> None:
    together, single = Fleet(1, shared), Fleet(1, shared)
    await together.monitors[0].observe_all(observations(together, *EVENTS))
    await single.push(0, *EVENTS)
    keys = [each.keys for each in together.store.written if isinstance(each, EventKeys)]
    assert keys == [("e1", "e2", "e3"), ("e4",), ("e5", "e6", "e7"), ("e8",), ("e9",)]
    assert await together.store.calls("s") == await single.store.calls("s")
    assert await together.store.compactions("s") == await single.store.compactions("s")
    ours, theirs = [
        [replace(row, seq=0) for row in await each.store.threads("s")]
        for each in (together, single)
    ]
    assert ours == theirs
    ours, theirs = [
        [row.kind for row in await each.store.signals("s") if row.kind != "level"]
        for each in (together, single)
    ]
    assert ours == theirs == ["compacted", "cleared"]


async def test_calls_that_reach_several_levels_fire_the_highest_one() -> None:
    fleet = Fleet(1)
    calls = [call(1, 60_000), call(2, 104_000), call(3, 135_000)]
    await fleet.monitors[0].observe_all(observations(fleet, *calls))
    assert await fired_levels(fleet) == [65.0]
    assert len(await fleet.monitors[0].take_messages("s")) == 1


async def test_known_events_among_new_ones_are_duplicates() -> None:
    fleet = Fleet(1)
    one, two, three = observations(fleet, call(1), call(2), call(3))
    await fleet.monitors[0].observe(two)
    replies = await fleet.monitors[0].observe_all([one, two, three, three])
    assert [reply.is_duplicate for reply in replies] == [False, True, False, True]
    again = await fleet.monitors[0].observe_all([one, two, three])
    assert all(reply.is_duplicate for reply in again)
    assert sorted(await stored_calls(fleet)) == ["c1", "c2", "c3"]


async def test_call_that_another_monitor_stores_meanwhile_is_stored_once() -> None:
    """The others of the same request are not lost."""
    fleet = Fleet(2)
    await fleet.push(0, call(1))
    await fleet.push(1, call(2))
    events = observations(fleet, call(3), call(4), call(5))
    fleet.store.before_write.append(lambda: fleet.monitors[1].observe(events[1]))
    replies = await fleet.monitors[0].observe_all(events)
    assert [reply.is_duplicate for reply in replies] == [False, True, False]
    assert sorted(await stored_calls(fleet)) == ["c1", "c2", "c3", "c4", "c5"]


async def test_calls_that_could_not_be_stored_are_not_in_memory_either() -> None:
    fleet = Fleet(1, shared=False)
    await fleet.push(0, call(1))
    events = observations(fleet, call(2), call(3))

    async def fail() -> None:
        raise StoreFailed("the disk", "full")

    fleet.store.before_write.append(fail)
    with pytest.raises(StoreFailed, match="full"):
        await fleet.monitors[0].observe_all(events)
    assert await stored_calls(fleet) == ["c1"]
    await fleet.monitors[0].observe_all(events)
    assert await stored_calls(fleet) == ["c1", "c2", "c3"]


async def test_calls_of_a_session_that_a_machine_reports_are_ignored() -> None:
    fleet = Fleet(1)
    row = SessionRow("s", "my-agent", 1.0, machine="m")
    await fleet.store.write([ClaimSession("s", "m"), PutSession(row)])
    replies = await fleet.monitors[0].observe_all(observations(fleet, call(1), call(2)))
    assert [reply.is_duplicate for reply in replies] == [False, False]
    assert await stored_calls(fleet) == []


async def test_many_calls_are_stored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "MAX_TOGETHER", 4)
    fleet = Fleet(1)
    calls = [call(number) for number in range(5)]
    spent = Spent(id="title", usage=call(1).usage, at=9.0)
    replies = await fleet.monitors[0].observe_all(observations(fleet, *calls, spent))
    assert len(replies) == 6
    keys = [each.keys for each in fleet.store.written if isinstance(each, EventKeys)]
    assert keys == [("e1", "e2", "e3", "e4"), ("e5", "e6")]


async def test_no_observations_have_no_replies() -> None:
    assert await Fleet(1).monitors[0].observe_all([]) == []


async def test_calls_of_several_threads_are_stored_together() -> None:
    fleet = Fleet(1)
    sub = Call(id="sub", usage=call(1).usage, model=call(1).model, at=2.0, thread="agent-1")
    await fleet.monitors[0].observe_all(observations(fleet, call(1), sub, call(3)))
    threads = {row.thread: row.calls for row in await fleet.store.threads("s")}
    assert threads == {"main": 2, "agent-1": 1}
