"""Level messages are queued only if something delivers them, and for sessions that are active."""

from pathlib import Path

import pytest

from brimline.agents.observations import Observation
from brimline.context.events import Call
from brimline.context.usage import Usage
from brimline.handoff.document import Document
from brimline.monitor.machine_environment import describe_unreachable
from brimline.monitor.monitor import Monitor
from brimline.monitor.snapshot import PROGRAM, TELEMETRY, TRANSCRIPT
from brimline.store.base import PutSession
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore

from .agent import MODEL, Agent

AFTER_THE_CALLS = 1_900_000_000.0  # later than every record of a transcript


class UnreachableAgent(Agent):
    """An agent without installed hooks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environment.is_reachable = False

    async def levels(self) -> list[float]:
        return [row.level for row in await self.store.signals("s1") if row.kind == "level"]

    async def message_states(self) -> list[str]:
        return [message.state for message in await self.store.messages("s1")]

    async def push(self, sent: int, is_telemetry: bool = False) -> None:
        """Report a call as a program or a client's telemetry does."""
        self.time += 1
        call = Call(id=f"c{sent}", usage=Usage(sent, 0, 0, 5), model=MODEL, at=self.time)
        await self.monitor.observe(
            Observation(
                id=f"e{sent}",
                agent="claude" if is_telemetry else "my-agent",
                session="s1",
                kind="pushed",
                at=self.time,
                events=(call,),
                is_telemetry=is_telemetry,
            )
        )


# Without a delivery.


