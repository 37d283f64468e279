"""Random sessions against a model of a few lines: last call of the cycle, levels signalled in it.

The monitor gets the same by hooks, status lines and a transcript: repeated, late, out of order,
with a clock that jumps, across restarts.
"""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from brimline.agents.observations import DUPLICATE, Observation, ObservationKind, Reply
from brimline.context.usage import Usage
from brimline.context.window import Overrides
from brimline.handoff import Document
from brimline.monitor.monitor import MAX_CALLS_IN_MEMORY
from hypothesis_examples import examples

from .agent import Agent

T = TypeVar("T")
LEVELS = (50.0, 65.0)
WINDOW = 200_000

SENT = st.integers(min_value=1_000, max_value=260_000)


class Model:
    """The expected last call of this cycle and the levels signalled in each cycle."""

    def __init__(self) -> None:
        self.cycle = 0
        self.sent: int | None = None
        self.calls = 0
        self.fell_from: int | None = None
        self.signalled: list[tuple[int, float]] = []
        self.signalled_level = self.rearm_level = 0.0

    def called(self, sent: int) -> None:
        """Two calls after a large fall show that the context was cleared without a record."""
        before, self.calls = self.sent, self.calls + 1
        if before is not None and _is_large_fall(self.fell_from, sent):
            self.end_cycle()
        elif _is_large_fall(before, sent):
            self.fell_from = before
        else:
            self.fell_from = None
        self.sent = sent

    def observed(self) -> None:
        """Signal the highest level that is newly reached."""
        self.fell()
        settled_level = max(self.signalled_level, self.rearm_level)
        reached = [level for level in LEVELS if settled_level < level <= self.percent]
        if reached:
            self.signalled_level = max(reached)
            self.signalled.append((self.cycle, self.signalled_level))

    @property
    def percent(self) -> float:
        return 0.0 if self.sent is None else round(100 * self.sent / WINDOW, 1)

    def fell(self) -> None:
        """Lower the re-arm level to the current percentage."""
        if self.sent is not None:
            self.rearm_level = min(self.rearm_level, self.percent)

    def hand_over(self) -> None:
        """Re-arm the levels below which the context has fallen since."""
        self.rearm_level, self.signalled_level = max(self.rearm_level, self.signalled_level), 0.0
        self.observed()

    def end_cycle(self) -> None:
        self.cycle += 1
        self.sent = self.fell_from = None
        self.signalled_level = self.rearm_level = 0.0


def _is_large_fall(before: int | None, after: int) -> bool:
    return before is not None and after < 0.6 * before and before - after > 20_000


