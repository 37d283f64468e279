"""What came in since the last call: its estimate, and levels that fire before that call."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Rewound
from brimline.context.tracker import Session, fold
from brimline.context.usage import Usage
from brimline.daemon.notices import Notice, NoticePolicy, NoticeSender
from brimline.handoff import Document
from brimline.monitor.client_figures import MAX_INPUTS, MAX_THREADS, PendingInputs
from brimline.settings import Notify

from .agent import Agent

LARGE = 40_000  # bytes: 16,000 tokens at the rate before anything is learned


class TimedAgent(Agent):
    """An agent whose records have the times of its hooks."""

    def timestamp(self, second: int) -> str:
        return datetime.fromtimestamp(self.time, UTC).isoformat()

    def pending(self) -> int | None:
        return self.monitor.reading(self.session).pending

    async def tool(self, added_bytes: int = 0) -> str | None:
        """Run a tool; return what the agent reads with its result."""
        return (await self.observe("tool", added_bytes=added_bytes)).context

    def levels(self) -> list[tuple[int, float]]:
        return [(each.cycle, each.level) for each in self.environment.signals if each.level]


Scene: TypeAlias = Callable[[TimedAgent], Coroutine[Any, Any, None]]


def play(tmp_path: Path, scene: Scene, **rules: Any) -> None:
    asyncio.run(scene(TimedAgent(tmp_path, of="window", **rules)))


async def reach_early(agent: TimedAgent) -> None:
    agent.call(95_000)
    message = await agent.tool(LARGE)
    assert message is not None
    assert message.startswith(
        "[brimline] Your context is at 47.5% (95K of 200K tokens); about 16K more tokens have just "
        "come in, and with them it is at about 55.5%."
    )


def test_level_fires_with_the_result_by_which_the_next_call_reaches_it(tmp_path: Path) -> None:
    """It fires once; the measured figures do not contain the estimate."""

    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        (row,) = await agent.store.threads("s1")
        assert (row.sent, row.held, row.percent, row.pending) == (95_000, 95_010, 47.5, 16_000)
        (signal,) = agent.environment.signals
        assert (signal.level, signal.percent) == (50.0, 47.5)
        assert signal.text.startswith("about 16K more tokens have just come in")
        agent.call(112_000)
        assert await agent.tool() is None
        assert (agent.pending(), agent.levels()) == (0, [(0, 50.0)])

    play(tmp_path, scene)


def test_level_fired_early_does_not_fire_again_after_a_restart(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        agent.new_monitor()
        assert await agent.tool() is None
        assert agent.pending() is None
        agent.call(112_000)
        assert await agent.tool(400) is None
        assert agent.levels() == [(0, 50.0)]

    play(tmp_path, scene)


def test_level_fired_early_stays_fired_if_the_next_call_stays_below(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        for sent in (97_000, 101_000):
            agent.call(sent)
            assert await agent.tool() is None
        assert agent.levels() == [(0, 50.0)]

    play(tmp_path, scene)


def test_compaction_drops_what_is_pending_and_arms_the_level_again(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        await agent.observe("compacting")
        agent.boundary()
        await agent.observe("compacted")
        assert agent.pending() is None
        agent.call(30_000)
        await agent.tool(10_000)
        assert agent.pending() == 4_000
        agent.call(95_000)
        assert "more tokens have just come in" in (await agent.tool(LARGE) or "")
        assert agent.levels() == [(0, 50.0), (1, 50.0)]

    play(tmp_path, scene)


def test_message_delivered_after_the_call_has_measured_figures_only(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        agent.call(95_000)
        await agent.monitor.observe(agent.observation("stopped", added_bytes=LARGE))
        agent.call(112_000)
        message = await agent.tool()
        assert message is not None
        assert "is at 56% (112K of 200K tokens). About" in message

    play(tmp_path, scene)


def test_setting_lets_only_measured_figures_reach_a_level(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        agent.call(95_000)
        assert await agent.tool(LARGE) is None
        assert agent.pending() == 16_000
        agent.call(112_000)
        assert "is at 56%" in (await agent.tool() or "")

    play(tmp_path, scene, early=False)


def test_handoff_after_an_early_level_does_not_fire_it_again(tmp_path: Path) -> None:
    """The agent hands over before the usage of the call that reaches the level is known."""

    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        document = Document.of("all of it", "/d", 0.0)
        await agent.monitor.hand_over("s1", document, "claude")
        assert await agent.tool(500) is None
        agent.call(112_000)
        assert await agent.tool() is None
        assert agent.levels() == [(0, 50.0)]

    play(tmp_path, scene)


def test_rate_is_learned_from_the_calls_of_the_thread(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        agent.call(20_000)
        await agent.tool(10_000)
        agent.call(22_510)
        await agent.tool(LARGE)
        assert agent.pending() == 10_000

    play(tmp_path, scene)


def test_subagent_has_its_own_pending_inputs(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        agent.call(20_000)
        await agent.tool()
        agent.path = tmp_path / "agent-a1.jsonl"
        usage = {"input_tokens": 95_000, "output_tokens": 10}
        message = {"id": "m", "model": "claude-sonnet-4-5", "usage": usage}
        agent.write_record(
            type="assistant",
            isSidechain=True,
            agentId="a1",
            timestamp=agent.timestamp(0),
            message=message,
        )
        file = Transcript("claude", str(agent.path), 1.0, agent.path.stat().st_size, "s1", "a1")
        agent.path = tmp_path / "session.jsonl"
        reply = await agent.observe("tool", thread="a1", file=file, added_bytes=LARGE)
        assert "more tokens have just come in" in (reply.context or "")
        assert {row.thread: row.pending for row in await agent.store.threads("s1")} == {
            "a1": 16_000,
            "main": None,
        }

    play(tmp_path, scene)


def test_call_of_the_status_line_contains_what_came_in_before(tmp_path: Path) -> None:
    async def scene(agent: TimedAgent) -> None:
        agent.call(20_000)
        await agent.tool(LARGE)
        await agent.status(36_000)
        assert agent.pending() == 0
        await agent.tool(10_000)
        assert agent.pending() == 4_000

    play(tmp_path, scene)


def test_notice_says_that_the_level_is_expected(tmp_path: Path) -> None:
    class Sender(NoticeSender):
        text = ""

        def send(self, notice: Notice) -> None:
            self.text = notice.text

    async def scene(agent: TimedAgent) -> None:
        await reach_early(agent)
        state = agent.monitor.state_of("s1")
        assert state is not None
        settings = Notify(of=("any level",))
        sender = Sender(settings)
        policy = NoticePolicy(settings, agent.rules, sender, lambda: agent.time)
        policy.report_signal(agent.environment.signals[0], state)
        assert sender.text == (
            "Claude Code s1 in /project reaches level 50 with its next call: about 16K more tokens "
            "have just come in, and with them it is at about 55.5%. Context: 48% (95K/200K)"
        )

    play(tmp_path, scene)


def call(id: str, at: float | None, sent: int = 10_000) -> Call:
    return Call(at=at, id=id, usage=Usage(sent, 0, 0, 0))


class Inputs(PendingInputs):
    """The inputs of a thread whose events are folded one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()

    def fold(self, *events: AnyEvent) -> None:
        self.session = fold(self.session, events)
        self.update(self.session.threads)

    def tokens(self) -> int:
        return self.estimate(None)[MAIN]


