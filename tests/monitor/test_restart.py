"""After a restart the monitor knows what it knew before."""

from itertools import count
from pathlib import Path

import msgspec

from brimline.agents.observations import Observation, Reply
from brimline.agents.transcripts.source import Transcript
from brimline.context.client_report import ClientReport, PromptCache, Quota, Quotas, decode_report
from brimline.context.events import AnyEvent, Call, Cleared, Compacted, SessionSeen, WindowReported
from brimline.context.usage import Usage

from .agent import MODEL, Agent

SESSION = "sdk-1"


class Program(Agent):
    """An agent without files that pushes its events."""

    _event_numbers = count(1)
    agent = "my-agent"

    async def push(self, *events: AnyEvent) -> None:
        """Push events, with a restart of the monitor after each."""
        for event in events:
            self.time += 1
            id = f"event-{next(self._event_numbers)}"
            observation = Observation(id, self.agent, SESSION, "pushed", self.time, events=(event,))
            await self.monitor.observe(observation)
            self.new_monitor()

    async def read(self) -> tuple[int | None, int | None, int]:
        """Return sent tokens, window and cycle as stored."""
        (row,) = await self.store.threads(SESSION)
        return row.sent, row.window, row.cycle


def call(id: str, sent: int) -> Call:
    return Call(at=1.0, id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)


async def observe_file(agent: Agent) -> Reply:
    """Send an observation of the transcript that comes from no hook."""
    transcript = Transcript("claude", str(agent.path), agent.time, agent.path.stat().st_size, "s1")
    observation = agent.observation("wrote", file=transcript)
    return await agent.monitor.observe(msgspec.structs.replace(observation, transcript=None))


async def test_levels_fire_after_a_pushed_compaction_or_clear_and_a_restart(tmp_path: Path) -> None:
    agent = Program(tmp_path, of="window")
    await agent.push(call("c1", 104_000), Compacted(at=2.0, trigger="auto"))
    await agent.push(call("c2", 101_000))
    assert await agent.read() == (101_000, 200_000, 1)
    await agent.push(Cleared(), call("c3", 102_000))
    assert await agent.read() == (102_000, 200_000, 2)
    levels = [(s.cycle, s.level) for s in agent.environment.signals if s.kind == "level"]
    assert levels == [(0, 50.0), (1, 50.0), (2, 50.0)]
    assert [row.cycle for row in await agent.store.compactions(SESSION)] == [0]


async def test_last_pushed_window_survives_a_restart(tmp_path: Path) -> None:
    agent = Program(tmp_path)
    await agent.push(WindowReported(tokens=32_000), call("c1", 8_000), call("c2", 9_000))
    assert await agent.read() == (9_000, 32_000, 0)
    await agent.push(WindowReported(tokens=64_000))
    assert await agent.read() == (9_000, 64_000, 0)


async def test_window_of_the_catalogue_is_not_reported_by_the_client_after_a_restart(
    tmp_path: Path,
) -> None:
    agent = Program(tmp_path)
    await agent.push(call("c1", 8_000))
    (before,) = await agent.store.threads(SESSION)
    await agent.push(call("c2", 9_000))
    (after,) = await agent.store.threads(SESSION)
    assert (after.window, after.window_why) == (before.window, before.window_why)
    larger = msgspec.structs.replace(call("c3", 9_500), model="claude-opus-5")
    await agent.push(larger)
    assert await agent.read() == (9_500, 1_000_000, 0)


async def test_version_of_the_client_survives_a_restart(tmp_path: Path) -> None:
    """Claude Code 2.1.197 gave Opus 4.8 a window of 200,000 tokens, newer versions 1,000,000."""
    agent = Program(tmp_path)
    agent.agent = "claude"
    called = msgspec.structs.replace(call("c1", 76_000), model="claude-opus-4-8")
    await agent.push(SessionSeen(version="2.1.197"), called, SessionSeen(title="a title"))
    assert await agent.read() == (76_000, 200_000, 0)


async def test_model_that_the_user_named_survives_a_restart(tmp_path: Path) -> None:
    agent = Program(tmp_path)
    agent.agent = "claude"
    called = msgspec.structs.replace(call("c1", 76_000), asked_for=f"{MODEL}[1m]")
    await agent.push(called, SessionSeen(title="a title"))
    assert await agent.read() == (76_000, 1_000_000, 0)


async def test_branch_of_a_pushed_call_survives_a_restart(tmp_path: Path) -> None:
    """A call that turns out to have written a summary is stored again, in another thread."""
    agent = Program(tmp_path)
    calls = [msgspec.structs.replace(call(id, 76_000), branch="feature/x") for id in ("c1", "c2")]
    await agent.push(*calls, Compacted(at=3.0, summary_call="c2"))
    rows = {(row.thread, row.call): row.branch for row in await agent.store.calls(SESSION)}
    assert rows["main", "c1"] == rows["compaction", "c2"] == "feature/x"


