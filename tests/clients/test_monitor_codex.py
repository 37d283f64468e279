"""Codex with our hooks and a real daemon: how it differs from the other clients."""

from __future__ import annotations

import json

import pytest

from brimline.testing.fake_model import Ramp

from .monitored import Codex
from .monitored.assertions import check_handoff_returns, levels_reported
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import request_daemon

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Codex)


@retry_slow_hooks
def test_levels_use_the_configured_window(agent: Codex) -> None:
    """Levels refer to a smaller window that the user configured."""
    run = agent.run(agent.steps(2, Ramp(start=55_000)), "model_context_window=100000")
    (percent,) = levels_reported(agent.requests(run)[-1])
    assert percent >= 65
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 95_000


@retry_slow_hooks
@pytest.mark.parametrize("event", ["PreCompact", "PostCompact"])
def test_daemon_killed_during_a_compaction(agent: Codex, event: str) -> None:
    """The daemon is killed during our hook, by a parallel hook of the user's own."""
    hooks = {event: [{"hooks": [{"type": "command", "command": request_daemon("kill", "start")}]}]}
    agent.user_hooks = json.dumps({"hooks": hooks})
    agent.write_settings()
    agent.set_up()
    check_handoff_returns(agent, agent.compact())


@retry_slow_hooks
def test_codex_accepts_every_answer(agent: Codex) -> None:
    """Codex reports none of our hooks as failed."""
    agent.plain = True
    run = agent.compact()
    results = [line for line in run.stderr.splitlines() if line.startswith("hook: ")]
    assert "hook: PostCompact Completed" in results
    assert not any("Failed" in line for line in results)
