"""Pi with our extension and a real daemon: what is not so with the others."""

from __future__ import annotations

import pytest

from .monitored import Pi
from .monitored.fixtures import in_time, running
from .monitored.found import BEGIN, kinds
from .monitored.script import handing_over

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Pi)


@in_time
def test_compaction_at_the_end_of_a_turn(agent: Pi) -> None:
    """Pi compacts when the turn is over: the document waits for the next prompt, and does not make
    the agent go on by itself."""
    # It keeps the newest 100 tokens, so that a turn of one short step could not be compacted.
    scenario = agent.steps(1, agent.ramp(0.05, 0.44, after=0.1), handing_over(agent.shell))
    run = agent.run(scenario)
    assert [one.thread for one in run.billed] == ["main", "main", "main", "compaction"]
    again = agent.run(agent.steps(1, agent.ramp(0.1)))
    assert [body.count(BEGIN) for body in agent.asked(again)] == [1, 1]
    assert kinds(agent.timeline(run)).count(("compacted", 0, 0.0)) == 1
