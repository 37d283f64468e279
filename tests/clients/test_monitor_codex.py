"""The real Codex with our hooks and a real daemon: what its requests hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .codex import run_codex, shell, spawn, wait
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
    session_of,
    steps,
    told,
)
from .run import ClientRun, Place

pytestmark = [pytest.mark.clients, pytest.mark.slow]

OWN = '{"description": "mine", "hooks": {}}\n'
"""What the user had set before."""

LIMIT = "model_auto_compact_token_limit=190000"
SUMMARISE = '\\"request_kind\\":\\"compaction'
LEVELS = [("level", 0, 50.0), ("level", 0, 65.0), ("level", 1, 50.0), ("level", 1, 65.0)]


class Codex(Monitored):
    """Codex in `exec`; with `plain` it tells people how its hooks went."""

    agent = "codex"
    endpoint = "/v1/responses"
    theirs = OWN
    resume = plain = False

    def write_settings(self) -> Path:
        """hooks.json, with what the user had set before."""
        file = Place(self.folder).home / ".codex/hooks.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.theirs)
        return file

    def begin(self) -> None:
        """Begin anew, with a new session."""
        self.resume = False
        super().begin()

    def go(self, scenario: Scenario, *arguments: str, environment: dict[str, str]) -> ClientRun:
        """One turn; after the first one the session is resumed."""
        resume, self.resume = self.resume, True
        return run_codex(
            scenario,
            self.folder,
            "Go.",
            *arguments,
            resume=resume,
            hooks=True,
            plain=self.plain,
            environment=environment,
        )


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Codex]:
    """Codex, set up, and its daemon, which is gone afterwards."""
    codex = Codex(tmp_path)
    yield codex
    codex.daemon.close()


@in_time
def test_levels_reach_the_agent_once(agent: Codex) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once."""
    first = agent.run(steps(shell, 1, Ramp(start=125_000)))
    assert [told(body) for body in agent.asked(first)] == [[], []]
    second = agent.run(steps(shell, 3, Ramp(start=150_000, step=15_000)))
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == [[warning], [warning], [warning, critical], [warning, critical]]


@in_time
def test_jump_over_both_levels(agent: Codex) -> None:
    """A jump over both levels gives one text, the higher."""
    run = agent.run(steps(shell, 2, Ramp(start=180_000)))
    (percent,) = told(agent.asked(run)[-1])
    assert percent >= 65


@in_time
def test_window_of_its_own(agent: Codex) -> None:
    """A smaller window that the user configured is what levels are of."""
    run = agent.run(steps(shell, 2, Ramp(start=55_000)), "model_context_window=100000")
    (percent,) = told(agent.asked(run)[-1])
    assert percent >= 65
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 95_000


def test_readings_equal_the_bill(agent: Codex) -> None:
    """Every call of the main thread is known by what was billed for it."""
    run = agent.run(steps(shell, 3, Ramp(start=20_000, step=9_000)))
    calls = [
        (call["input"] + call["cache_read"] + call["cache_write"], call["output"])
        for call in agent.timeline(run)["calls"]
    ]
    assert calls == [(sent(one), one.usage.output) for one in run.of("main")]


COMPACTING = Ramp(start=80_000, step=30_000, after_compaction=120_000)
STEPS = 6
"""So many steps follow the handoff; the fourth, at 209K tokens, is the last before a compaction."""


def compacting(deeds: dict[int, str] | None = None) -> Scenario:
    """The agent hands a document over, fills its context, and goes on after a compaction.

    At some steps it knocks.
    """
    knocks = {step: knock(*words.split()) for step, words in (deeds or {}).items()}
    loop = (shell(knocks.get(step, f"echo {step}")) for step in range(STEPS))
    return Scenario(main=(handing_over(shell), *loop, Reply(text="Done.")), ramp=COMPACTING)


def after_compaction(agent: Codex, run: ClientRun) -> list[str]:
    """The requests after the one that asked for a summary."""
    bodies = agent.asked(run)
    (place,) = (n for n, body in enumerate(bodies) if SUMMARISE in body)
    return bodies[place + 1 :]


