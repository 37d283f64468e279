"""Calls that telemetry reports: each once, also if the transcript contains them, too."""

from pathlib import Path

import pytest

from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, Call
from brimline.context.usage import Usage

from .agent import MODEL, Agent


class ReportingAgent(Agent):
    """An agent with a transcript whose client also reports its calls by telemetry."""

    time: float

    async def report(self, id: str, sent: int, thread: str = MAIN) -> None:
        usage = Usage(sent, 0, 0, 10)
        await self.report_call(
            Call(at=self.time + 1, id=f"req_{id}", usage=usage, model=MODEL, thread=thread)
        )

    async def report_call(self, event: Call) -> None:
        self.time += 1
        observation = Observation(
            f"telemetry-{event.id}",
            "claude",
            self.session,
            "pushed",
            self.time,
            events=(event,),
            is_telemetry=True,
            host="laptop",
            user="ada@example.org",
            team="core",
        )
        await self.monitor.observe(observation)

    async def observe_file(self) -> None:
        """Report the transcript as the watcher does."""
        size = self.path.stat().st_size
        transcript = Transcript("claude", str(self.path), self.time, size, self.session)
        await self.monitor.observe(self.observation("wrote", file=transcript))

    async def stored(self) -> tuple[list[str], str, int]:
        """Return the ids of the stored calls, and the source and the calls of the main thread."""
        (main,) = await self.store.threads(self.session)
        calls = [row.call for row in await self.store.calls(self.session)]
        return calls, main.source, main.calls


async def test_session_has_the_user_of_its_telemetry(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path)
    await agent.report("1", 60_000)
    row = await agent.store.session("s1")
    assert row is not None
    assert (row.host, row.user, row.team) == ("laptop", "ada@example.org", "core")
    assert await agent.stored() == (["req_1"], "telemetry", 1)


async def test_machine_that_takes_telemetry_is_not_the_host_of_the_client(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path)
    event = Call(id="c", usage=Usage(1, 0, 0, 1))
    seen = Observation("e", "claude", "s1", "pushed", 1.0, events=(event,), is_telemetry=True)
    await agent.monitor.observe(seen)
    row = await agent.store.session("s1")
    assert row is not None
    assert row.host is None


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("by_hook", [False, True])
async def test_transcript_takes_the_place_of_telemetry(
    tmp_path: Path, restart: bool, by_hook: bool
) -> None:
    """Telemetry of the first calls came before the first hook, and before the watcher."""
    agent = ReportingAgent(tmp_path, of="window")
    await agent.report("1", 110_000)
    await agent.report("2", 20_000)  # a fall that the transcript does not have
    await agent.report("3", 9_000, thread="a1")
    if restart:
        agent.new_monitor()
    agent.call(60_000)
    agent.call(110_000)
    await (agent.observe("tool") if by_hook else agent.observe_file())
    assert await agent.stored() == (["msg_1", "msg_2"], "transcript", 2)
    assert agent.reading() == (110_000, "measured", 0)
    assert await agent.store.compactions("s1") == []
    await agent.report("4", 120_000)
    await agent.report("5", 9_000, thread="a1")
    agent.new_monitor()
    await agent.report("6", 9_000, thread="a1")
    assert await agent.stored() == (["msg_1", "msg_2"], "transcript", 2)
    levels = [each.level for each in agent.environment.signals if each.kind == "level"]
    assert levels == [50.0]  # once, though the figures were replaced


async def test_call_with_the_same_id_in_both_is_kept(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path)
    agent.call(60_000)
    await agent.observe("tool")
    state = agent.monitor.state_of("s1")
    assert state is not None
    (same,) = state.folded.threads[MAIN].calls.values()
    other = ReportingAgent(tmp_path)
    await other.report_call(same)
    await other.observe("tool")
    assert await other.stored() == (["msg_1"], "transcript", 1)


async def test_telemetry_after_the_first_hook_is_ignored(tmp_path: Path) -> None:
    """The client writes its transcript with the first call, after the hook of its start."""
    agent = ReportingAgent(tmp_path)
    await agent.observe("started")
    await agent.report("1", 60_000)
    agent.call(60_000)
    await agent.observe("stopped")
    assert await agent.stored() == (["msg_1"], "transcript", 1)


async def test_telemetry_alone_does_not_mean_that_hooks_are_silent(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path)
    agent.environment.since = 1.0
    for number in range(10):
        await agent.report(str(number), 60_000)
    assert [each.kind for each in agent.environment.signals] == []


async def test_telemetry_goes_on_after_a_restart(tmp_path: Path) -> None:
    agent = ReportingAgent(tmp_path)
    await agent.report("1", 60_000)
    agent.new_monitor()
    await agent.report("1", 60_000)
    await agent.report("2", 70_000)
    assert await agent.stored() == (["req_1", "req_2"], "telemetry", 2)
