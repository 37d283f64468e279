"""Sources of the monitor: files without hooks, files of subagents, late and pushed events."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents.observations import Observation, Reply
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Cleared, Compacted, Compacting, Ended
from brimline.context.usage import Usage
from brimline.handoff import Document
from brimline.monitor.session_state import SessionState
from brimline.settings import StopSettings
from brimline.store.rows import ThreadRow

from .agent import MODEL, Agent

SUBAGENT = "a1b2"


def transcript_of(agent: Agent, path: Path | None = None, thread: str = MAIN) -> Transcript:
    path = path or agent.path
    status = path.stat()
    return Transcript("claude", str(path), status.st_mtime, status.st_size, agent.session, thread)


async def observe_file(agent: Agent, path: Path | None = None, thread: str = MAIN) -> Reply:
    """Send an observation of a file that comes from no hook."""
    observation = agent.observation("wrote", file=transcript_of(agent, path, thread))
    return await agent.monitor.observe(msgspec.structs.replace(observation, transcript=None))


def write_subagent_call(agent: Agent, path: Path, number: int, sent: int) -> None:
    """Append a call to a subagent's own file."""
    usage = {"input_tokens": sent, "output_tokens": 10}
    record = {
        "type": "assistant",
        "sessionId": agent.session,
        "isSidechain": True,
        "agentId": SUBAGENT,
        "version": "2.1.325",
        "timestamp": "2026-11-15T10:00:00Z",
        "message": {"id": f"sub_{number}", "model": MODEL, "usage": usage},
    }
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def signal_kinds(agent: Agent) -> list[str]:
    return [signal.kind for signal in agent.environment.signals]


