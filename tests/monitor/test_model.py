"""Whole sessions against a model: whatever comes, in whatever order, the outcome is the model's.

The model is a few lines: a list of what calls sent in the present cycle, and the levels that are
told once in it. The monitor gets the same by hooks, status lines and a transcript: doubled, late,
out of order, with a clock that jumps, across restarts.
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

from brimline.handoff import Document
from brimline.monitor.monitor import MAX_CALLS_IN_MEMORY
from brimline.observations import DUPLICATE, Observation, ObservationKind, Reply
from brimline.usage import Usage
from brimline.windows import Overrides
from hypothesis_examples import examples

from .agent import Agent

T = TypeVar("T")
LEVELS = (50.0, 65.0)
WINDOW = 200_000

SENT = st.integers(min_value=1_000, max_value=260_000)


class Model:
    """What must be so: the last call of this cycle, and the levels that were told in each cycle."""

    def __init__(self) -> None:
        self.cycle = 0
        self.sent: int | None = None
        self.calls = 0
        self.told: list[tuple[int, float]] = []
        self.done = self.left = 0.0

    def observed(self) -> None:
        """Somebody looks: the highest level that is reached is told, if none so high was."""
        self.fell()
        done = max(self.done, self.left)
        reached = [level for level in LEVELS if done < level <= self.percent]
        if reached:
            self.done = max(reached)
            self.told.append((self.cycle, self.done))

    @property
    def percent(self) -> float:
        """How full it is, as it is shown."""
        return 0.0 if self.sent is None else round(100 * self.sent / WINDOW, 1)

    def fell(self) -> None:
        """Somebody looks, and tells nothing: levels that were left are armed."""
        if self.sent is not None:
            self.left = min(self.left, self.percent)

    def hands_over(self) -> None:
        """Levels are armed anew; those that the figure has not left since are done with."""
        self.left, self.done = max(self.left, self.done), 0.0
        self.observed()

    def ends(self) -> None:
        """A cycle ends."""
        self.cycle += 1
        self.sent = None
        self.done = self.left = 0.0


class Sessions(RuleBasedStateMachine):
    """One session of a client, its transcript, its hooks and its status line."""

    kept_calls = MAX_CALLS_IN_MEMORY

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        overrides = Overrides({"*": WINDOW})  # the user's own is kept, whatever is sent
        self.agent = Agent(Path(self._folder.name), None, self.kept_calls, overrides=overrides)
        self.model = Model()
        self.heard: list[Observation] = []
        self.delivered: list[str] = []
        self.pending: ObservationKind | None = None

    def teardown(self) -> None:
        """Put everything away."""
        self._runner.close()
        self._folder.cleanup()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a part of the session."""
        return self._runner.run(work)

    def tell(self, what: ObservationKind, **more: Any) -> Reply:
        """A hook tells something, and passes the answer on."""
        heard = self.agent.heard(what, **more)
        self.heard.append(heard)
        return self.hear(heard)

    def hear(self, heard: Observation) -> Reply:
        """The monitor hears it, and the answer reaches the agent."""
        reply = self.do(self.agent.monitor.observe(heard))
        self.do(self.agent.monitor.mark_delivered(reply))
        self.delivered += reply.message_ids
        return reply

    @rule(sent=SENT)
    def call(self, sent: int) -> None:
        """A call is in the transcript; nobody has looked yet."""
        self.agent.call(sent)
        self.model.sent, self.model.calls = sent, self.model.calls + 1

    @rule(sent=SENT, steps=st.lists(st.integers(min_value=0, max_value=9_000), max_size=4))
    def agent_at_work(self, sent: int, steps: list[int]) -> None:
        """Calls that grow, and a hook after each, as in an agent's loop."""
        for step in (0, *steps):
            sent += step
            self.call(sent)
            self.hook("tool")

    @rule(what=st.sampled_from(["prompt", "tool", "stopped"]))
    def hook(self, what: ObservationKind) -> None:
        """A hook of the agent's loop."""
        self.tell(what)
        self.model.observed()

    @rule(sent=SENT)
    def call_that_the_status_line_tells(self, sent: int) -> None:
        """The status line tells a call that is in the transcript as well."""
        self.agent.call(sent)
        self.model.sent, self.model.calls = sent, self.model.calls + 1
        usage = Usage(sent, 0, 0, 0)
        self.tell("status", usage=usage, window=WINDOW)
        self.model.observed()

    @precondition(lambda self: self.heard)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        """Something is told a second time, late, out of order: it has no effect."""
        heard = data.draw(st.sampled_from(self.heard))
        known = self.do(self.agent.store.has_event(heard.id))
        if known:
            assert self.hear(msgspec.structs.replace(heard, is_late=True)) == DUPLICATE

    @precondition(lambda self: self.model.sent is not None)
    @rule(announced=st.booleans(), hooks=st.sampled_from(["none", "before", "after", "twice"]))
    def compaction(self, announced: bool, hooks: str) -> None:
        """A compaction, with or without hooks, which may come before or after its record."""
        if announced:
            self.tell("compacting")  # who compacts is told of no level
        if hooks in ("before", "twice"):
            self.tell("compacted")
        self.agent.boundary()
        if hooks in ("after", "twice"):
            self.tell("compacted")
        self.model.ends()

    @precondition(lambda self: self.model.sent is not None)
    @rule(sent=SENT)
    def compaction_that_does_not_come(self, sent: int) -> None:
        """It is announced, and the next thing is a call."""
        self.tell("compacting")
        self.model.fell()
        self.call(sent)
        self.hook("tool")

    @precondition(lambda self: self.heard)
    @rule()
    def handoff(self) -> None:
        """The agent hands a document over, and nothing has happened since the last hook."""
        self.look()
        document = Document.of("text", "h.md", 1.0)
        self.do(self.agent.monitor.hand_over("s1", document, "agent"))
        self.model.hands_over()

    @rule()
    def restart(self) -> None:
        """The daemon is killed, and another begins."""
        self.agent.new_monitor()

    @rule(seconds=st.floats(min_value=-3_600, max_value=3_600))
    def clock_jumps(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.agent.time += seconds

    @rule()
    def status_that_tells_nothing(self) -> None:
        """Null before a call, all zero after a compaction: no figure."""
        self.tell("status", usage=None, window=WINDOW)
        self.model.observed()
        self.tell("status", usage=Usage(0, 0, 0, 0), window=WINDOW)

    @invariant()
    def levels_are_the_models(self) -> None:
        """Each level once in its cycle and after each handoff, of two that were jumped over one."""
        signals = self.do(self.agent.store.signals("s1"))
        levels = [(row.cycle, row.level) for row in signals if row.kind == "level"]
        assert levels == self.model.told

    @invariant()
    def nothing_is_delivered_twice(self) -> None:
        """A message reaches the agent once."""
        assert len(self.delivered) == len(set(self.delivered))

    @invariant()
    def nothing_of_an_ended_cycle_waits(self) -> None:
        """A level's message is cancelled when its cycle ends, once that is known."""
        if self.agent.monitor.state_of("s1") is None:
            return
        known = self.agent.monitor.reading("s1").cycle
        waiting = self.do(self.agent.store.pending_messages("s1"))
        assert all(message.cycle is None or message.cycle >= known for message in waiting)

    def look(self) -> None:
        """A hook, after which the reading is the model's."""
        self.tell("tool")
        self.model.observed()
        sent, _, cycle = self.agent.reading()
        assert (sent, cycle) == (self.model.sent, self.model.cycle)

    @precondition(lambda self: self.model.calls > 0)
    @rule()
    def reading_is_the_models(self) -> None:
        """After any hook the reading is what the last call sent, or unknown."""
        self.look()


class SessionsWithFewCalls(Sessions):
    """The same, with only the last calls of the session in memory."""

    kept_calls = 2


TestSessions = Sessions.TestCase
TestSessions.settings = settings(examples(60), stateful_step_count=30, deadline=None)
TestSessionsWithFewCalls = SessionsWithFewCalls.TestCase
TestSessionsWithFewCalls.settings = settings(examples(40), stateful_step_count=30, deadline=None)
