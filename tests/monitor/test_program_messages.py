"""Messages that a program takes without a hook, and the source of sessions that it reports."""

from pathlib import Path

from brimline.agents.observations import Observation, Reply
from brimline.context.events import Call
from brimline.context.inbox import DELIVERY_LEASE_S
from brimline.context.usage import Usage
from brimline.monitor.hook_reply import SENT_AGAIN

from .agent import MODEL, Agent, RecordingEnvironment


async def push(agent: Agent, number: int, sent: int, name: str = "my-agent") -> None:
    """Report a call as a program does."""
    agent.time += 1
    call = Call(id=f"c{number}", usage=Usage(sent, 0, 0, 5), model=MODEL, at=agent.time)
    await agent.monitor.observe(
        Observation(f"e{number}", name, "s1", "pushed", agent.time, events=(call,))
    )


async def test_message_is_handed_out_again_until_it_is_acknowledged(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await push(agent, 1, 50_000)
    await agent.monitor.send("s1", "first")
    await agent.monitor.send("s1", "second", "urgent")
    first = await agent.monitor.take_messages("s1")
    assert [message.text for message in first] == [
        "[message from user] second",
        "[message from user] first",
    ]
    assert await agent.monitor.take_messages("s1") == []
    await agent.monitor.mark_delivered(Reply(message_ids=(first[0].id,)))
    agent.time += DELIVERY_LEASE_S
    (again,) = await agent.monitor.take_messages("s1")
    assert (again.id, again.text) == (first[1].id, f"{SENT_AGAIN}\n[message from user] first")


async def test_level_message_has_the_figure_of_the_moment_after_a_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await push(agent, 1, 105_000)
    await push(agent, 2, 120_000)
    agent.new_monitor()
    (level,) = await agent.monitor.take_messages("s1")
    assert "is at 60% (120K of 200K tokens)" in level.text


async def test_unknown_session_and_one_that_is_being_cleared_get_no_messages(
    tmp_path: Path,
) -> None:
    class ClearingEnvironment(RecordingEnvironment):
        is_clearing = False

        def is_muted(self, session: str) -> bool:
            return self.is_clearing

    agent = Agent(tmp_path)
    agent.environment = environment = ClearingEnvironment()
    agent.new_monitor()
    await agent.monitor.send("s1", "hello")
    assert await agent.monitor.take_messages("s1") == []
    await push(agent, 1, 50_000)
    environment.is_clearing = True
    assert await agent.monitor.take_messages("s1") == []
    environment.is_clearing = False
    assert len(await agent.monitor.take_messages("s1")) == 1


async def test_source_is_the_program_until_a_transcript_is_known(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await push(agent, 1, 50_000, "claude")
    assert agent.monitor.reading("s1").source == "program"
    agent.new_monitor()
    await push(agent, 1, 50_000, "claude")  # a duplicate
    await push(agent, 2, 51_000, "claude")
    assert agent.monitor.reading("s1").source == "program"
    agent.call(60_000)
    await agent.observe("prompt")
    assert agent.monitor.reading("s1").source == "transcript"