async def test_pushed_overflow_survives_a_restart(tmp_path: Path) -> None:
    """A compaction after a refused request is no sign of the limit, also after a restart."""
    agent = Program(tmp_path)
    refused = Compacted(at=2.0, trigger="auto", overflow=True)
    await agent.push(call("c1", 190_000), refused, call("c2", 20_000))
    (row,) = await agent.store.threads(SESSION)
    assert (row.sent, row.limit) == (20_000, None)
    (compaction,) = await agent.store.compactions(SESSION)
    assert compaction.overflow


async def test_main_thread_is_known_if_a_subagent_reports_first_after_a_restart(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    agent.new_monitor()
    agent.path.with_name("agent-a1.jsonl").write_bytes(b"")
    subagent = Transcript("claude", str(tmp_path / "agent-a1.jsonl"), 1.0, 1, "s1", "a1")
    observation = agent.observation("wrote", file=subagent)
    await agent.monitor.observe(msgspec.structs.replace(observation, transcript=None))
    (row,) = await agent.store.threads("s1")
    assert (row.thread, row.sent) == ("main", 20_000)


async def test_inferred_compaction_is_stored_as_inferred(tmp_path: Path) -> None:
    agent = Program(tmp_path)
    await agent.push(call("c1", 90_000), call("c2", 20_000), call("c3", 21_000))
    assert await agent.read() == (21_000, 200_000, 1)
    (row,) = await agent.store.compactions(SESSION)
    assert (row.cycle, row.after, row.inferred) == (0, 20_000, True)


async def test_calls_from_before_a_restart_do_not_make_hooks_look_broken(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.environment.since = 1.0
    for sent in range(20_000, 30_000, 1_000):
        agent.call(sent)
        await agent.observe("tool")
    agent.new_monitor()
    await observe_file(agent)
    assert agent.environment.signals == []


async def test_ended_session_lives_again_only_with_a_new_call(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    await agent.observe("ended")
    ended = agent.time
    agent.new_monitor()
    await observe_file(agent)
    (row,) = await agent.store.sessions()
    assert (row.seen_at, row.ended_at, row.has_ended) == (ended, ended, True)
    agent.call(21_000)
    await observe_file(agent)
    (row,) = await agent.store.sessions()
    assert not row.has_ended


async def test_forgotten_session_is_stored_and_warned_again_when_it_returns(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    for sent in (20_000, 120_000):
        agent.call(sent)
        await agent.observe("tool")
    await agent.monitor.forget(agent.time)
    assert len(await agent.store.sessions()) == 1
    await agent.monitor.forget(agent.time + 1)
    assert await agent.store.sessions() == []
    assert agent.monitor.state_of("s1") is None
    agent.call(121_000)
    assert "60.5%" in ((await agent.observe("prompt")).context or "")
    assert len(await agent.store.calls("s1")) == 3


async def test_report_of_the_client_survives_a_restart_and_an_older_one_changes_nothing(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    now = agent.time + 1
    quotas = Quotas(now, Quota(50.0, now + 9_000), None)
    cache = PromptCache(at=now, warm=True, expires_at=now + 300)
    await agent.observe("status", quotas=quotas, prompt_cache=cache)
    agent.new_monitor()
    await agent.observe("tool")
    older = Quotas(now - 9, Quota(20.0, now + 9_000))
    late = agent.observation("status", quotas=older, is_late=True)
    await agent.monitor.observe(msgspec.structs.replace(late, at=now - 9))
    (row,) = await agent.store.sessions()
    assert decode_report(row.client_report) == ClientReport(quotas, cache)


async def test_cache_is_computed_after_a_call_that_no_report_followed(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    cache = PromptCache(at=agent.time + 1, warm=True, expires_at=agent.time + 300)
    await agent.observe("status", prompt_cache=cache)
    agent.time += 100
    for is_restarted in (False, True):
        if is_restarted:
            agent.new_monitor()
        else:
            usage = {"input_tokens": 9, "cache_creation_input_tokens": 60_000}
            message = {"id": "m", "model": MODEL, "usage": {**usage, "output_tokens": 9}}
            agent.write_record(type="assistant", timestamp=agent.timestamp(0), message=message)
        await agent.observe("tool")
        (row,) = await agent.store.sessions()
        report = decode_report(row.client_report)
        (call,) = await agent.store.calls("s1")
        assert report.prompt_cache is not None
        assert call.at is not None
        assert report.prompt_cache.origin == "computed"
        assert report.prompt_cache.expires_at == call.at + 300


async def test_quotas_that_a_program_reports_are_stored(tmp_path: Path) -> None:
    program = Program(tmp_path)
    quotas = Quotas(1.0, Quota(50.0, 9_000.0))
    await program.push(SessionSeen(at=1.0, quotas=quotas), call("c1", 9_000))
    row = await program.store.session(SESSION)
    assert row is not None
    assert decode_report(row.client_report) == ClientReport(quotas)
