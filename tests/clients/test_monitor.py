"""The real clients with our hooks and a real daemon: what their requests hold."""

from __future__ import annotations

import json

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import AGENTS, AT_ONCE, Claude, Codex, Gemini, Monitored, Opencode, Pi
from .monitored.extended import Extended
from .monitored.fixtures import in_time, only, running
from .monitored.found import BEGIN, check_handoff, kinds, sent, told
from .monitored.script import brimline

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(*AGENTS)


@in_time
@only(*AT_ONCE)
def test_levels_reach_the_agent_once(agent: Monitored) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once, and no
    compaction is told of, for there was none."""
    first = agent.run(agent.steps(1, agent.ramp(0.52)))
    assert [told(body) for body in agent.asked(first)] == [[], []]
    second = agent.run(agent.steps(3, agent.ramp(0.51, 0.075)))
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == [[warning], [warning], [warning], [warning, critical]]
    timeline = agent.timeline(second)
    assert kinds(timeline) == [("level", 0, 50.0), ("level", 0, 65.0)]
    assert {call["cycle"] for call in timeline["calls"]} == {0}


@in_time
@only(*AT_ONCE)
def test_jump_over_both_levels(agent: Monitored) -> None:
    """A jump over both levels gives one text, the higher, at the next tool's result."""
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert [len(told(body)) for body in agent.asked(run)] == [0, 1, 1]
    assert told(agent.asked(run)[-1])[0] >= 65


def test_readings_equal_the_bill(agent: Monitored) -> None:
    """Every call is known by what was billed for it, and by the window that the client goes by."""
    run = agent.run(agent.steps(3, agent.ramp(0.1, 0.045)))
    calls = [
        (call["input"] + call["cache_read"] + call["cache_write"], call["output"])
        for call in agent.timeline(run)["calls"]
    ]
    assert calls == [(sent(one), one.usage.output) for one in run.of("main")]
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == agent.window
    assert view["session"]["ended_at"] is not None


@in_time
@only(*AT_ONCE)
def test_handoff_comes_back(agent: Monitored) -> None:
    """The agent hands a document over with its own shell; a request after the compaction, where
    hooks allow it the first, holds it, once, and the levels are reached in the new cycle too."""
    check_handoff(agent, agent.compact())


@in_time
@pytest.mark.parametrize(
    ("agent", "step"),
    [pytest.param(one, step, id=f"{one.agent}-{step}") for one in AT_ONCE for step in one.kills],
    indirect=["agent"],
)
def test_daemon_killed_between_steps(agent: Monitored, step: int) -> None:
    """Killed with -9 and started again between two steps, the outcome is the same."""
    check_handoff(agent, agent.compact({step: "kill start"}))


@in_time
@only(*AT_ONCE)
def test_daemon_away_during_a_compaction(agent: Monitored) -> None:
    """The document comes with the first hook that is answered again, once."""
    run = agent.compact({agent.last: "kill", agent.last + 1: "start"})
    bodies = agent.after_compaction(run)
    assert tuple(body.count(BEGIN) for body in bodies) == (0, *agent.comes[1:])


@in_time
def test_daemon_killed_between_turns(agent: Monitored) -> None:
    """Killed and started again between turns, the daemon tells no level twice and loses none."""
    bodies: list[str] = []
    for _ in range(3):
        run = agent.run(agent.steps(1, agent.ramp(0.52)))
        bodies.append(agent.asked(run)[-1])
        agent.daemon.kill()
        agent.daemon.start()
    first, second, third = (told(body) for body in bodies)
    assert (first, len(second)) == ([], 1)
    assert third == second


@in_time
@only(Claude, Codex, Gemini, Pi)
def test_message_keeps_a_turn_from_ending(agent: Monitored) -> None:
    """What somebody sends is delivered as the turn would end: the agent goes on with it, once."""
    send = agent.shell(f'{brimline("send")} {agent.session} "Look at the tests."')
    bodies = agent.asked(agent.run(agent.steps(0, Ramp(), send)))
    news = [str(agent.users(body)).count("Look at the tests.") for body in bodies]
    assert news == [0, 0, 1]


@in_time
@only(Codex, Gemini, Opencode)
def test_subagent_is_not_told(agent: Monitored) -> None:
    """What the main thread is to be told reaches the main thread, and never its subagent, whose
    hooks may look the same; nor is that a session of its own."""
    asking, errand = agent.errand
    main = (*asking, Reply(text="Done."))
    run = agent.run(Scenario(main=main, subagent=errand, ramp=agent.ramp(0.7)))
    own = agent.of_main(run)
    assert [len(told(body)) for body in own] == [0] + [1] * len(asking)
    others = [body for body in agent.asked(run) if body not in own]
    assert len(others) >= len(errand)
    assert not any(told(body) for body in others)
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["session"]["id"] == agent.session_of(run)


def test_removed(agent: Monitored) -> None:
    """Taken out again, the files are what they were, and nothing is told any more."""
    assert agent.files() != agent.own
    agent.set_up("--remove")
    assert agent.files() == agent.own
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert told(agent.asked(run)[-1]) == []
    assert agent.daemon.get("/v1/sessions") == []


def test_no_daemon(agent: Monitored) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    agent.daemon.stop()
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert told(agent.asked(run)[-1]) == []
    agent.daemon.start()
    agent.daemon.until("/v1/sessions", bool)
    assert kinds(agent.timeline(run)) == [("level", 0, 65.0)]


def test_session_starts_the_daemon(agent: Monitored) -> None:
    """Where none runs, the start of a session starts one, which hears the rest of it."""
    agent.daemon.stop()
    try:
        agent.go(agent.steps(2, agent.ramp(0.7)))
        shown = agent.daemon.command("serve", "--status", "--json")
        assert shown.returncode == 0, shown.stderr
        assert json.loads(shown.stdout)["heard"] > 0
    finally:
        stopped = agent.daemon.command("serve", "--stop")
    assert stopped.returncode == 0, stopped.stderr


@only(Opencode, Pi)
def test_hook_that_is_gone(agent: Extended) -> None:
    """Where Brimline was uninstalled without being taken out, the agent works as ever and says
    nothing."""
    agent.daemon.stop()
    agent.file.write_text(agent.file.read_text().replace("client.py", "gone"))
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert agent.complaints(run) == []
    assert [told(body) for body in agent.asked(run)] == [[], [], []]