async def test_levels_of_an_unknown_window_are_reported_once(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.version = "2.1.324"  # of which it is not known what it assumes
    for sent in (190_000, 199_000):
        agent.call(sent, model="my-local-model")
        await observe_file(agent)
    assert signal_kinds(agent) == ["no window"]
    agent.new_monitor()
    await observe_file(agent)
    assert signal_kinds(agent) == ["no window"]


@pytest.mark.parametrize("rules", [{"levels": ()}, {"of": "tokens", "levels": (300_000.0,)}])
async def test_unknown_window_matters_only_to_levels_that_need_it(
    tmp_path: Path, rules: dict[str, Any]
) -> None:
    agent = Agent(tmp_path, **rules)
    agent.version = "2.1.324"
    agent.call(199_000, model="my-local-model")
    await observe_file(agent)
    assert signal_kinds(agent) == []


async def test_session_without_hooks_is_followed_by_its_transcript(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await observe_file(agent)
    assert agent.reading() == (20_000, "measured", 0)
    agent.call(150_000)
    assert await observe_file(agent) == Reply()
    agent.boundary()
    agent.call(30_000)
    await observe_file(agent)
    assert agent.reading() == (30_000, "measured", 1)
    assert signal_kinds(agent) == ["level", "compacted"]
    (compaction,) = await agent.store.compactions("s1")
    assert (compaction.cycle, compaction.trigger, compaction.before, compaction.after) == (
        0,
        "auto",
        150_000,
        30_000,
    )
    assert [(c.cycle, c.input) for c in await agent.store.calls("s1")] == [
        (0, 20_000),
        (0, 150_000),
        (1, 30_000),
    ]


async def test_compactions_before_a_session_was_first_seen_are_stored_without_signals(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.parent = "above"
    for _ in range(3):
        agent.call(150_000)
        agent.boundary()
    agent.call(30_000)
    await observe_file(agent)
    assert signal_kinds(agent) == []
    assert len(await agent.store.compactions("s1")) == 3
    assert await agent.store.messages("above") == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_fork_inherits_compactions_without_signals_and_reports_its_own(
    tmp_path: Path, restarts: bool
) -> None:
    """A fork copies the history, with its compactions, after the hook of its start."""
    agent = Agent(tmp_path)
    agent.time = datetime.fromisoformat("2026-11-15T11:00:00Z").timestamp()
    await agent.observe("started")
    if restarts:
        agent.new_monitor()
    for _ in range(2):
        agent.call(80_000)
        agent.boundary()
        await agent.observe("prompt")
    agent.hour = 12
    agent.call(30_000)
    reply = await agent.observe("tool")
    assert (signal_kinds(agent), reply.context) == ([], None)
    assert await agent.store.handoffs("s1") == []
    agent.boundary()
    await agent.observe("tool")
    assert signal_kinds(agent) == ["compacted"]


async def test_compaction_during_downtime_is_signalled_after_the_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(150_000)
    await agent.observe("tool")
    agent.boundary()
    agent.call(30_000)
    agent.new_monitor()
    await observe_file(agent)
    assert signal_kinds(agent) == ["level", "compacted"]


async def test_subagent_is_warned_by_its_own_hooks_about_its_own_window(tmp_path: Path) -> None:
    agent = Agent(tmp_path, stop=StopSettings(last_level=True))
    agent.parent = "p1"
    agent.call(20_000)
    await agent.observe("tool")
    path = tmp_path / f"agent-{SUBAGENT}.jsonl"
    write_subagent_call(agent, path, 1, 140_000)
    await observe_file(agent, path, SUBAGENT)
    threads = {row.thread: row for row in await agent.store.threads("s1")}
    assert threads[MAIN].sent == 20_000
    assert (threads[SUBAGENT].sent, threads[SUBAGENT].percent) == (140_000, 70.0)
    (message,) = await agent.store.messages()  # its parent gets none
    assert (message.session, message.thread, message.urgency) == ("s1", SUBAGENT, "urgent")
    assert not message.blocks_stop
    assert (await agent.observe("tool")).context is None
    reply = await agent.observe("tool", thread=SUBAGENT)
    assert reply.context is not None
    assert "report your results" in reply.context
    assert (await agent.observe("tool", thread=SUBAGENT)).context is None
    assert agent.reading() == (20_000, "measured", 0)


async def test_level_fires_again_after_a_handoff_only_when_reached_again(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(120_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
    agent.call(125_000)
    await agent.observe("tool")
    assert signal_kinds(agent) == ["level"]
    await agent.status(90_000)
    await agent.status(126_000)
    agent.new_monitor()
    await agent.status(128_000)
    assert [(s.level, s.arm) for s in agent.environment.signals] == [(50.0, 0), (50.0, 1)]


async def test_restart_below_a_rearmed_level_lets_it_fire_again(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(120_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
    agent.call(90_000)
    await agent.observe("tool")
    agent.new_monitor()
    agent.call(121_000)
    await agent.observe("tool")
    assert [(s.level, s.arm) for s in agent.environment.signals] == [(50.0, 0), (50.0, 1)]


async def test_handoff_below_a_fired_level_rearms_it(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(120_000)
    await agent.observe("tool")
    agent.call(20_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
    agent.call(120_000)
    await agent.observe("tool")
    assert [(s.level, s.arm) for s in agent.environment.signals] == [(50.0, 0), (50.0, 1)]


async def test_handoff_at_the_higher_level_settles_the_lower_one_too(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(140_000)
    await agent.observe("tool")
    await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
    agent.call(120_000)
    await agent.observe("tool")
    assert [s.level for s in agent.environment.signals] == [65.0]
    agent.call(141_000)
    await agent.observe("tool")
    assert [(s.level, s.arm) for s in agent.environment.signals] == [(65.0, 0), (65.0, 1)]


async def test_handoff_at_the_last_level_is_not_asked_for_again(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(150_000)
    assert (await agent.observe("tool")).context
    await agent.monitor.hand_over("s1", Document.of("text", "h.md", 1.0), "agent")
    agent.call(151_000)
    assert (await agent.observe("tool")).context is None
    agent.new_monitor()
    assert (await agent.observe("tool")).context is None
    assert len(agent.environment.signals) == 1


async def test_lasting_disagreement_of_status_line_and_transcript_is_signalled_once(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.call(50_000)
    for _ in range(4):
        await agent.status(60_000)
    assert signal_kinds(agent) == []
    agent.time += 100
    await agent.status(60_000)
    await agent.status(60_000)
    assert signal_kinds(agent) == ["disagree"]


async def test_status_line_that_was_only_ahead_is_no_disagreement(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(50_000)
    for _ in range(4):
        await agent.status(60_000)
    agent.call(60_000)
    await agent.status(60_000)
    agent.time += 100
    await agent.status(61_000)
    assert signal_kinds(agent) == []


async def test_calls_without_hooks_are_signalled_when_hooks_are_installed(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.environment.since = 1.0
    for sent in range(10_000, 14_000, 1_000):
        agent.call(sent)
        await observe_file(agent)
    await agent.observe("tool")
    for sent in range(20_000, 24_000, 1_000):
        agent.call(sent)
        await observe_file(agent)
    assert signal_kinds(agent) == []
    agent.call(25_000)
    await observe_file(agent)
    await observe_file(agent)
    assert signal_kinds(agent) == ["no data"]


async def test_session_older_than_the_installed_hooks_is_not_signalled(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.environment.since = 4e9
    for sent in range(10_000, 20_000, 1_000):
        agent.call(sent)
        await observe_file(agent)
    assert signal_kinds(agent) == []


async def test_fall_without_a_record_rearms_levels_without_a_draft(tmp_path: Path) -> None:
    """Plan mode clears the context: what it held is not wanted back."""
    agent = Agent(tmp_path)
    for sent in (110_000, 30_000, 32_000, 110_000):
        agent.call(sent)
        assert await agent.observe("wrote") == Reply()
    assert signal_kinds(agent) == ["level", "cleared", "level"]
    assert agent.reading()[2] == 1


async def test_clear_cancels_pending_levels_and_starts_a_cycle(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(120_000)
    await agent.observe("wrote")
    await agent.observe("cleared")
    assert agent.reading() == (None, "unknown", 1)
    assert signal_kinds(agent) == ["level", "cleared"]
    assert [m.state for m in await agent.store.messages("s1")] == ["cancelled"]
    await agent.status(130_000)
    assert [(s.kind, s.cycle) for s in agent.environment.signals][-1] == ("level", 1)


async def test_pushed_compaction_after_a_clear_is_signalled_as_compaction(tmp_path: Path) -> None:
    agent = Agent(tmp_path, of="window")
    calls = [Call(id=id, usage=Usage(20_000, 0, 0, 1), model=MODEL) for id in "abc"]
    for event in (calls[0], Cleared(), calls[1], Compacted(trigger="auto"), calls[2]):
        pushed = agent.observation("pushed", events=(event,))
        await agent.monitor.observe(msgspec.structs.replace(pushed, agent="mine", transcript=None))
    assert signal_kinds(agent) == ["cleared", "compacted"]


async def test_clear_at_the_start_of_a_session_ends_no_cycle(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    await agent.observe("cleared")
    assert agent.reading() == (None, "unknown", 0)
    assert signal_kinds(agent) == []


async def test_pending_warning_is_delivered_when_an_ended_session_resumes(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(120_000)
    await agent.observe("wrote")
    await agent.observe("ended")
    row = await agent.store.session("s1")
    assert row is not None
    assert row.ended_at == agent.time
    assert "60%" in ((await agent.observe("prompt")).context or "")


async def test_spooled_status_line_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    old = agent.observation("status", usage=Usage(10_000, 0, 0, 0), is_late=True)
    await agent.status(60_000)
    await agent.monitor.observe(old)
    assert agent.reading()[0] == 60_000


async def test_spooled_hooks_from_before_a_compaction_do_not_change_the_reading_after_it(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    before = [
        agent.observation("status", usage=Usage(140_000, 0, 0, 0), window=200_000, is_late=True),
        agent.observation("compacting", is_late=True),
    ]
    agent.call(140_000)
    agent.boundary()
    for observation in before:
        await agent.monitor.observe(observation)
    assert agent.reading() == (None, "unknown", 1)
    agent.call(40_000)
    await agent.monitor.observe(
        agent.observation("status", usage=Usage(140_000, 0, 0, 0), is_late=True)
    )
    assert agent.reading() == (40_000, "measured", 1)
    assert signal_kinds(agent) == []


async def test_spooled_compacting_hook_does_not_start_a_compaction(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    late = agent.observation("compacting", is_late=True)
    agent.call(30_000)
    await agent.monitor.observe(late)
    assert agent.reading() == (30_000, "measured", 0)


def push(agent: Agent, event: AnyEvent, id: str) -> Observation:
    return Observation(id, "my-agent", "sdk-1", "pushed", agent.time, events=(event,))


def call(id: str, sent: int) -> Call:
    return Call(at=1.0, id=id, usage=Usage(sent, 0, 0, 10), model=MODEL)


async def test_pushed_event_counts_once_even_after_a_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    usage = Usage(0, 0, 120_000, 10, cache_write_1h=90_000)
    written = Call(at=1.0, id="c0", usage=usage, model=MODEL)
    await agent.monitor.observe(push(agent, written, "e0"))
    await agent.monitor.observe(push(agent, call("c1", 120_000), "e1"))
    assert (await agent.monitor.observe(push(agent, call("c1", 120_000), "e1"))).is_duplicate
    await agent.monitor.observe(push(agent, Compacted(at=2.0, trigger="auto"), "e2"))
    agent.new_monitor()
    assert (await agent.monitor.observe(push(agent, Compacted(at=2.0), "e2"))).is_duplicate
    await agent.monitor.observe(push(agent, call("c2", 30_000), "e3"))
    reading = agent.monitor.reading("sdk-1")
    assert (reading.sent, reading.cycle) == (30_000, 1)
    calls = await agent.store.calls("sdk-1")
    assert [(row.call, row.cycle) for row in calls] == [("c0", 0), ("c1", 0), ("c2", 1)]
    assert calls[0].cache_write_1h == 90_000
    state = agent.monitor.state_of("sdk-1")
    assert state is not None
    assert state.folded.threads["main"].total.cache_write_1h == 90_000
    assert signal_kinds(agent) == ["level", "compacted"]


async def test_pushed_clear_is_no_compaction_and_pushed_end_ends_the_session(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    events: list[AnyEvent] = [call("c1", 50_000), Cleared(), call("c2", 20_000), Compacting()]
    for number, event in enumerate(events):
        await agent.monitor.observe(push(agent, event, f"e{number}"))
    assert signal_kinds(agent) == ["cleared", "compacting"]
    assert agent.monitor.reading("sdk-1").state == "compacting"
    await agent.monitor.observe(push(agent, Compacted(at=3.0), "e8"))
    await agent.monitor.observe(push(agent, Ended(), "e9"))
    assert signal_kinds(agent) == ["cleared", "compacting", "compacted"]
    row = await agent.store.session("sdk-1")
    assert row is not None
    assert row.ended_at == agent.time


async def test_record_after_the_end_does_not_revive_a_session_but_a_call_does(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    await agent.observe("ended")
    agent.write_record(type="summary", summary="Done")
    await observe_file(agent)
    row = await agent.store.session("s1")
    assert row is not None
    assert row.seen_at == row.ended_at
    agent.call(21_000)
    await observe_file(agent)
    row = await agent.store.session("s1")
    assert row is not None
    assert row.seen_at > (row.ended_at or 0.0)


async def test_pushed_calls_compactions_and_clears_are_restored_from_the_store(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    events: list[AnyEvent] = [
        call("c1", 50_000),
        Compacted(at=2.0, trigger="manual"),
        call("c2", 20_000),
        Cleared(),
        call("c3", 10_000),
    ]
    for number, event in enumerate(events):
        await agent.monitor.observe(push(agent, event, f"e{number}"))
    before = agent.monitor.reading("sdk-1")
    agent.new_monitor()
    await agent.monitor.observe(push(agent, call("c4", 11_000), "e9"))
    after = agent.monitor.reading("sdk-1")
    assert (before.sent, before.cycle) == (10_000, 2)
    assert (after.sent, after.cycle) == (11_000, 2)
    state = agent.monitor.state_of("sdk-1")
    assert state is not None
    assert list(state.folded.threads[MAIN].calls) == ["c1", "c2", "c3", "c4"]


async def test_hook_without_a_change_leaves_the_change_marks(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.call(20_000)
    await agent.observe("tool")
    marks = await agent.store.changes()
    for _ in range(5):
        await agent.observe("tool")
    assert await agent.store.changes() == marks
    agent.time += 60
    await agent.observe("tool")
    assert await agent.store.changes() != marks


async def test_thrash_is_reported_to_the_parent(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.parent = "above"
    for _ in range(5):
        agent.call(150_000)
        await agent.observe("tool")
        agent.boundary()
        await agent.observe("compacted")
    thrash = [signal for signal in agent.environment.signals if signal.kind == "thrash"]
    assert thrash
    assert all("times in ten minutes" in signal.text for signal in thrash)
    texts = [message.text for message in await agent.store.messages("above")]
    assert any("times in ten minutes" in text for text in texts)


async def test_stored_calls_are_not_missed_hooks_before_the_transcript_is_read() -> None:
    state = SessionState("claude", "s1")
    state.restore(ThreadRow("s1", MAIN, 0, 0, "transcript", "measured", calls=500), 1.0)
    await state.apply(Observation("1", "claude", "s1", "wrote", 1.0, thread="subagent"))
    assert state.calls_without_hook == 0


async def test_what_another_model_sent_does_not_change_the_window_after_a_switch(
    tmp_path: Path,
) -> None:
    """After /model the client reports the last call with the new model's id and window."""
    agent = Agent(tmp_path)
    long = "claude-opus-5-5"
    for sent in (300_000, 174_000):
        agent.call(sent, model=long)
        await agent.status(sent, 1_000_000, model=long)
    assert agent.monitor.reading("s1").percent == 17.4
    await agent.status(174_000, 200_000)
    switched = agent.monitor.reading("s1")
    assert (switched.percent, switched.window and switched.window.tokens) == (87.0, 200_000)
    assert [signal.level for signal in await agent.store.signals("s1")] == [65.0]
    agent.new_monitor()
    await agent.status(174_000, 200_000)
    assert agent.monitor.reading("s1").percent == 87.0
    agent.call(176_000)
    await agent.observe("tool")
    assert agent.monitor.reading("s1").percent == 88.0


async def test_window_is_disproved_by_what_its_own_model_sent_after_a_switch(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.call(150_000, model="claude-opus-5-5")
    await agent.status(150_000, 200_000)
    await agent.status(210_000, 200_000)
    window = agent.monitor.reading("s1").window
    assert window is not None
    assert (window.tokens, window.origin) == (1_000_000, "observed")