def test_call_drops_only_what_came_in_before_it() -> None:
    """Claude Code may write a call only after the hook of its tools."""
    inputs = Inputs()
    inputs.add(MAIN, 1.0, 10_000)
    inputs.add(MAIN, 3.0, 20_000)
    inputs.fold(call("a", 2.0))
    assert inputs.tokens() == 8_000
    inputs.fold(call("b", None))
    assert inputs.tokens() == 8_000


def test_results_that_are_reported_again_count_once() -> None:
    inputs = Inputs()
    for at in (1.0, 2.0):
        inputs.add(MAIN, at, 10_000)
    assert inputs.tokens() == 4_000


def test_clock_that_was_set_back_keeps_no_input() -> None:
    inputs = Inputs()
    inputs.add("unseen", 1.0, 10)
    inputs.add(MAIN, 99.0, 10)
    inputs.fold(call("a", 100.0))
    inputs.add(MAIN, 101.0, 10_000)
    inputs.fold(call("b", 10.0))
    assert inputs.tokens() == 0


def test_rewind_drops_what_came_in_on_the_other_branch() -> None:
    inputs = Inputs()
    inputs.add(MAIN, 1.0, 500)
    inputs.fold(call("a", 2.0), call("b", 4.0))
    inputs.add(MAIN, 5.0, 10_000)
    inputs.fold(Rewound(to="a"))
    assert inputs.tokens() == 0


@pytest.mark.parametrize(
    ("size", "growth", "expected"),
    [(10_000, 2_500, 25_000), (10_000, 500, 40_000), (10_000, 13_000, 40_000), (300, 90, 40_000)],
    ids=["learned", "too little", "too much", "too few bytes"],
)
def test_only_a_plausible_growth_is_learned(size: int, growth: int, expected: int) -> None:
    inputs = Inputs()
    inputs.add(MAIN, 0.0, 1)
    inputs.fold(call("a", 1.0))
    inputs.add(MAIN, 2.0, size)
    inputs.fold(call("b", 3.0, 10_000 + growth))
    inputs.add(MAIN, 4.0, 100_000)
    assert inputs.tokens() == expected


def test_two_calls_at_once_teach_nothing() -> None:
    inputs = Inputs()
    inputs.add(MAIN, 0.0, 1)
    inputs.fold(call("a", 1.0))
    inputs.add(MAIN, 2.0, 10_000)
    inputs.fold(call("b", 3.0, 12_000), call("c", 4.0, 12_500))
    inputs.add(MAIN, 5.0, 100_000)
    assert inputs.tokens() == 40_000


def test_memory_is_bounded_if_no_call_can_be_read() -> None:
    inputs = PendingInputs()
    for number in range(2 * MAX_INPUTS):
        inputs.add(MAIN, float(number), 1_000 + number % 2)
    assert inputs.estimate(None)[MAIN] == pytest.approx(0.4 * 1_000 * MAX_INPUTS, abs=1_000)
    for number in range(2 * MAX_THREADS):
        inputs.add(f"a{number}", 1.0, 1)
    assert len(inputs.estimate(None)) == MAX_THREADS
