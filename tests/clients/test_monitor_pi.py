"""The real Pi with our extension and a real daemon: what its requests hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import (
    BEGIN,
    DOCUMENT,
    Monitored,
    brimline,
    check_no_daemon,
    in_time,
    kinds,
    knock,
    sent,
    steps,
    told,
)
from .pi import bash, run_pi
from .run import ClientRun, Place

pytestmark = [pytest.mark.clients, pytest.mark.slow]

OWN = "export default function () {}\n"
"""An extension that the user had before."""

LEVELS = [("level", 0, 50.0), ("level", 0, 65.0), ("level", 1, 50.0), ("level", 1, 65.0)]


class Pi(Monitored):
    """Pi in `--mode json`, with an extension of the user's own beside ours."""

    agent = "pi"
    endpoint = "/v1/messages"
    more: tuple[str, ...] = ()

    def write_settings(self) -> Path:
        """The user's own extension."""
        file = self.extension.with_name("own.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        return file

    @property
    def extension(self) -> Path:
        """Where ours is."""
        return Place(self.folder).home / ".pi/agent/extensions/brimline.js"

    def begin(self) -> None:
        """Begin anew, with a new session."""
        self.more = ()
        super().begin()

    def go(self, scenario: Scenario, *arguments: str, environment: dict[str, str]) -> ClientRun:
        """One turn; after the first one the session is continued."""
        more, self.more = self.more, ("-c",)
        return run_pi(scenario, self.folder, "Go.", *more, *arguments, environment=environment)

    def timeline(self, run: ClientRun) -> Any:
        """What the daemon knows of the session."""
        return self.daemon.get(f"/v1/sessions/{session_of(run)}/timeline")


def session_of(run: ClientRun) -> str:
    """The session's id."""
    return json.loads(run.stdout.splitlines()[0])["id"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Pi]:
    """Pi, set up, and its daemon, which is gone afterwards."""
    pi = Pi(tmp_path)
    yield pi
    pi.daemon.close()


@in_time
def test_levels_reach_the_agent_once(agent: Pi) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once."""
    first = agent.run(steps(bash, 1, Ramp(start=110_000)))
    assert [told(body) for body in agent.asked(first)] == [[], []]
    second = agent.run(steps(bash, 3, Ramp(start=115_000, step=10_000)))
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == [[warning], [warning], [warning], [warning, critical]]


@in_time
def test_jump_over_both_levels(agent: Pi) -> None:
    """A jump over both levels gives one text, the higher, at the next tool's result."""
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert [len(told(body)) for body in agent.asked(run)] == [0, 1, 1]
    assert told(agent.asked(run)[-1])[0] >= 65


def test_readings_equal_the_bill(agent: Pi) -> None:
    """Every call is known by what was billed for it, and by the window that Pi goes by."""
    run = agent.run(steps(bash, 3, Ramp(start=20_000, step=9_000)))
    calls = [
        (call["input"] + call["cache_read"] + call["cache_write"], call["output"])
        for call in agent.timeline(run)["calls"]
    ]
    assert calls == [(sent(one), one.usage.output) for one in run.of("main")]
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 200_000
    assert view["session"]["ended_at"] is not None


COMPACTING = Ramp(start=75_000, step=28_000, after_compaction=105_000)
STEPS = 6
"""So many steps follow the handoff; the fourth, at 188K tokens, is the last before a compaction."""


def hand_over() -> Reply:
    """A step at which the agent writes a handoff and hands it over for its own session."""
    write = f"echo {DOCUMENT!r} > notes.md"
    return bash(f'{write} && {brimline("handoff", "notes.md")} --session "$PI_SESSION_ID"')


def compacting(deeds: dict[int, str] | None = None) -> Scenario:
    """The agent hands a document over, fills its context, and goes on after a compaction.

    At some steps it knocks.
    """
    knocks = {step: knock(*words.split()) for step, words in (deeds or {}).items()}
    loop = (bash(knocks.get(step, f"echo {step}")) for step in range(STEPS))
    return Scenario(main=(hand_over(), *loop, Reply(text="Done.")), ramp=COMPACTING)


def after_compaction(agent: Pi, run: ClientRun) -> list[str]:
    """The requests after the one that asked for a summary."""
    bodies = agent.asked(run)
    threads = [one.thread for one in run.billed]
    assert len(threads) == len(bodies)
    (place,) = (n for n, thread in enumerate(threads) if thread == "compaction")
    return bodies[place + 1 :]


def check_handoff(agent: Pi, run: ClientRun) -> None:
    """The first request after the compaction holds the document, and the levels fire again."""
    said = kinds(agent.timeline(run))
    assert said.count(("compacted", 0, 0.0)) == 1
    assert [each for each in said if each[0] == "level"] == LEVELS
    bodies = after_compaction(agent, run)
    assert [body.count(BEGIN) for body in bodies] == [1] * len(bodies)
    assert bodies[0].count(DOCUMENT) == 1
    assert [len(told(body)) - len(told(bodies[0])) for body in bodies] == [0, 0, 1]


@in_time
def test_handoff_comes_back(agent: Pi) -> None:
    """The agent hands a document over with its own shell; the first request after the compaction
    holds it, once, and the levels fire again in the new cycle."""
    check_handoff(agent, agent.run(compacting()))


@in_time
@pytest.mark.parametrize("step", range(STEPS))
def test_daemon_killed_between_steps(agent: Pi, step: int) -> None:
    """Killed with -9 and started again between any two steps, the outcome is the same."""
    check_handoff(agent, agent.run(compacting({step: "kill start"})))


@in_time
def test_daemon_away_during_a_compaction(agent: Pi) -> None:
    """The document comes with the first hook that is answered again, once."""
    run = agent.run(compacting({3: "kill", 4: "start"}))
    assert [body.count(BEGIN) for body in after_compaction(agent, run)] == [0, 1, 1]


@in_time
def test_compaction_at_the_end_of_a_turn(agent: Pi) -> None:
    """Pi compacts when the turn is over: the document waits for the next prompt, and does not make
    the agent go on by itself."""
    ramp = Ramp(start=75_000, step=110_000, after_compaction=20_000)
    run = agent.run(Scenario(main=(hand_over(), Reply(text="Done.")), ramp=ramp))
    assert [one.thread for one in run.billed] == ["main", "main", "compaction"]
    again = agent.run(steps(bash, 1, Ramp(start=20_000)))
    assert [body.count(BEGIN) for body in agent.asked(again)] == [1, 1]
    assert kinds(agent.timeline(run)).count(("compacted", 0, 0.0)) == 1


@in_time
def test_message_keeps_a_turn_from_ending(agent: Pi) -> None:
    """What somebody sends is delivered as the turn would end: the agent goes on with it, once."""
    send = bash(f'{brimline("send")} "$PI_SESSION_ID" "Look at the tests."')
    bodies = agent.asked(agent.run(steps(bash, 0, Ramp(), send)))
    news = [json.dumps(users(body)).count("Look at the tests.") for body in bodies]
    assert news == [0, 0, 1]


def users(body: str) -> list[Any]:
    """What the user, or an extension, said in a request."""
    messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
    parts = [part for one in messages for part in one["content"]]
    return [part for part in parts if part["type"] == "text"]


def test_removed(agent: Pi) -> None:
    """Taken out again, our file is gone, the user's is as it was, and nothing is told any more."""
    assert agent.extension.exists()
    agent.set_up("--remove")
    assert list(agent.extension.parent.iterdir()) == [agent.settings]
    assert agent.settings.read_text() == OWN
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert told(agent.asked(run)[-1]) == []
    assert agent.daemon.get("/v1/sessions") == []


def test_no_daemon(agent: Pi) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    check_no_daemon(agent, steps(bash, 2, Ramp(start=150_000)))


def test_session_starts_the_daemon(agent: Pi) -> None:
    """Where there is none, the start of a session starts one, which hears the rest of it."""
    agent.daemon.stop()
    state = {"BRIMLINE_STATE_DIR": str(agent.daemon.state)}
    try:
        assert agent.go(steps(bash, 1, Ramp()), environment=state).exit_code == 0
        assert agent.daemon.command("serve", "--status").returncode == 0
    finally:
        agent.daemon.command("serve", "--stop")


def test_hook_that_is_gone(agent: Pi) -> None:
    """Where Brimline was uninstalled without being taken out, Pi works as ever and says nothing."""
    text = agent.extension.read_text()
    agent.extension.write_text(text.replace("brimline-hook", "gone").replace("client.py", "gone"))
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert run.stderr == ""
    assert [told(body) for body in agent.asked(run)] == [[], [], []]