def check_handoff(agent: Codex, run: ClientRun) -> None:
    """The first request after the compaction holds the document, and the levels fire again."""
    said = kinds(agent.timeline(run))
    assert said.count(("compacted", 0, 0.0)) == 1
    assert [each for each in said if each[0] == "level"] == LEVELS
    bodies = after_compaction(agent, run)
    assert [body.count(BEGIN) for body in bodies] == [1] * len(bodies)
    assert bodies[0].count(DOCUMENT) == 1
    assert len(told(bodies[-1])) == 1


@in_time
def test_handoff_comes_back(agent: Codex) -> None:
    """The agent hands a document over with its own shell; the first request after the compaction
    holds it, once, and the levels fire again in the new cycle."""
    check_handoff(agent, agent.run(compacting(), LIMIT))


@in_time
@pytest.mark.parametrize("step", range(STEPS))
def test_daemon_killed_between_steps(agent: Codex, step: int) -> None:
    """Killed with -9 and started again between any two steps, the outcome is the same."""
    check_handoff(agent, agent.run(compacting({step: "kill start"}), LIMIT))


@in_time
@pytest.mark.parametrize("event", ["PreCompact", "PostCompact"])
def test_daemon_killed_during_a_compaction(agent: Codex, event: str) -> None:
    """Killed while our hook asks it, by a hook of the user's own that runs beside ours."""
    theirs = {event: [{"hooks": [{"type": "command", "command": knock("kill", "start")}]}]}
    agent.theirs = json.dumps({"hooks": theirs})
    agent.write_settings()
    agent.set_up()
    check_handoff(agent, agent.run(compacting(), LIMIT))


@in_time
def test_daemon_away_during_a_compaction(agent: Codex) -> None:
    """The document comes with the first hook that is answered again, once."""
    run = agent.run(compacting({3: "kill", 4: "start"}), LIMIT)
    assert [body.count(BEGIN) for body in after_compaction(agent, run)][:3] == [0, 1, 1]


@in_time
def test_every_answer_is_taken(agent: Codex) -> None:
    """Codex calls none of our hooks failed, whatever it was answered."""
    agent.plain = True
    run = agent.run(compacting(), LIMIT)
    went = [line for line in run.stderr.splitlines() if line.startswith("hook: ")]
    assert "hook: PostCompact Completed" in went
    assert not any("Failed" in line for line in went)


@in_time
def test_message_keeps_a_turn_from_ending(agent: Codex) -> None:
    """What somebody sends is delivered as the turn would end: the agent goes on with it, once."""
    send = brimline("send")
    scenario = steps(shell, 0, Ramp(), shell(f'{send} "$CODEX_THREAD_ID" "Look at the tests."'))
    bodies = agent.asked(agent.run(scenario))
    news = [sum("Look at the tests." in str(item) for item in users(body)) for body in bodies]
    assert news == [0, 0, 1]


def users(body: str) -> list[Any]:
    """What the user, or a hook, said in a request."""
    items = json.loads(body)["body"]["input"]
    return [item for item in items if item.get("role") == "user"]


@in_time
def test_subagent_is_not_told(agent: Codex) -> None:
    """What the main thread is to be told reaches the main thread, and never its subagent."""
    main = (spawn("Look around."), wait(), Reply(text="Done."))
    scenario = Scenario(main=main, subagent=(shell("echo sub"),), ramp=Ramp(start=180_000))
    run = agent.run(scenario)
    bodies = agent.asked(run)
    session = session_of(run)
    own = [body for body in bodies if f'\\"thread_id\\":\\"{session}' in body]
    assert [len(told(body)) for body in own] == [0, 1, 1]
    assert len(bodies) > len(own)
    assert not any(told(body) for body in bodies if body not in own)


def test_removed(agent: Codex) -> None:
    """Taken out again, hooks.json is what it was, and nothing is told any more."""
    check_removed(agent, steps(shell, 2, Ramp(start=180_000)))


def test_no_daemon(agent: Codex) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    check_no_daemon(agent, steps(shell, 2, Ramp(start=180_000)))
