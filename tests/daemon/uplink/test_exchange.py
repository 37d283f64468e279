"""The exchange with a server: every change arrives, once and in order, and messages come back."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from brimline.api.uplink import UplinkRoutes
from brimline.cli.doctor_checks import describe_uplink
from brimline.context.inbox import (
    DELIVERY_LEASE_S,
    PENDING_STATES,
    Message,
)
from brimline.daemon.uplink import exchange
from brimline.daemon.uplink.exchange import MAX_PAUSE_S, POLL_INTERVAL_S
from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.outbox import TELEMETRY_HOLD_S
from brimline.daemon.uplink.protocol import (
    DOCUMENT_LIFETIME_S,
    UplinkBatch,
    UplinkReply,
    UplinkSession,
)
from brimline.daemon.uplink.server_messages import MAX_BODY_CHARS
from brimline.settings import UplinkSettings
from brimline.store.base import (
    ClaimSession,
    MarkMessage,
    PutCall,
    PutCursor,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    RecordSignal,
    UseHandoff,
    Write,
)
from brimline.store.rows import HandoffRow, SessionRow, SignalRow, ThreadRow
from brimline.store.sqlite import MemoryStore, SqliteStore

from .machines import Machine, call_row, use_machine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


def test_session_at_the_server_equals_that_of_the_machine(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1, 2, 3)
        signal = SignalRow("s", "main", 0, "level", 5.0, 50.0, "text for the agent", 3)
        await machine.store.write([RecordSignal(signal)])
        await machine.uplink.exchange()
        row = SessionRow("s", "claude", machine.now, "host", "shop", user="ada", team="web",
                         machine="m1", receive="all")  # fmt: skip
        assert await machine.server.sessions() == [row]
        assert await machine.server.threads() == await machine.store.threads()
        assert await machine.server.calls("s") == await machine.store.calls("s")
        assert await machine.server.signals() == [replace(signal, text="")]

    use_machine(path, use)


def test_all_documents_are_reported_without_their_texts(path: Path) -> None:
    """Also that of the agent before a draft, by which a compaction has lost no work."""

    async def use(machine: Machine) -> None:
        await machine.call(1)
        agents = HandoffRow("h1", "s", 2.0, "/home/ada/h.md", "11", "text", "agent", 0, 1)
        draft = HandoffRow(
            "h2", "s", 3.0, "/home/ada/t", "22", "text", "brimline", 0, 1, draft=True
        )
        await machine.store.write([PutHandoff(agents), PutHandoff(draft)])
        await machine.uplink.exchange()
        heads = [replace(row, path="", text="") for row in (draft, agents)]
        assert await machine.server.handoffs("s") == heads

    use_machine(path, use)


def test_acknowledged_rows_are_not_sent_again(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1, 2)
        await machine.uplink.exchange()
        await machine.uplink.exchange()
        await machine.call(2, 3)
        await machine.uplink.exchange()
        assert machine.sender.sent_calls == ["c1", "c2", "c3"]
        machine.restart()
        await machine.call(4)
        await machine.uplink.exchange()
        assert machine.sender.sent_calls == ["c1", "c2", "c3", "c4"]

    use_machine(path, use)


def test_round_without_changes_writes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine at rest does not write to its disk every two seconds."""
    writes: list[Write] = []

    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        write = machine.store.write

        async def note(batch: Sequence[Write]) -> list[bool]:
            writes.extend(batch)
            return await write(batch)

        monkeypatch.setattr(machine.store, "write", note)
        await machine.uplink.exchange()
        assert writes == []
        await machine.call(2)
        await machine.uplink.exchange()
        assert any(isinstance(each, PutCursor) for each in writes)

    use_machine(path, use)


