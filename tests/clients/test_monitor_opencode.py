"""The real opencode with our plugin and a real daemon: what its requests hold."""

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
from .opencode import bash, run_opencode, task
from .run import ClientRun, Place

pytestmark = [pytest.mark.clients, pytest.mark.slow]

OWN = "export const Own = async () => ({})\n"
"""A plugin that the user had before."""

FETCHED = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1.18.18"}}}}
"""What opencode notes when it has fetched the package that it gives to plugins: it does so before
it loads any, once, and here it could not."""

LEVELS = [("level", 0, 50.0), ("level", 0, 65.0), ("level", 1, 50.0), ("level", 1, 65.0)]


class Opencode(Monitored):
    """`opencode run`, with a plugin of the user's own beside ours."""

    agent = "opencode"
    endpoint = "/v1/messages"
    more: tuple[str, ...] = ()

    def write_settings(self) -> Path:
        """The user's own plugin."""
        file = self.plugin.with_name("own.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(OWN)
        folder = file.parent.parent
        (folder / "node_modules").mkdir(exist_ok=True)
        (folder / "package-lock.json").write_text(json.dumps(FETCHED))
        return file

    @property
    def plugin(self) -> Path:
        """Where ours is."""
        return Place(self.folder).home / ".config/opencode/plugins/brimline.js"

    def begin(self) -> None:
        """Begin anew, with a new session."""
        self.more = ()
        super().begin()

    def go(self, scenario: Scenario, *arguments: str, environment: dict[str, str]) -> ClientRun:
        """One turn; after the first one the session is continued."""
        more, self.more = self.more, ("-c",)
        given = (*more, *arguments)
        return run_opencode(scenario, self.folder, "Go.", *given, environment=environment)

    def asked(self, run: ClientRun) -> list[str]:
        """The requests of the conversation and of subagents, in order; a title is neither."""
        bodies, threads = super().asked(run), [one.thread for one in run.billed]
        assert len(bodies) == len(threads)
        return [body for body, thread in zip(bodies, threads, strict=True) if thread != "title"]

    def timeline(self, run: ClientRun) -> Any:
        """What the daemon knows of the session."""
        return self.daemon.get(f"/v1/sessions/{session_of(run)}/timeline")


def session_of(run: ClientRun) -> str:
    """The session's id."""
    return json.loads(run.stdout.splitlines()[0])["sessionID"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Opencode]:
    """opencode, set up, and its daemon, which is gone afterwards."""
    opencode = Opencode(tmp_path)
    yield opencode
    opencode.daemon.close()


@in_time
def test_levels_reach_the_agent_once(agent: Opencode) -> None:
    """Usage ramps over both levels in two turns: the requests hold each text exactly once."""
    first = agent.run(steps(bash, 1, Ramp(start=105_000)))
    assert [told(body) for body in agent.asked(first)] == [[], []]
    second = agent.run(steps(bash, 3, Ramp(start=110_000, step=10_000)))
    bodies = [told(body) for body in agent.asked(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == [[warning], [warning], [warning], [warning, critical]]


@in_time
def test_jump_over_both_levels(agent: Opencode) -> None:
    """A jump over both levels gives one text, the higher, in the very next request."""
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert [len(told(body)) for body in agent.asked(run)] == [0, 1, 1]
    assert told(agent.asked(run)[-1])[0] >= 65


def test_readings_equal_the_bill(agent: Opencode) -> None:
    """Every call is known by what was billed for it, and by the window that opencode goes by."""
    run = agent.run(steps(bash, 3, Ramp(start=20_000, step=9_000)))
    calls = [
        (call["input"] + call["cache_read"] + call["cache_write"], call["output"])
        for call in agent.timeline(run)["calls"]
    ]
    assert calls == [(sent(one), one.usage.output) for one in run.of("main")]
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 200_000
    assert view["session"]["ended_at"] is not None


COMPACTING = Ramp(start=70_000, step=29_000, after_compaction=100_000)
STEPS = 6
"""So many steps follow the handoff; the fourth, at 194K tokens, is the last before a compaction."""


def hand_over() -> Reply:
    """A step at which the agent writes a handoff and hands it over for its own session."""
    write = f"echo {DOCUMENT!r} > notes.md"
    return bash(f'{write} && {brimline("handoff", "notes.md")} --session "$OPENCODE_SESSION_ID"')


def compacting(deeds: dict[int, str] | None = None) -> Scenario:
    """The agent hands a document over, fills its context, and goes on after a compaction.

    At some steps it knocks.
    """
    knocks = {step: knock(*words.split()) for step, words in (deeds or {}).items()}
    loop = (bash(knocks.get(step, f"echo {step}")) for step in range(STEPS))
    return Scenario(main=(hand_over(), *loop, Reply(text="Done.")), ramp=COMPACTING)


def after_compaction(agent: Opencode, run: ClientRun) -> list[str]:
    """The requests after the one that asked for a summary."""
    threads = [one.thread for one in run.billed if one.thread != "title"]
    (place,) = (n for n, thread in enumerate(threads) if thread == "compaction")
    return agent.asked(run)[place + 1 :]


def check_handoff(agent: Opencode, run: ClientRun) -> None:
    """The first request after the compaction holds the document, and the levels fire again."""
    said = kinds(agent.timeline(run))
    assert said.count(("compacted", 0, 0.0)) == 1
    assert [each for each in said if each[0] == "level"] == LEVELS
    bodies = after_compaction(agent, run)
    assert [body.count(BEGIN) for body in bodies] == [1] * len(bodies)
    assert bodies[0].count(DOCUMENT) == 1
    assert [len(told(body)) - len(told(bodies[0])) for body in bodies] == [0, 0, 1]


@in_time
def test_handoff_comes_back(agent: Opencode) -> None:
    """The agent hands a document over with its own shell; the first request after the compaction
    holds it, once, and the levels fire again in the new cycle. The next run has it still."""
    check_handoff(agent, agent.run(compacting()))
    again = agent.run(steps(bash, 0, Ramp(start=20_000)))
    assert [body.count(BEGIN) for body in agent.asked(again)] == [1]


@in_time
@pytest.mark.parametrize("step", [0, 3, 4])
def test_daemon_killed_between_steps(agent: Opencode, step: int) -> None:
    """Killed with -9 and started again early, just before the compaction and just after it, the
    outcome is the same."""
    check_handoff(agent, agent.run(compacting({step: "kill start"})))


@in_time
def test_daemon_away_during_a_compaction(agent: Opencode) -> None:
    """The document comes with the first hook that is answered again, once."""
    run = agent.run(compacting({3: "kill", 4: "start"}))
    assert [body.count(BEGIN) for body in after_compaction(agent, run)] == [0, 1, 1]


@in_time
def test_subagent_is_not_told(agent: Opencode) -> None:
    """What the main thread is to be told reaches the main thread, and never its subagent."""
    main = (task("Look around."), Reply(text="Done."))
    subagent = (bash("echo sub"), Reply(text="Nothing."))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=Ramp(start=150_000)))
    bodies = agent.asked(run)
    threads = [one.thread for one in run.billed if one.thread != "title"]
    own = [body for body, thread in zip(bodies, threads, strict=True) if thread == "main"]
    assert [len(told(body)) for body in own] == [0, 1]
    assert len(bodies) == len(own) + len(subagent)
    assert not any(told(body) for body in bodies if body not in own)
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["session"]["id"] == session_of(run)


@in_time
def test_message_waits_for_the_next_prompt(agent: Opencode) -> None:
    """A plugin cannot keep a turn from ending: what somebody sends comes with the next prompt."""
    send = bash(f'{brimline("send")} "$OPENCODE_SESSION_ID" "Look at the tests."')
    first = agent.run(steps(bash, 0, Ramp(), send))
    assert [json.dumps(users(body)).count("Look at") for body in agent.asked(first)] == [0, 0]
    second = agent.run(steps(bash, 1, Ramp()))
    assert [json.dumps(users(body)).count("Look at") for body in agent.asked(second)] == [1, 1]


def users(body: str) -> list[Any]:
    """What the user, or a plugin, said in a request."""
    messages = [one for one in json.loads(body)["body"]["messages"] if one["role"] == "user"]
    parts = [part for one in messages for part in one["content"]]
    return [part for part in parts if part["type"] == "text"]


def test_removed(agent: Opencode) -> None:
    """Taken out again, our file is gone, the user's is as it was, and nothing is told any more."""
    assert agent.plugin.exists()
    agent.set_up("--remove")
    assert list(agent.plugin.parent.iterdir()) == [agent.settings]
    assert agent.settings.read_text() == OWN
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert told(agent.asked(run)[-1]) == []
    assert agent.daemon.get("/v1/sessions") == []


def test_no_daemon(agent: Opencode) -> None:
    """Without the daemon the agent works as ever; what happened is taken in when it is back."""
    check_no_daemon(agent, steps(bash, 2, Ramp(start=150_000)))


def test_hook_that_is_gone(agent: Opencode) -> None:
    """Where Brimline was uninstalled without being taken out, opencode works as ever."""
    text = agent.plugin.read_text()
    agent.plugin.write_text(text.replace("brimline-hook", "gone").replace("client.py", "gone"))
    run = agent.run(steps(bash, 2, Ramp(start=150_000)))
    assert [told(body) for body in agent.asked(run)] == [[], [], []]
    assert "level=ERROR" not in run.stderr
