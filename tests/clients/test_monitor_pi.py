"""Pi with our extension and a real daemon: how it differs from the other clients."""

from __future__ import annotations

import pytest

from .monitored import Pi
from .monitored.assertions import HANDOFF_START, signals_of
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import hand_over

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Pi)


@retry_slow_hooks
def test_handoff_waits_for_a_prompt_after_a_compaction_at_the_end_of_a_turn(agent: Pi) -> None:
    """Pi compacts when the turn is over: the document waits for the next prompt, and does not start
    a turn by itself."""
    # It keeps the newest 100 tokens, so that a turn of few short steps could not be compacted.
    scenario = agent.steps(2, agent.ramp(0.03, 0.3, after=0.1), hand_over(agent.shell))
    run = agent.run(scenario)
    assert [one.thread for one in run.billed] == [*["main"] * 4, "compaction"]
    again = agent.run(agent.steps(1, agent.ramp(0.1)))
    assert [body.count(HANDOFF_START) for body in agent.requests(again)] == [1, 1]
    assert signals_of(agent.timeline(run)).count(("compacted", 0, 0.0)) == 1
