"""Claude Code with our hooks and a real daemon: what is not so with the others.

It tells usage in its transcript alone, which may be a call or two late, so that levels are too.
"""

from __future__ import annotations

import pytest

from brimline.testing.fake_model import Ramp, Scenario

from .monitored import Claude
from .monitored.fixtures import in_time, running
from .monitored.found import BEGIN, kinds, told
from .monitored.script import DOCUMENT, handing_over
from .scenes import SESSION

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Claude)


@in_time
def test_levels_reach_the_agent_once(agent: Claude) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once."""
    agent.run(agent.steps(1, Ramp(start=95_000)))
    second = agent.run(agent.steps(4, Ramp(start=120_000, step=6_000)))
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == sorted(bodies)


@in_time
def test_jump_over_both_levels(agent: Claude) -> None:
    """A jump over both levels gives one text, the higher."""
    run = agent.run(agent.steps(4, agent.ramp(0.7)))
    (percent,) = told(agent.asked(run)[-1])
    assert percent >= 65


def test_window_of_its_own(agent: Claude) -> None:
    """A 1M model at 300k is warned by its own window: not at all."""
    agent.model = "claude-sonnet-4-5[1m]"
    run = agent.run(agent.steps(2, Ramp(start=300_000)))
    assert told(agent.asked(run)[-1]) == []
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 1_000_000


@in_time
def test_handoff_comes_back(agent: Claude) -> None:
    """The agent hands a document over with its own tool; the first request after the compaction
    holds it, and the levels are reached again in the new cycle."""
    ramp = Ramp(start=70_000, step=10_000, after_compaction=82_000)
    scenario = agent.steps(7, ramp, handing_over(agent.shell))
    run = agent.run(scenario, CLAUDE_CODE_AUTO_COMPACT_WINDOW="170000")
    said = {(kind, cycle) for kind, cycle, _ in kinds(agent.timeline(run))}
    assert {("compacted", 0), ("level", 1)} <= said
    first = agent.after_compaction(run)[0]
    assert (first.count(BEGIN), first.count(DOCUMENT)) == (1, 1)


def test_long_messages_are_read_whole(agent: Claude) -> None:
    """Messages as long as may be come one by one, and the client cuts none of them off."""
    for number in range(3):
        text = f"BEGIN{number} {'x ' * 4_490}END{number}"
        agent.daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": text, "urgent": True})
    last = agent.asked(agent.run(agent.steps(4, Ramp(start=20_000))))[-1]
    assert all(f"BEGIN{number}" in last and f"END{number}" in last for number in range(3))
    assert "persisted-output" not in last
    states = [each["state"] for each in agent.daemon.get(f"/v1/sessions/{SESSION}/messages")]
    assert states == ["delivered"] * 3


def test_http_hooks_carry_their_token(agent: Claude) -> None:
    """Hooks that the client posts reach the daemon on its own port, with their token.

    The hook of the session's start, a command, starts the daemon in the client's own network.
    """
    agent.set_up("--transport", "http")
    agent.daemon.stop()
    slow = Scenario(main=(agent.shell("sleep 3"), *agent.loop(3)), ramp=agent.ramp(0.7))
    try:
        run = agent.go(slow)
    finally:
        status, _ = agent.daemon.over_unix("DELETE", "/v1/daemon")
    assert status == 200
    (percent,) = told(agent.asked(run)[-1])
    assert percent >= 65
