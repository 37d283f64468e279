"""opencode with our plugin and a real daemon: how it differs from the other clients."""

from __future__ import annotations

import pytest

from brimline.testing.fake_model import Ramp

from .monitored import Opencode
from .monitored.assertions import HANDOFF_START, check_handoff_returns
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import brimline

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Opencode)


@retry_slow_hooks
def test_handoff_stays_in_the_next_run(agent: Opencode) -> None:
    """The document that returned after a compaction is still there in the next run."""
    check_handoff_returns(agent, agent.compact())
    again = agent.run(agent.steps(0, agent.ramp(0.1)))
    assert [body.count(HANDOFF_START) for body in agent.requests(again)] == [1]


@retry_slow_hooks
def test_message_waits_for_the_next_prompt(agent: Opencode) -> None:
    """A plugin cannot keep a turn from ending: a message comes with the next prompt."""
    send = agent.shell(f'{brimline("send")} {agent.session_word} "Look at the tests."')
    first = agent.run(agent.steps(0, Ramp(), send))
    assert [str(agent.user_texts(body)).count("Look at") for body in agent.requests(first)] == [
        0,
        0,
    ]
    second = agent.run(agent.steps(1, Ramp()))
    assert [str(agent.user_texts(body)).count("Look at") for body in agent.requests(second)] == [
        1,
        1,
    ]
