"""Codex with our hooks and a real daemon: what is not so with the others."""

from __future__ import annotations

import json

import pytest

from brimline.testing.fake_model import Ramp

from .monitored import Codex
from .monitored.fixtures import in_time, running
from .monitored.found import check_handoff, told
from .monitored.script import knock

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Codex)


@in_time
def test_window_of_its_own(agent: Codex) -> None:
    """A smaller window that the user configured is what levels are of."""
    run = agent.run(agent.steps(2, Ramp(start=55_000)), "model_context_window=100000")
    (percent,) = told(agent.asked(run)[-1])
    assert percent >= 65
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 95_000


@in_time
@pytest.mark.parametrize("event", ["PreCompact", "PostCompact"])
def test_daemon_killed_during_a_compaction(agent: Codex, event: str) -> None:
    """Killed while our hook asks it, by a hook of the user's own that runs beside ours."""
    theirs = {event: [{"hooks": [{"type": "command", "command": knock("kill", "start")}]}]}
    agent.theirs = json.dumps({"hooks": theirs})
    agent.write_settings()
    agent.set_up()
    check_handoff(agent, agent.compact())


@in_time
def test_every_answer_is_taken(agent: Codex) -> None:
    """Codex calls none of our hooks failed, whatever it was answered."""
    agent.plain = True
    run = agent.compact()
    went = [line for line in run.stderr.splitlines() if line.startswith("hook: ")]
    assert "hook: PostCompact Completed" in went
    assert not any("Failed" in line for line in went)
