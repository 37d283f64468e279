"""Kimi Code with our hooks and a real daemon: its messages come when a turn begins or ends."""

from __future__ import annotations

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Kimi
from .monitored.assertions import HANDOFF_START, check_readings, levels_reported, signals_of
from .monitored.fixtures import client_fixture, only_with, retry_slow_hooks
from .monitored.script import DOCUMENT, brimline, hand_over

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Kimi)


@retry_slow_hooks
@only_with(Kimi, is_short=True)
def test_levels_reach_the_agent_once(agent: Kimi) -> None:
    """Each level comes with the prompt after the turn that reached it, and once; the daemon has
    every call with the tokens that were billed, and the window of the client's environment."""
    first = agent.run(agent.steps(2, agent.ramp(0.52)))
    assert not any(levels_reported(body) for body in agent.requests(first))
    assert signals_of(agent.timeline(first)) == [("level", 0, 50.0)]
    second = agent.run(agent.steps(2, agent.ramp(0.51, 0.08)))
    bodies = [levels_reported(body) for body in agent.requests(second)]
    (warning,) = bodies[0]
    assert 50 <= warning < 65
    assert bodies == [[warning]] * 3
    assert signals_of(agent.timeline(second)) == [("level", 0, 50.0), ("level", 0, 65.0)]
    third = agent.run(agent.steps(1, agent.ramp(0.51)))
    for body in agent.requests(third):
        assert levels_reported(body)[0] == warning
        assert len(levels_reported(body)) == 2
    check_readings(agent, first, second, third)


@retry_slow_hooks
def test_handoff_returns_with_the_next_prompt(agent: Kimi) -> None:
    """The agent hands a document over in its shell, and its context is compacted in the turn: the
    first request of the next turn has the document, and later turns have it once."""
    hand = hand_over(agent.shell)
    ramp = agent.ramp(0.6, 0.15, after=0.05)
    run = agent.run(Scenario(main=(hand, *agent.loop(4)), ramp=ramp))
    assert signals_of(agent.timeline(run)).count(("compacted", 0, 0.0)) == 1
    assert not any(HANDOFF_START in body for body in agent.after_compaction(run))
    again = agent.run(agent.steps(1, agent.ramp(0.1)))
    later = agent.run(agent.steps(0, agent.ramp(0.1)))
    for body in (*agent.requests(again), *agent.requests(later)):
        assert body.count(HANDOFF_START) == 1
        assert DOCUMENT in body


@retry_slow_hooks
def test_message_comes_at_the_end_of_the_main_turn_not_of_a_subagents(agent: Kimi) -> None:
    """If set, the agent continues with it; the hook of its subagent looks the same, and that is no
    session of its own."""
    agent.set_stop("headless = true")
    asking, subagent = agent.subagent_script
    first = agent.run(agent.steps(0, Ramp()))
    words = brimline("send", agent.session_of(first), "Look at the tests.", "--block-stop")
    main = (agent.shell(words), *asking, Reply(text="Done."), Reply(text="Again."))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=Ramp()))
    own = agent.main_requests(run)
    assert [body.count("] Look at the tests.") for body in own] == [0, 0, 0, 1]
    others = [body for body in agent.requests(run) if body not in own]
    assert len(others) == len(subagent)
    assert not any("] Look at the tests." in body for body in others)
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["session"]["id"] == agent.session_of(run)
