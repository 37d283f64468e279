"""Several monitors on one store, as the replicas of a fleet's server have them."""

import asyncio
from collections import Counter

import pytest

from brimline.agents.observations import Reply
from brimline.context.events import AnyEvent, Compacted
from brimline.context.inbox import DELIVERY_LEASE_S, Message
from brimline.errors import StoreFailed
from brimline.handoff import Document
from brimline.monitor.persistence import HOSTNAME
from brimline.monitor.session_table import MAX_ATTEMPTS, SessionTable
from brimline.monitor.user_rules import Rules
from brimline.store.base import ClaimSession, ExpectRevision, PutCall, PutSession
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore

from .fleet import Fleet, call

EVENTS: list[AnyEvent] = [
    call(1, 90_000),
    call(2, 104_000),
    call(3, 135_000),
    Compacted(at=4.0, trigger="auto"),
    call(5, 30_000),
    call(6, 110_000),
    call(6, 110_500),
    call(7, 120_000),
]


async def test_session_over_three_monitors_is_stored_as_by_one() -> None:
    alone, fleet = Fleet(1, shared=False), Fleet(3)
    for number, event in enumerate(EVENTS):
        await alone.push(0, event)
        await fleet.push(number % 3, event)
    assert await fleet.rows() == await alone.rows()
    assert Counter(fleet.environment.signals) == Counter(await fleet.store.signals())


async def test_program_that_reports_to_a_server_does_not_get_the_server_s_host() -> None:
    async def host_of(fleet: Fleet) -> str | None:
        await fleet.push(0, call(1))
        row = await fleet.store.session("s")
        assert row is not None
        return row.host

    assert await host_of(Fleet(1)) is None
    assert await host_of(Fleet(1, shared=False)) == HOSTNAME


async def test_observations_at_the_same_time_are_all_stored() -> None:
    """Each monitor decides by what the others have stored, and each level fires once."""
    fleet = Fleet(3)
    observations = [fleet.observation(call(n, 80_000 + n * 1_000)) for n in range(60)]
    await asyncio.gather(
        *(fleet.monitors[n % 3].observe(each) for n, each in enumerate(observations))
    )
    assert sorted(row.call for row in await fleet.store.calls("s")) == sorted(
        f"c{n}" for n in range(60)
    )
    levels = [row.level for row in await fleet.store.signals("s") if row.kind == "level"]
    assert sorted(levels) == [50.0, 65.0]
    assert len(fleet.environment.signals) == len(await fleet.store.signals("s"))


async def test_repeated_observation_is_a_duplicate_for_every_monitor() -> None:
    """Also if another monitor stores it while this one does."""
    fleet = Fleet(2)
    one, other = fleet.monitors
    observation = fleet.observation(call(1))
    fleet.store.before_write.append(lambda: other.observe(observation))
    assert (await one.observe(observation)).is_duplicate
    assert (await one.observe(observation)).is_duplicate
    await one.observe(fleet.observation(call(2)))
    assert [row.call for row in await fleet.store.calls("s")] == ["c1", "c2"]


async def test_session_that_always_changes_is_an_error() -> None:
    """After MAX_ATTEMPTS nothing is stored; the same observation can be sent again."""
    fleet = Fleet(1)
    await fleet.push(0, call(1))

    async def change() -> None:
        revision = await fleet.store.revision("s")
        await MemoryStore.write(fleet.store, [ExpectRevision("s", revision)])

    fleet.store.before_write = [change] * MAX_ATTEMPTS
    observation = fleet.observation(call(2))
    with pytest.raises(StoreFailed, match="session s: other replicas changed it"):
        await fleet.monitors[0].observe(observation)
    assert len(await fleet.store.calls("s")) == 1
    assert not (await fleet.monitors[0].observe(observation)).is_duplicate
    assert len(await fleet.store.calls("s")) == 2


async def test_restored_calls_are_not_written_again() -> None:
    fleet = Fleet(2)
    for number in range(20):
        await fleet.push(number % 2, call(number))
    written = [write for write in fleet.store.written if isinstance(write, PutCall)]
    assert len({write.row.call for write in written}) == 20
    # Each is written again at most in the list that another monitor's write stopped.
    assert len(written) <= 40


