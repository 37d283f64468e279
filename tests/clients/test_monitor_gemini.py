"""The real Gemini CLI with our hooks and a real daemon: what it tells, and what its requests hold.

It compresses at half of its window unless it is told otherwise, so that levels are tested with a
threshold that is out of reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.hooks import agents
from brimline.hooks.spool import take
from brimline.testing.fake_model import Ramp, Reply, Scenario

from .gemini import complete, invoke, run_gemini, shell, write_settings
from .monitored import (
    BEGIN,
    DOCUMENT,
    Monitored,
    brimline,
    check_no_daemon,
    check_removed,
    handing_over,
    in_time,
    kinds,
    knock,
    sent,
    steps,
    told,
)
from .run import ClientRun, Place
from .scenes import SNAPSHOT, THOUGHT

pytestmark = [pytest.mark.clients, pytest.mark.slow]

AGAIN = ("--resume", "latest")
SESSION = "11111111-1111-4111-8111-111111111111"
NEW = ("--session-id", SESSION)
HALF = 524_288
"""Half of the window."""


class Gemini(Monitored):
    """Gemini CLI, headless."""

    agent = "gemini"
    endpoint = ":streamGenerateContent"

    full = 0.99

    def write_settings(self) -> Path:
        """settings.json, with the threshold of its compressions."""
        return write_settings(Place(self.folder), {"model": {"compressionThreshold": self.full}})

    def go(self, scenario: Scenario, *arguments: str, environment: dict[str, str]) -> ClientRun:
        """One turn, with the settings that are there."""
        return run_gemini(scenario, self.folder, "Go.", *arguments, environment=environment)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Gemini]:
    """Gemini CLI, set up, and its daemon, which is gone afterwards."""
    gemini = Gemini(tmp_path)
    yield gemini
    gemini.daemon.close()


def test_readings_equal_the_bill(agent: Gemini) -> None:
    """Each end of an answer is a reading: what was billed for the main thread's calls, and no
    other's, with the thoughts."""
    agent.daemon.stop()
    main = (shell("echo one"), invoke("Look around."), Reply(text="Done.", reasoning=THOUGHT))
    subagent = (shell("echo sub"), complete("Nothing."))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=Ramp(step=5_000)))
    batch = take(agent.daemon.state)
    assert batch is not None
    found = [agents.heard(request, request.at) for request in batch]
    usages = [one.usage for one in found if one is not None and one.usage is not None]
    assert [(usage.sent, usage.output) for usage in usages] == [
        (sent(one), one.usage.output) for one in run.of("main")
    ]


@in_time
def test_levels_reach_the_agent_once(agent: Gemini) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once, and no
    compaction is told of, for there was none."""
    first = agent.run(steps(shell, 1, Ramp(start=HALF)))
    assert [told(body) for body in agent.asked(first)] == [[], []]
    second = agent.run(steps(shell, 3, Ramp(start=600_000, step=60_000)), *AGAIN)
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == [[warning], [warning], [warning], [warning, critical]]
    timeline = agent.timeline(second)
    assert kinds(timeline) == [("level", 0, 50.0), ("level", 0, 65.0)]
    assert {call["cycle"] for call in timeline["calls"]} == {0}


@in_time
def test_jump_over_both_levels(agent: Gemini) -> None:
    """A jump over both levels gives one text, the higher."""
    run = agent.run(steps(shell, 2, Ramp(start=700_000)))
    assert [len(told(body)) for body in agent.asked(run)] == [0, 1, 1]
    assert told(agent.asked(run)[-1])[0] >= 65


@in_time
def test_subagent_is_not_told(agent: Gemini) -> None:
    """What the main thread is to be told reaches the main thread, and never its subagent, though
    the hooks of both look the same."""
    main = (invoke("Look around."), Reply(text="Done."))
    subagent = (shell("echo sub"), shell("echo more"), complete("Nothing."))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=Ramp(start=700_000)))
    bodies = agent.asked(run)
    own = [body for body in bodies if "<session_context>" in body]
    assert [len(told(body)) for body in own] == [0, 1]
    assert len(bodies) == len(own) + len(subagent)
    assert not any(told(body) for body in bodies if body not in own)


@in_time
def test_message_keeps_a_turn_from_ending(agent: Gemini) -> None:
    """What somebody sends is delivered as the turn would end: the agent goes on with it, once."""
    send = shell(brimline("send", SESSION, "Look at the tests."))
    run = agent.run(steps(shell, 0, Ramp(), send), *NEW)
    news = [json.dumps(users(body)).count("Look at the tests.") for body in agent.asked(run)]
    assert news == [0, 0, 1]


def users(body: str) -> list[str]:
    """What the user, or a hook, said in a request."""
    contents = json.loads(body)["body"]["contents"]
    parts = [part for one in contents if one["role"] == "user" for part in one["parts"]]
    return [part["text"] for part in parts if "text" in part]


def compressing(agent: Gemini, deeds: dict[int, str] | None = None) -> ClientRun:
    """The agent hands a document over in one turn, and goes on in another, whose second request
    comes after a compression; it knocks at some steps. Gives the second."""
    agent.full = 0.6
    agent.write_settings()
    agent.set_up()
    more = ("--session", SESSION)
    agent.run(steps(shell, 0, Ramp(start=HALF, step=20_000), handing_over(shell, *more)), *NEW)
    knocks = {step: knock(*words.split()) for step, words in (deeds or {}).items()}
    loop = (shell(knocks.get(step, f"echo {step}")) for step in range(3))
    ramp = Ramp(start=640_000, after_compaction=HALF)
    main = (*loop, Reply(text="Done."))
    return agent.run(Scenario(main=main, ramp=ramp, summary=SNAPSHOT), *AGAIN)


def check_compression(agent: Gemini, run: ClientRun) -> None:
    """One compaction is told of, and the levels fire again in the new cycle."""
    assert [one.thread for one in run.billed].count("compaction") == 2
    timeline = agent.timeline(run)
    assert kinds(timeline) == [("level", 0, 50.0), ("compacted", 0, 0.0), ("level", 1, 50.0)]
    assert [call["cycle"] for call in timeline["calls"]] == [0, 0, 0, 1, 1, 1]


@in_time
def test_compression_is_told_of(agent: Gemini) -> None:
    """A real compression, of which no hook tells, is one, once."""
    check_compression(agent, compressing(agent))


@in_time
@pytest.mark.parametrize("step", range(3))
def test_daemon_killed_between_steps(agent: Gemini, step: int) -> None:
    """Killed with -9 and started again between any two steps, the outcome is the same."""
    check_compression(agent, compressing(agent, {step: "kill start"}))


@in_time
def test_handoff_comes_back(agent: Gemini) -> None:
    """The document comes with the first tool's result after the compression, once."""
    bodies = agent.asked(compressing(agent))
    assert [body.count(BEGIN) for body in bodies] == [0, 0, 1, 1]
    assert bodies[2].count(DOCUMENT) == 1


def test_removed(agent: Gemini) -> None:
    """Taken out again, the settings are what they were, and nothing is told any more."""
    check_removed(agent, steps(shell, 2, Ramp(start=700_000)))


def test_no_daemon(agent: Gemini) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    check_no_daemon(agent, steps(shell, 2, Ramp(start=700_000)))
