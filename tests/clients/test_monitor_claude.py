"""Claude Code with our hooks and a real daemon: what is not so with the others."""

from __future__ import annotations

import pytest

from .monitored import Claude
from .monitored.fixtures import running
from .monitored.found import told

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Claude)


def test_window_of_its_own(agent: Claude) -> None:
    """A 1M model at 300k is warned by its own window: not at all."""
    agent.model = "claude-sonnet-4-5[1m]"
    run = agent.run(agent.steps(2, agent.ramp(1.5)))
    assert told(agent.asked(run)[-1]) == []
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 1_000_000