async def test_level_of_a_session_without_hooks_is_a_signal_and_no_message(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.call(150_000)
    await agent.observe("wrote")
    assert (await agent.levels(), await agent.message_states()) == ([65.0], [])


async def test_first_hook_brings_the_level_that_was_reached_without_hooks_once(
    tmp_path: Path,
) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.call(110_000)
    await agent.observe("wrote")
    agent.call(150_000)
    await agent.observe("wrote")
    agent.new_monitor()
    await agent.observe("wrote")
    assert await agent.message_states() == []
    context = (await agent.observe("tool")).context or ""
    assert (context.count("[brimline]"), "at 75%" in context) == (1, True)
    agent.new_monitor()
    assert (await agent.observe("tool")).context is None
    assert (await agent.levels(), await agent.message_states()) == ([50.0, 65.0], ["delivered"])


async def test_level_of_an_earlier_cycle_or_before_a_handoff_is_not_sent_later(
    tmp_path: Path,
) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.call(150_000)
    await agent.observe("wrote")
    await agent.monitor.hand_over("s1", Document.of("The plan.", "/p", 1.0), "agent")
    assert (await agent.observe("tool")).context is None
    agent.new_monitor()
    agent.boundary()
    agent.call(20_000)
    await agent.observe("wrote")
    assert "[brimline] Your context" not in ((await agent.observe("tool")).context or "")


async def test_program_gets_its_level_when_it_takes_its_messages(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    await agent.push(110_000)
    assert await agent.message_states() == []
    (level,) = await agent.monitor.take_messages("s1")
    assert "is at 55%" in level.text
    await agent.push(150_000)
    (_, critical) = await agent.store.messages("s1")
    assert (critical.state, critical.level) == ("queued", 65.0)


async def test_level_that_telemetry_reports_is_not_queued(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.environment.is_reachable = True  # hooks of this machine, and not of the session's
    await agent.push(150_000, is_telemetry=True)
    assert (await agent.levels(), await agent.message_states()) == ([65.0], [])


# Without a call since the start.


def restarted(agent: Agent) -> Monitor:
    agent.time = AFTER_THE_CALLS
    return agent.new_monitor()


async def test_full_session_from_before_the_start_fires_no_level_until_its_next_turn(
    tmp_path: Path,
) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.environment.is_reachable = True
    agent.call(150_000)
    restarted(agent)
    await agent.observe("wrote")
    await agent.observe("started")
    await agent.status(150_000)
    await agent.observe("prompt", is_late=True)
    assert (await agent.levels(), await agent.message_states()) == ([], [])
    assert "at 75%" in ((await agent.observe("prompt")).context or "")
    assert (await agent.levels(), await agent.message_states()) == ([65.0], ["delivered"])


async def test_call_after_the_start_fires_the_level(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.environment.is_reachable = True
    agent.call(110_000)
    agent.time = 1_794_736_800.0 + 1_800  # half an hour after that call
    agent.new_monitor()
    await agent.observe("wrote")
    assert await agent.levels() == []
    agent.hour += 1
    agent.call(111_000)
    await agent.observe("wrote")
    assert (await agent.levels(), await agent.message_states()) == ([50.0], ["queued"])


async def test_restart_keeps_a_queued_level(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    agent.environment.is_reachable = True
    agent.call(150_000)
    await agent.observe("wrote")
    restarted(agent)
    await agent.observe("wrote")
    assert await agent.message_states() == ["queued"]


# What a sender reads.


async def test_sender_reads_that_nothing_delivers_until_a_hook_came_or_messages_were_taken(
    tmp_path: Path,
) -> None:
    agent = UnreachableAgent(tmp_path)

    async def problem(session: str, is_document: bool = False) -> str | None:
        return await agent.monitor.delivery_problem(session, is_document)

    assert await problem("s1") is None  # a session to come
    agent.call(20_000)
    await agent.observe("wrote")
    assert "`brimline setup claude`" in (await problem("s1") or "")
    agent.environment.is_reachable = True
    assert (await problem("s1"), await problem("s1", is_document=True)) == (None, None)
    agent.environment.is_reachable = False
    await agent.monitor.send("s1", "hello")
    await agent.observe("prompt")
    assert (await problem("s1"), await problem("s1", is_document=True)) == (None, None)
    agent.new_monitor()
    assert await problem("s1") is None  # a hook delivered a message before
    assert await problem("s1", is_document=True) is not None


async def test_program_that_takes_messages_gets_no_documents(tmp_path: Path) -> None:
    agent = UnreachableAgent(tmp_path)
    await agent.push(20_000)
    assert "DaemonSession.messages()" in (await agent.monitor.delivery_problem("s1") or "")
    await agent.monitor.take_messages("s1")
    assert await agent.monitor.delivery_problem("s1") is None
    document = await agent.monitor.delivery_problem("s1", is_document=True)
    assert document is not None
    assert "/v1/sessions/s1/handoff" in document


async def test_message_to_a_cleared_session_is_judged_by_the_one_that_continues_it() -> None:
    store = MemoryStore()
    monitor = Monitor(store, lambda: 10.0)
    rows = [
        SessionRow("s1", "claude", 4.0, became="s2", became_at=5.0),
        SessionRow("s2", "other", 6.0),
        SessionRow("s3", "claude", 6.0, machine="m1"),
    ]
    await store.write([PutSession(row) for row in rows])
    assert await monitor.delivery_problem("s1") == "Brimline has no hooks for other."
    assert await monitor.delivery_problem("s3") is None  # its machine decides


@pytest.mark.parametrize(
    ("agent", "source", "is_document", "words"),
    [
        ("claude", TRANSCRIPT, False, "installed for Claude Code. `brimline setup claude`"),
        ("claude", TRANSCRIPT, True, "Open sessions may need a restart."),
        ("pi", TRANSCRIPT, False, "`brimline setup pi` installs them."),
        ("codex", TELEMETRY, False, "Run `brimline setup codex` and Brimline's daemon on the"),
        ("my-agent", TELEMETRY, True, "Brimline has no hooks for my-agent."),
        ("my-agent", PROGRAM, False, "/v1/sessions/s1/messages/take."),
        ("my-agent", PROGRAM, True, "/v1/sessions/s1/handoff."),
    ],
)
def test_problem_says_how_to_change_it(
    agent: str, source: str, is_document: bool, words: str
) -> None:
    assert words in describe_unreachable(agent, source, "s1", is_document)
