"""Qwen Code with our hooks and a real daemon: how it differs from the other clients."""

from __future__ import annotations

import pytest

from brimline.testing.fake_model import Scenario

from .monitored import Qwen
from .monitored.assertions import levels_reported
from .monitored.fixtures import client_fixture, retry_slow_hooks

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Qwen)


@retry_slow_hooks
def test_subagent_gets_the_level_of_its_own_context(agent: Qwen) -> None:
    """Each thread gets one message, for the higher of the levels that it jumped over."""
    asking, subagent = agent.subagent_script
    main = (*asking, *agent.loop(2))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=agent.ramp(0.7)))
    own = agent.main_requests(run)
    others = [body for body in agent.requests(run) if body not in own]
    assert len(levels_reported(own[-1])) == 1
    assert [len(levels_reported(body)) for body in others][-1] == 1
    (view,) = agent.daemon.get("/v1/sessions")
    assert sorted(each["title"] or each["thread"] for each in view["threads"]) == ["Look", "main"]
