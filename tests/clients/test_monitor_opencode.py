"""opencode with our plugin and a real daemon: what is not so with the others."""

from __future__ import annotations

import pytest

from brimline.testing.fake_model import Ramp

from .monitored import Opencode
from .monitored.fixtures import in_time, running
from .monitored.found import BEGIN, check_handoff
from .monitored.script import brimline

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Opencode)


@in_time
def test_handoff_stays(agent: Opencode) -> None:
    """The document that came back after a compaction is in the next run still."""
    check_handoff(agent, agent.compact())
    again = agent.run(agent.steps(0, agent.ramp(0.1)))
    assert [body.count(BEGIN) for body in agent.asked(again)] == [1]


@in_time
def test_message_waits_for_the_next_prompt(agent: Opencode) -> None:
    """A plugin cannot keep a turn from ending: what somebody sends comes with the next prompt."""
    send = agent.shell(f'{brimline("send")} {agent.session} "Look at the tests."')
    first = agent.run(agent.steps(0, Ramp(), send))
    assert [str(agent.users(body)).count("Look at") for body in agent.asked(first)] == [0, 0]
    second = agent.run(agent.steps(1, Ramp()))
    assert [str(agent.users(body)).count("Look at") for body in agent.asked(second)] == [1, 1]