def test_session_larger_than_a_batch_arrives_in_parts_and_in_order(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(*range(1, 5_001))
        await machine.call(1, session="other")
        await machine.uplink.exchange()
        assert len(machine.sender.batches) == 3
        assert machine.sender.sent_calls == [*(f"c{n}" for n in range(1, 5_001)), "c1"]
        assert len(await machine.server.calls("s")) == 5_000
        assert machine.uplink.status().calls == 5_001

    use_machine(path, use)


def test_failure_between_batches_loses_and_repeats_nothing(path: Path) -> None:
    """A session that changed meanwhile has a higher mark than those that are acknowledged."""

    async def use(machine: Machine) -> None:
        await machine.call(1, session="a")
        await machine.call(*range(1, 2_500), session="b")
        await machine.call(1, session="c")
        machine.sender.failures = [None, UplinkFailed("down")]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        await machine.call(2, session="a")
        await machine.uplink.exchange()
        sent = machine.sender.sent_calls
        assert len(sent) == 2 + 2_499 + 1
        for session, count in (("a", 2), ("b", 2_499), ("c", 1)):
            assert len(await machine.server.calls(session)) == count

    use_machine(path, use)


def test_session_that_is_acknowledged_is_left_out_of_the_next_try(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1, session="a")
        await machine.call(*range(1, 2_500), session="b")
        machine.sender.failures = [None, UplinkFailed("down")]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        await machine.uplink.exchange()
        assert [[each.id for each in batch.sessions] for batch in machine.sender.batches] == [
            ["a", "b"],
            ["b"],
        ]

    use_machine(path, use)


def test_calls_of_telemetry_are_replaced_by_those_of_the_machine(path: Path) -> None:
    async def use(machine: Machine) -> None:
        telemetry = replace(call_row(1), call="req_1")
        row = SessionRow("s", "claude", 1.0)
        await machine.server.write([PutSession(row), PutCall(telemetry)])
        await machine.call(1)
        await machine.uplink.exchange()
        assert [row.call for row in await machine.server.calls("s")] == ["c1"]

    use_machine(path, use)


@pytest.mark.parametrize("lost", ["before", "lost"])
def test_machine_that_dies_within_a_round_sends_it_again_without_effect(
    path: Path, lost: str
) -> None:
    async def use(machine: Machine) -> None:
        for number in range(1, 4):
            await machine.call(*range(1, 900), session=f"s{number}")
        machine.sender.failures = [None, lost if lost == "lost" else UplinkFailed("killed")]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        machine.restart()
        await machine.call(900, session="s1")
        await machine.uplink.exchange()
        marks = await machine.server.changes()
        for number in range(1, 4):
            calls = await machine.server.calls(f"s{number}")
            assert calls == await machine.store.calls(f"s{number}")
        machine.restart()
        await machine.uplink.exchange()
        assert await machine.server.changes() == marks

    use_machine(path, use)


def test_new_server_gets_the_sessions_of_its_history(path: Path) -> None:
    async def use(machine: Machine) -> None:
        settings = UplinkSettings(history="2d")
        machine.restart(settings=settings)
        old = SessionRow("old", "claude", machine.now - 2 * 86_400 - 1)
        await machine.store.write([PutSession(old)])
        await machine.call(1)
        await machine.uplink.exchange()
        machine.restart("https://other.example", settings)
        await machine.uplink.exchange()
        assert [[each.id for each in batch.sessions] for batch in machine.sender.batches] == [
            ["s"],
            ["s"],
        ]
        assert machine.sender.sent_calls == ["c1", "c1"]

    use_machine(path, use)


def test_session_that_is_older_than_the_history_is_not_sent_after_a_restart(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        machine.restart()
        old = SessionRow("old", "claude", machine.now - 31 * 86_400)
        await machine.store.write([PutSession(old)])
        await machine.uplink.exchange()
        assert await machine.server.session("old") is None

    use_machine(path, use)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_server_that_was_restored_from_a_backup_gets_what_it_lost(
    path: Path, caplog: pytest.LogCaptureFixture, is_restarted: bool
) -> None:
    """Nothing has changed on the machine since: the next poll shows that the server lost it."""

    async def use(machine: Machine) -> None:
        await machine.call(1, session="before")
        await machine.uplink.exchange()
        backup = MemoryStore()
        restored = UplinkRoutes(backup, lambda: machine.now)
        for batch in machine.sender.batches:
            await restored.take(batch)
        for number in (2, 3):
            machine.now += 1
            await machine.call(number)
            await machine.uplink.exchange()
        if is_restarted:
            machine.restart()
        machine.sender.routes = restored
        machine.now += POLL_INTERVAL_S
        await machine.uplink.exchange()
        for session in ("before", "s"):
            assert await backup.calls(session) == await machine.store.calls(session)
        sent = len(machine.sender.batches)
        await machine.uplink.exchange()
        assert len(machine.sender.batches) == sent

    with caplog.at_level(logging.WARNING):
        use_machine(path, use)
    assert caplog.text.count("has lost what it acknowledged") == 1


def test_machine_whose_id_another_one_has_takes_a_new_id(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else one of the two would hide from the other that a restored server lost its calls."""

    async def use(machine: Machine) -> None:
        copied = await SqliteStore.open(path.with_name("copied.db"))
        copy = Machine(copied, machine.server)
        try:
            for each in (machine, copy):
                await each.uplink.exchange()
            backup = MemoryStore()
            restored = UplinkRoutes(backup, lambda: machine.now)
            for number, each in enumerate((machine, copy, machine, copy)):
                machine.now += 1
                copy.now = machine.now
                await each.call(number, session="ada" if each is machine else "copy")
                await each.uplink.exchange()
            assert machine.uplink.status().problem is copy.uplink.status().problem is None
            machine.sender.routes = copy.sender.routes = restored
            for each in (machine, copy):
                each.now += POLL_INTERVAL_S
                await each.uplink.exchange()
            assert [len(await backup.calls(id)) for id in ("ada", "copy")] == [2, 2]
            ids = [each.sender.batches[-1].machine for each in (machine, copy)]
            assert ids[0] != ids[1]
            sent = len(machine.sender.batches), len(copy.sender.batches)
            for each in (machine, copy):
                await each.uplink.exchange()
            assert (len(machine.sender.batches), len(copy.sender.batches)) == sent
        finally:
            await copied.close()

    with caplog.at_level(logging.WARNING):
        use_machine(path, use)
    assert caplog.text.count("which gets a new id") in (1, 2)  # the other one may notice, too


def test_batch_that_arrives_twice_gives_the_machine_no_new_id(path: Path) -> None:
    """A connection that ends without a reply is opened again, with the same request."""

    async def use(machine: Machine) -> None:
        await machine.uplink.exchange()
        take = machine.sender.routes.take

        async def take_twice(batch: UplinkBatch, token: str | None = None) -> UplinkReply:
            await take(batch)
            return await take(batch)

        machine.sender.routes.take = take_twice
        for number in range(3):
            machine.now += POLL_INTERVAL_S
            await machine.call(number)
            await machine.uplink.exchange()
        assert {batch.machine for batch in machine.sender.batches} == {machine.name}

    use_machine(path, use)


def test_server_that_loses_its_last_commits_within_a_round_gets_them_again(path: Path) -> None:
    """A failover to a replica without them; the machine had not finished its round."""

    async def use(machine: Machine) -> None:
        await machine.call(*range(1, exchange.MAX_ROWS), session="a")
        await machine.call(*range(1, 100), session="b")
        replica = MemoryStore()
        machine.sender.failures = [None, UplinkFailed("the primary is gone")]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        machine.sender.routes = UplinkRoutes(replica, lambda: machine.now)
        await machine.uplink.exchange()
        for session in ("a", "b"):
            assert await replica.calls(session) == await machine.store.calls(session)

    use_machine(path, use)


def test_calls_of_a_file_from_before_marks_are_sent(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE calls SET mark = 0")
        await machine.uplink.exchange()
        assert machine.sender.sent_calls == ["c1"]

    use_machine(path, use)


def test_batch_that_is_too_large_is_sent_in_smaller_ones(path: Path) -> None:
    async def use(machine: Machine) -> None:
        machine.sender.max_rows = 100
        await machine.call(*range(1, 301))
        await machine.uplink.exchange()
        assert await machine.server.calls("s") == await machine.store.calls("s")
        machine.sender.max_rows = None
        count = len(machine.sender.batches)
        await machine.call(*range(301, 901))
        await machine.uplink.exchange()
        assert len(machine.sender.batches) <= count + 4  # the batches grow again

    use_machine(path, use)


def test_session_that_is_refused_does_not_stop_the_others(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(machine: Machine) -> None:
        for session in ("a", "x" * 300, "b"):
            await machine.call(1, 2, session=session)
        await machine.uplink.exchange()
        assert [row.id for row in await machine.server.sessions()] == ["a", "b"]
        count = len(machine.sender.batches)
        await machine.uplink.exchange()
        assert len(machine.sender.batches) == count
        status = machine.uplink.status()
        assert list(status.refused_sessions) == ["x" * 300]
        line = describe_uplink(msgspec.to_builtins(status))
        assert "the server refuses 1 session, the last: xxxxxxxx: the id of a session" in line

    use_machine(path, use)
    assert "refuses session xxx" in caplog.text


def test_row_that_no_server_takes_is_skipped(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use(machine: Machine) -> None:
        machine.sender.max_rows = 0
        await machine.call(1, 2)
        await machine.uplink.exchange()
        assert await machine.server.sessions() == []
        machine.sender.max_rows = None
        await machine.call(3)
        await machine.uplink.exchange()
        assert [row.call for row in await machine.server.calls("s")] == ["c3"]

    use_machine(path, use)
    assert caplog.text.count("refuses session s") == 1


def test_row_that_a_proxy_does_not_take_is_kept(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1, 2)
        machine.sender.failures = [UplinkFailed("413", is_too_large=True)] * 9
        with pytest.raises(UplinkFailed, match="413"):
            await machine.uplink.exchange()
        machine.sender.failures = []
        await machine.uplink.exchange()
        assert await machine.server.calls("s") == await machine.store.calls("s")

    use_machine(path, use)


def test_reply_fits_into_what_a_machine_reads(path: Path) -> None:
    """JSON writes a control character in 6 bytes; a reply that is cut off would come for ever."""

    async def use(machine: Machine) -> None:
        sessions = ["a", "b", "c"]
        for session in sessions:
            await machine.call(1, session=session)
        await machine.uplink.exchange()
        text, sender = "\x01" * MAX_BODY_CHARS, "b" * 50_000  # a token's name has no limit
        sent = [
            Message(f"{session}{n}", session, text, machine.now, sender=sender)
            for session in sessions
            for n in range(20)
        ]
        document = HandoffRow("d", "a", machine.now, "d.md", "00", '"' * (256 << 10), "a", 0, 1)
        await machine.server.write([*map(QueueMessage, sent), PutHandoff(document)])
        for number in range(2, 12):
            await machine.call(number, session="a")
            await machine.uplink.exchange()
        received = await machine.store.messages()
        assert [each.id for each in received] == [f"fleet-{each.id}" for each in sent]
        assert len(await machine.store.handoffs("a")) == 1

    use_machine(path, use)


def test_message_of_the_server_is_queued_once_and_its_delivery_reported(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        await machine.send_from_server("hello")
        machine.now += POLL_INTERVAL_S
        await machine.uplink.exchange()
        (queued,) = await machine.store.pending_messages("s")
        assert (queued.id, queued.sender) == ("fleet-hello", "boss via localhost")
        assert queued.text == "[message from boss via localhost] hello"
        assert queued.expires == machine.now + 70
        assert await machine.server_states() == {"hello": "handed"}
        machine.now += 60  # the lease is over, but the machine holds it
        await machine.uplink.exchange()
        assert (machine.sender.batches[-1].held, machine.uplink.status().received) == (["hello"], 1)
        delivered = MarkMessage("fleet-hello", "delivered", PENDING_STATES, machine.now)
        await machine.store.write([delivered])
        await machine.uplink.exchange()
        assert await machine.server_states() == {"hello": "delivered"}
        await machine.call(2)
        await machine.uplink.exchange()
        assert machine.sender.batches[-1].delivered == []

    use_machine(path, use)


def test_message_in_a_lost_reply_is_sent_again(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        await machine.send_from_server("hello")
        await machine.call(2)
        machine.sender.failures = ["lost"]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        assert await machine.local_states() == {}
        await machine.uplink.exchange()
        assert await machine.local_states() == {}  # still leased to the lost reply
        machine.now += POLL_INTERVAL_S + 1
        await machine.uplink.exchange()
        assert await machine.local_states() == {"fleet-hello": "queued"}

    use_machine(path, use)


def test_later_message_waits_for_one_in_a_lost_reply(path: Path) -> None:
    """Those of other sessions do not wait."""

    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.call(1, session="other")
        await machine.uplink.exchange()
        await machine.send_from_server("first")
        await machine.call(2)
        machine.sender.failures = ["lost"]
        with pytest.raises(UplinkFailed):
            await machine.uplink.exchange()
        await machine.send_from_server("second")
        await machine.send_from_server("to the other", "other")
        machine.now += 1
        await machine.uplink.exchange()
        assert list(await machine.local_states()) == ["fleet-to the other"]
        machine.now += DELIVERY_LEASE_S
        await machine.uplink.exchange()
        stored = [each.id for each in await machine.store.messages("s")]
        assert stored == ["fleet-first", "fleet-second"]

    use_machine(path, use)


def test_message_waits_for_one_that_another_replica_hands_out_meanwhile(path: Path) -> None:
    """Both replicas had read the messages before either handed them out."""

    class SlowStore(MemoryStore):
        async def machine_deliveries(
            self, machine: str, since: float
        ) -> tuple[list[Message], list[HandoffRow]]:
            messages, handoffs = await super().machine_deliveries(machine, since)
            if messages:
                await self.write([MarkMessage("first", "handed", ("queued",), 1_000_000.0)])
            return messages, handoffs

    async def use(machine: Machine) -> None:
        machine.server = server = SlowStore()
        machine.sender.routes = UplinkRoutes(server, lambda: machine.now)
        await machine.call(1)
        await machine.uplink.exchange()
        await machine.send_from_server("first")
        await machine.send_from_server("second")
        await machine.call(2)
        await machine.uplink.exchange()
        assert await machine.local_states() == {}

    use_machine(path, use)


def test_message_cancelled_at_the_server_is_not_delivered(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        await machine.send_from_server("hello")
        await machine.call(2)
        await machine.uplink.exchange()
        await machine.server.write([MarkMessage("hello", "cancelled", PENDING_STATES, 1.0)])
        await machine.call(3)
        await machine.uplink.exchange()
        assert await machine.local_states() == {"fleet-hello": "cancelled"}

    use_machine(path, use)


def test_message_follows_a_session_that_moves_to_another_machine(path: Path) -> None:
    """A session belongs to the machine that reported it last."""

    async def use(machine: Machine) -> None:
        await machine.call(1)
        await machine.uplink.exchange()
        await machine.send_from_server("hello")
        await machine.call(2)
        await machine.uplink.exchange()
        await machine.uplink.exchange()  # the message has changed the session
        session = UplinkSession("s", "claude", machine.now)
        taken_over = UplinkBatch("m2", sessions=[session], receive="all")
        machine.now += 31
        reply = await machine.sender.routes.take(taken_over)
        assert [each.id for each in reply.messages] == ["hello"]
        await machine.uplink.exchange()
        assert await machine.local_states() == {"fleet-hello": "cancelled"}

    use_machine(path, use)


def test_levels_of_the_server_are_not_sent_to_a_machine(path: Path) -> None:
    """They fired for telemetry; the machine has levels of its own."""

    async def use(machine: Machine) -> None:
        level = Message("level", "s", "50 %", 1.0, thread="main", cycle=0, level=50.0)
        await machine.server.write(
            [RecordSignal(SignalRow("s", "main", 0, "level", 1.0), (level,))]
        )
        await machine.call(1)
        await machine.uplink.exchange()
        assert await machine.local_states() == {}

    use_machine(path, use)


def test_old_document_of_the_server_is_not_sent(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        at = machine.now - DOCUMENT_LIFETIME_S - 1
        document = HandoffRow("d", "s", at, "plan.md", "00", "Go on", "boss", 0, None)
        await machine.server.write([PutHandoff(document)])
        await machine.uplink.exchange()
        assert await machine.store.handoffs("s") == []

    use_machine(path, use)


def test_document_of_the_server_is_stored_once_and_its_use_reported(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1, 2)
        await machine.uplink.exchange()
        document = HandoffRow("d", "s", machine.now, "plan.md", "00", "Go on", "boss", 0, None)
        await machine.server.write([PutHandoff(document)])
        await machine.call(3)
        await machine.uplink.exchange()
        (stored,) = await machine.store.handoffs("s")
        assert (stored.id, stored.text) == ("fleet-d", "Go on")
        assert stored.path == "received from localhost: plan.md"
        assert (stored.author, stored.cycle, stored.calls) == ("boss via localhost", 0, 3)
        machine.restart()
        machine.now += 1
        for number in (4, 5):
            await machine.call(number)
            await machine.uplink.exchange()
        assert machine.sender.batches[-1].documents == ["d"]
        assert await machine.store.handoffs("s") == [stored]
        await machine.store.write([UseHandoff("fleet-d", machine.now)])
        await machine.uplink.exchange()
        (row,) = await machine.server.handoffs("s")
        assert row == replace(document, used_at=machine.now)

    use_machine(path, use)


def test_problem_is_logged_once_and_its_end_too(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def use(machine: Machine) -> None:
        await machine.call(1)
        for _ in range(3):
            machine.sender.failures = [UplinkFailed("no token")]
            with pytest.raises(UplinkFailed) as raised:
                await machine.uplink.exchange()
            machine.uplink.note_failure(raised.value)
            machine.now += 5
        status = machine.uplink.status()
        assert (status.problem, status.behind, status.failures) == ("no token", 1, 3)
        assert status.lag_s == 15.0
        await machine.uplink.exchange()
        status = machine.uplink.status()
        assert (status.problem, status.behind, status.lag_s) == (None, 0, 0.0)
        assert status.last_success_at == machine.now

    use_machine(path, use)
    lines = [record.message for record in caplog.records]
    assert lines == [
        "http://localhost: no token; will retry",
        "http://localhost: the fleet's server takes batches again",
    ]


def test_loop_retries_after_the_pause_that_the_server_asks_for(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await machine.call(1)
        machine.sender.failures = [UplinkFailed("busy", retry_after_s=0.2), UplinkFailed("down")]
        began = time.monotonic()
        task = asyncio.create_task(machine.uplink.run())
        while not machine.sender.batches:
            await asyncio.sleep(0.01)
        # The second pause is twice the first, with jitter.
        assert time.monotonic() - began >= 0.2 + 0.02
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert machine.sender.is_closed
        assert machine.uplink.status().failures == 2

    use_machine(path, use)


def test_pause_doubles_after_each_failure_up_to_its_maximum(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = [min(0.02 * 2**number, MAX_PAUSE_S) for number in range(12)]
    pauses: list[float] = []

    async def note(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) == len(longest):
            raise asyncio.CancelledError

    async def use(machine: Machine) -> None:
        await machine.call(1)
        machine.sender.failures = [UplinkFailed("down") for _ in longest]
        monkeypatch.setattr(exchange, "asyncio", SimpleNamespace(sleep=note))
        with pytest.raises(asyncio.CancelledError):
            await machine.uplink.run()

    use_machine(path, use)
    assert longest[-2:] == [MAX_PAUSE_S, MAX_PAUSE_S]
    for pause_s, longest_s in zip(pauses, longest, strict=True):
        assert longest_s / 2 <= pause_s <= longest_s  # with jitter


def test_rows_are_stored_for_the_session_that_they_are_part_of(path: Path) -> None:
    async def use(machine: Machine) -> None:
        session = UplinkSession("s", "claude", machine.now, calls=[call_row(7, "foreign")])
        await machine.sender.routes.take(UplinkBatch("m1", sessions=[session]))
        assert await machine.server.calls("foreign") == []
        assert [row.call for row in await machine.server.calls("s")] == ["c7"]

    use_machine(path, use)


async def store_telemetry(machine: Machine, session: str, agent: str) -> None:
    """Store a call that a client has just reported by its telemetry."""
    main = ThreadRow(session, "main", 0, 1, "telemetry", "measured", sent=1, calls=1)
    call = replace(call_row(1, session), call="req_1", at=machine.now - 1)
    row = SessionRow(session, agent, machine.now)
    await machine.store.write([PutSession(row), PutThread(main), PutCall(call)])


def test_telemetry_waits_until_no_transcript_can_replace_it(path: Path) -> None:
    """The calls have other ids in the transcript: at the server they would count twice."""

    async def use(machine: Machine) -> None:
        await store_telemetry(machine, "s", "claude")
        await store_telemetry(machine, "other", "unread")  # which has no transcript that is read
        await machine.call(1, session="later")
        await machine.uplink.exchange()
        assert {row.id for row in await machine.server.sessions()} == {"other", "later"}
        await machine.uplink.exchange()
        assert len(machine.sender.batches) == 1  # the others are not sent again
        machine.restart()
        machine.now += TELEMETRY_HOLD_S
        await machine.uplink.exchange()
        assert [row.call for row in await machine.server.calls("s")] == ["req_1"]

    use_machine(path, use)


def test_session_whose_id_another_machine_has_is_sent(path: Path) -> None:
    """Goose's ids are the day and a number: two machines have the same ones."""

    async def use(machine: Machine) -> None:
        await store_telemetry(machine, "20260102_1", "goose")
        await machine.call(1, session="later")
        machine.now += TELEMETRY_HOLD_S
        await machine.uplink.exchange()
        assert {row.id for row in await machine.server.sessions()} == {"later"}

    use_machine(path, use)


def test_transcript_replaces_telemetry_before_it_is_sent(path: Path) -> None:
    async def use(machine: Machine) -> None:
        await store_telemetry(machine, "s", "claude")
        await machine.uplink.exchange()
        await machine.store.write([ClaimSession("s", "local")])
        await machine.call(1)
        await machine.uplink.exchange()
        assert [row.call for row in await machine.server.calls("s")] == ["c1"]

    use_machine(path, use)