async def test_telemetry_of_a_machine_s_session_is_ignored() -> None:
    """Also by a monitor that had the session in memory before the machine claimed it."""
    fleet = Fleet(2)
    await fleet.push(0, call(1))
    row = SessionRow("s", "my-agent", 1.0, machine="m")
    await fleet.store.write([ClaimSession("s", "m"), PutSession(row)])
    for monitor in (0, 1, 0):
        (reply,) = await fleet.push(monitor, call(2))
        assert reply == Reply()
    assert await fleet.store.calls("s") == await fleet.store.threads("s") == []


async def test_messages_keep_their_order_over_several_takers() -> None:
    """No message is handed out while an earlier one is neither delivered nor due again."""
    fleet = Fleet(2)
    one, other = fleet.monitors
    await fleet.push(0, call(1))
    await one.send("s", "first")
    (first,) = await one.take_messages("s")
    await other.send("s", "second")
    assert await other.take_messages("s") == await one.take_messages("s") == []
    fleet.time += DELIVERY_LEASE_S
    again, second = await other.take_messages("s")
    assert again.id == first.id
    await other.send("s", "third")
    await other.mark_delivered(Reply(message_ids=(first.id,)))
    assert await one.take_messages("s") == []
    await other.mark_delivered(Reply(message_ids=(second.id,)))
    assert [m.text for m in await one.take_messages("s")] == ["[message from user] third"]


async def test_message_does_not_overtake_one_that_another_takes_meanwhile() -> None:
    """A taker that has read both messages gets none if another got the first in between."""
    fleet = Fleet(2)
    one, other = fleet.monitors
    await fleet.push(0, call(1))
    await one.send("s", "first")
    has_read, is_written = asyncio.Event(), asyncio.Event()
    taking: list[asyncio.Task[list[Message]]] = []

    async def wait_for_one() -> None:
        has_read.set()
        await is_written.wait()

    async def let_other_read() -> None:
        await one.send("s", "second")
        fleet.store.after_read.append(wait_for_one)
        taking.append(asyncio.create_task(other.take_messages("s")))
        await has_read.wait()

    fleet.store.after_read.append(let_other_read)
    assert [message.text for message in await one.take_messages("s")] == [
        "[message from user] first"
    ]
    is_written.set()
    assert await taking[0] == []


async def test_urgent_message_does_not_wait_for_one_that_is_not() -> None:
    fleet = Fleet(2)
    one, other = fleet.monitors
    await fleet.push(0, call(1))
    await one.send("s", "first")
    await one.take_messages("s")
    await one.send("s", "second", "urgent")
    assert len(await other.take_messages("s")) == 1


async def test_handoff_at_one_monitor_rearms_the_levels_of_all() -> None:
    fleet = Fleet(2)
    await fleet.push(0, call(1, 110_000))
    await fleet.push(1, call(2, 90_000))
    await fleet.monitors[0].hand_over("s", Document.of("text", "/h.md", 1.0), "agent")
    await fleet.push(1, call(3, 112_000))
    levels = [(row.level, row.arm) for row in await fleet.store.signals("s")]
    assert levels == [(50.0, 0), (50.0, 1)]


async def test_shared_monitor_shows_no_state_from_memory() -> None:
    """Its copy may be older than what another one has stored."""
    fleet = Fleet(1)
    await fleet.push(0, call(1))
    assert fleet.monitors[0].state_of("s") is None
    assert fleet.monitors[0].calls_left("s") is None


async def test_shared_monitor_does_not_restore_a_session_that_only_it_changes() -> None:
    fleet = Fleet(2)
    await fleet.push(0, call(1, 60_000))
    assert fleet.monitors[0].reading("s").sent == 60_000  # from memory
    await fleet.push(1, call(2, 70_000))
    await fleet.push(0, call(3, 80_000))
    assert fleet.monitors[0].reading("s").sent == 80_000
    assert len(await fleet.store.calls("s")) == 3


async def test_shared_monitor_holds_a_bounded_number_of_sessions() -> None:
    """The ids are those of clients; the store has all, also of those that are released."""

    async def load(shared: bool) -> list[str]:
        table = SessionTable(MemoryStore(), Rules(), shared, max_shared=2)
        async with table.lock("locked"):
            for session in ("locked", "used", "idle", "used", "last"):
                await table.load(session, "claude")
        return [id for id in ("locked", "used", "idle", "last") if table.get(id) is not None]

    assert await load(shared=True) == ["locked", "used", "last"]
    assert await load(shared=False) == ["locked", "used", "idle", "last"]