class Sessions(RuleBasedStateMachine):
    """One session of a client: its transcript, hooks and status line."""

    max_calls = MAX_CALLS_IN_MEMORY

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        overrides = Overrides({"*": WINDOW})  # the user's window holds, however much is sent
        # Levels of the window alone: a limit that is learned from the compactions moves no level.
        self.agent = Agent(
            Path(self._folder.name), None, self.max_calls, overrides=overrides, of="window"
        )
        self.model = Model()
        self.observations: list[Observation] = []
        self.delivered: list[str] = []
        self.pending: ObservationKind | None = None

    def teardown(self) -> None:
        self._runner.close()
        self._folder.cleanup()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def observe(self, what: ObservationKind, **more: Any) -> Reply:
        """A hook sends an observation and delivers the reply."""
        observation = self.agent.observation(what, **more)
        self.observations.append(observation)
        return self.process(observation)

    def process(self, observation: Observation) -> Reply:
        """The monitor processes an observation; the reply is delivered."""
        reply = self.run(self.agent.monitor.observe(observation))
        self.run(self.agent.monitor.mark_delivered(reply))
        self.delivered += reply.message_ids
        return reply

    @rule(sent=SENT)
    def call(self, sent: int) -> None:
        """Append a call that no hook has reported yet."""
        self.agent.call(sent, output=0)
        self.model.called(sent)

    @rule(sent=SENT, steps=st.lists(st.integers(min_value=0, max_value=9_000), max_size=4))
    def agent_at_work(self, sent: int, steps: list[int]) -> None:
        """Growing calls with a hook after each, as in an agent's loop."""
        for step in (0, *steps):
            sent += step
            self.call(sent)
            self.hook("tool")

    @rule(what=st.sampled_from(["prompt", "tool", "stopped"]))
    def hook(self, what: ObservationKind) -> None:
        self.observe(what)
        self.model.observed()

    @rule(sent=SENT)
    def call_with_status_line(self, sent: int) -> None:
        """The status line reports a call that is in the transcript too."""
        self.agent.call(sent, output=0)
        self.model.called(sent)
        usage = Usage(sent, 0, 0, 0)
        self.observe("status", usage=usage, window=WINDOW)
        self.model.observed()

    @precondition(lambda self: self.observations)
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        """A repeated late observation has no effect."""
        observation = data.draw(st.sampled_from(self.observations))
        known = self.run(self.agent.store.known_events([observation.id]))
        if known:
            assert self.process(msgspec.structs.replace(observation, is_late=True)) == DUPLICATE

    @precondition(lambda self: self.model.sent is not None)
    @rule(announced=st.booleans(), hooks=st.sampled_from(["none", "before", "after", "twice"]))
    def compaction(self, announced: bool, hooks: str) -> None:
        """A compaction whose hooks are missing, or come before or after its record."""
        if announced:
            self.observe("compacting")  # no level fires during a compaction
        if hooks in ("before", "twice"):
            self.observe("compacted")
        self.agent.boundary()
        if hooks in ("after", "twice"):
            self.observe("compacted")
        self.model.end_cycle()

    @precondition(lambda self: self.model.sent is not None)
    @rule()
    def unrecorded_clear(self) -> None:
        """A clear that only a hook reports."""
        self.observe("cleared")
        self.model.end_cycle()

    @precondition(lambda self: self.model.sent is not None)
    @rule(sent=SENT)
    def aborted_compaction(self, sent: int) -> None:
        """A compaction is announced, and the next record is a call."""
        self.observe("compacting")
        self.model.fell()
        self.call(sent)
        self.hook("tool")

    @precondition(lambda self: self.observations)
    @rule()
    def handoff(self) -> None:
        """The agent hands a document over right after a hook."""
        self.check_reading()
        document = Document.of("text", "h.md", 1.0)
        self.run(self.agent.monitor.hand_over("s1", document, "agent"))
        self.model.hand_over()

    @rule()
    def restart(self) -> None:
        self.agent.new_monitor()

    @rule(seconds=st.floats(min_value=-3_600, max_value=3_600))
    def clock_jumps(self, seconds: float) -> None:
        self.agent.time += seconds

    @rule()
    def status_line_without_usage(self) -> None:
        """Usage is null before the first call and all zero after a compaction."""
        self.observe("status", usage=None, window=WINDOW)
        self.model.observed()
        self.observe("status", usage=Usage(0, 0, 0, 0), window=WINDOW)

    @invariant()
    def levels_match_the_model(self) -> None:
        """Each level once per cycle and handoff; only the higher of two that were passed at
        once."""
        signals = self.run(self.agent.store.signals("s1"))
        levels = [(row.cycle, row.level) for row in signals if row.kind == "level"]
        assert levels == self.model.signalled

    @invariant()
    def nothing_is_delivered_twice(self) -> None:
        assert len(self.delivered) == len(set(self.delivered))

    @invariant()
    def no_level_of_an_ended_cycle_is_pending(self) -> None:
        if self.agent.monitor.state_of("s1") is None:
            return
        known = self.agent.monitor.reading("s1").cycle
        waiting = self.run(self.agent.store.pending_messages("s1"))
        assert all(message.cycle is None or message.cycle >= known for message in waiting)

    def check_reading(self) -> None:
        """Send a hook, then compare the reading with the model's."""
        self.observe("tool")
        self.model.observed()
        sent, _, cycle = self.agent.reading()
        assert (sent, cycle) == (self.model.sent, self.model.cycle)

    @precondition(lambda self: self.model.calls > 0)
    @rule()
    def reading_matches_the_model(self) -> None:
        self.check_reading()


class SessionsWithFewCalls(Sessions):
    """The same with only the last two calls in memory."""

    max_calls = 2


TestSessions = Sessions.TestCase
TestSessions.settings = settings(examples(60), stateful_step_count=30, deadline=None)
TestSessionsWithFewCalls = SessionsWithFewCalls.TestCase
TestSessionsWithFewCalls.settings = settings(examples(40), stateful_step_count=30, deadline=None)
