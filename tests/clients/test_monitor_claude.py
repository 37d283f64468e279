"""Claude Code with our hooks and a real daemon: how it differs from the other clients.

Its usage is in the transcript alone, which can be a call or two late, and so can levels.
"""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Claude
from .monitored.assertions import HANDOFF_START, levels_reported, signals_of
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import DOCUMENT, brimline, hand_over
from .run import ClientRun
from .scenes import SESSION

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Claude)


@retry_slow_hooks
def test_levels_reach_the_agent_once(agent: Claude) -> None:
    """Usage passes both levels in two turns: the requests contain each message exactly once."""
    agent.run(agent.steps(1, Ramp(start=95_000)))
    second = agent.run(agent.steps(4, Ramp(start=120_000, step=6_000)))
    bodies = [levels_reported(body) for body in agent.requests(second)]
    warning, critical = bodies[-1]
    assert 50 <= warning < 65 <= critical
    assert bodies == sorted(bodies)


@retry_slow_hooks
def test_jump_over_both_levels_sends_one_message(agent: Claude) -> None:
    """A jump over both levels sends one message, for the higher."""
    run = agent.run(agent.steps(4, agent.ramp(0.7)))
    (percent,) = levels_reported(agent.requests(run)[-1])
    assert percent >= 65


def test_levels_use_the_long_window(agent: Claude) -> None:
    """A 1M model at 300K is below all levels of its window."""
    agent.model = "claude-sonnet-4-5[1m]"
    run = agent.run(agent.steps(2, Ramp(start=300_000)))
    assert levels_reported(agent.requests(run)[-1]) == []
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == 1_000_000


def run_with_message(agent: Claude) -> ClientRun:
    """A run above the last level whose last tool sends the agent a message that blocks Stop."""
    send = agent.shell(brimline("send", SESSION, "Mind the tests.", "--block-stop"))
    return agent.run(Scenario(main=(send, Reply(text="My result.")), ramp=agent.ramp(0.3, 0.4)))


def result_of(run: ClientRun) -> str:
    """The result of a headless run, in the last line of its stream."""
    return json.loads(run.stdout.splitlines()[-1])["result"]


@retry_slow_hooks
def test_nothing_changes_the_result_of_a_headless_run(agent: Claude) -> None:
    """Neither the last level nor a message that asks for it; both come with the next prompt."""
    agent.set_stop("last_level = true")
    run = run_with_message(agent)
    assert result_of(run) == "My result."
    assert "Mind the tests." not in agent.user_texts(agent.requests(run)[-1])
    body = agent.requests(agent.run(agent.steps(0, Ramp(start=30_000))))[-1]
    assert body.count("[message from 11111111-1111-4111-8111-111111111111] Mind the tests.") == 1
    assert len(levels_reported(body)) == 1


@retry_slow_hooks
def test_setting_lets_a_message_but_no_level_continue_a_headless_run(agent: Claude) -> None:
    agent.set_stop("last_level = true\nheadless = true")
    run = run_with_message(agent)
    assert result_of(run) != "My result."
    last = agent.requests(run)[-1]
    assert "Mind the tests." in last
    assert levels_reported(last) == []


@retry_slow_hooks
def test_handoff_returns_after_a_compaction(agent: Claude) -> None:
    """The agent hands a document over with its tool; the first request after the compaction
    contains it, and the levels fire again in the new cycle."""
    ramp = Ramp(start=70_000, step=10_000, after_compaction=82_000)
    scenario = agent.steps(7, ramp, hand_over(agent.shell))
    run = agent.run(scenario, CLAUDE_CODE_AUTO_COMPACT_WINDOW="170000")
    signals = {(kind, cycle) for kind, cycle, _ in signals_of(agent.timeline(run))}
    assert {("compacted", 0), ("level", 1)} <= signals
    first = agent.after_compaction(run)[0]
    assert (first.count(HANDOFF_START), first.count(DOCUMENT)) == (1, 1)


def test_long_messages_are_not_truncated(agent: Claude) -> None:
    """Messages of maximum length come one by one, and the client truncates none of them."""
    for number in range(3):
        text = f"BEGIN{number} {'x ' * 4_490}END{number}"
        agent.daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": text, "urgent": True})
    last = agent.requests(agent.run(agent.steps(4, Ramp(start=20_000))))[-1]
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
        run = agent.run_with_autostart(slow)
    finally:
        with suppress(FileNotFoundError):  # there is none if the client is not installed
            agent.daemon.over_unix("DELETE", "/v1/daemon")
    (percent,) = levels_reported(agent.requests(run)[-1])
    assert percent >= 65


@retry_slow_hooks
def test_fork_of_a_compacted_session_reports_no_compaction(agent: Claude) -> None:
    """The fork's file copies the history with its compaction; no draft is injected for that."""
    ramp = Ramp(start=70_000, step=10_000, after_compaction=32_000)
    run = agent.run(agent.steps(7, ramp), CLAUDE_CODE_AUTO_COMPACT_WINDOW="150000")
    assert ("compacted", 0, 0.0) in signals_of(agent.timeline(run))
    fork = agent.fork(run, agent.steps(2, Ramp(start=30_000)))
    timeline = agent.timeline(fork)
    assert [each["cycle"] for each in timeline["compactions"]] == [0]
    assert [kind for kind, _, _ in signals_of(timeline)] == []
    counts = {body.count(HANDOFF_START) for body in agent.requests(fork)}
    assert counts == {1}  # the first session's draft, in its history
