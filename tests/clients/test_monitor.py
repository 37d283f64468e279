"""The real clients with our hooks and a real daemon: what their requests contain."""

from __future__ import annotations

import json
import time

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import (
    AGENTS,
    WITHIN_TURNS,
    WITHOUT_DELAY,
    Claude,
    Codex,
    Copilot,
    Gemini,
    Kilo,
    MonitoredClient,
    Opencode,
    Pi,
    Qwen,
)
from .monitored.assertions import (
    HANDOFF_START,
    check_handoff_returns,
    check_readings,
    levels_reported,
    sent_tokens,
    signals_of,
)
from .monitored.extension_client import ExtensionClient
from .monitored.fixtures import client_fixture, only_with, retry_slow_hooks
from .monitored.script import brimline

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(*AGENTS)
START_TIMEOUT_S = 60.0


@retry_slow_hooks
@only_with(*WITHOUT_DELAY, is_short=True)
def test_levels_reach_the_agent_once(agent: MonitoredClient) -> None:
    """Usage passes both levels in two turns: the requests contain each message exactly once, and no
    compaction is reported. A run of one turn gets the first level with its tool result. The daemon
    has every call with the tokens that were billed, and the client's window."""
    scale = agent.level_scale
    first = agent.run(agent.steps(1, agent.ramp(0.52 * scale)))
    before, after = (levels_reported(body) for body in agent.requests(first))
    second = agent.run(agent.steps(3, agent.ramp(0.51 * scale, 0.075 * scale)))
    bodies = [levels_reported(body) for body in agent.requests(second)]
    warning, critical = bodies[-1]
    assert 50 * scale <= warning < 65 * scale <= critical
    assert (before, after) == ([], [warning])
    assert bodies == [[warning], [warning], [warning], [warning, critical]]
    timeline = agent.timeline(second)
    assert signals_of(timeline) == [("level", 0, 50.0), ("level", 0, 65.0)]
    assert {call["cycle"] for call in timeline["calls"]} == {0}
    check_readings(agent, first, second)


@retry_slow_hooks
@only_with(Pi)
def test_jump_over_both_levels_sends_one_message(agent: MonitoredClient) -> None:
    """A jump over both levels sends one message, for the higher, with the next tool result.

    That of a client with subagents is tested with one.
    """
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert [len(levels_reported(body)) for body in agent.requests(run)] == [0, 1, 1]
    assert levels_reported(agent.requests(run)[-1])[0] >= 65


@retry_slow_hooks
@only_with(*WITHIN_TURNS)
def test_large_result_brings_the_level_that_it_will_reach(agent: MonitoredClient) -> None:
    """The request with the result has the message, before the usage of any call reaches the level;
    the call that reaches it repeats nothing."""
    prompt = sent_tokens(agent.run(agent.steps(0, Ramp())).of("main")[-1])
    level = int(0.5 * agent.level_scale * agent.window)
    large = agent.shell("sleep 1; seq 1 4000")
    run = agent.run(agent.steps(1, Ramp(start=level - prompt - 3_000), large))
    sents = [sent_tokens(one) for one in run.of("main")]
    assert sents[0] < level < sents[1]
    bodies = agent.main_requests(run)
    assert [len(levels_reported(body)) for body in bodies] == [0, 1, 1]
    assert levels_reported(bodies[1])[0] < 50 * agent.level_scale
    assert bodies[1].count("more tokens have just come in") == 1
    assert signals_of(agent.timeline(run)) == [("level", 0, 50.0)]


@only_with(Claude)
def test_readings_equal_the_bill(agent: MonitoredClient) -> None:
    """The daemon has every call with the tokens that were billed, and the client's window.

    Those of the other clients are compared where their levels are tested.
    """
    check_readings(agent, agent.run(agent.steps(3, agent.ramp(0.1, 0.045))))


@retry_slow_hooks
@only_with(Codex, Copilot, Kilo, Pi, Opencode, Qwen, is_short=True)
def test_handoff_returns_after_a_compaction(agent: MonitoredClient) -> None:
    """The agent hands a document over in its shell; the first request after the compaction that
    hooks can change contains it once, and the levels fire again in the new cycle."""
    check_handoff_returns(agent, agent.compact())


@retry_slow_hooks
@only_with(Codex, Kilo, Pi, Opencode, Qwen)
def test_handoff_stays_in_the_next_turn_and_in_a_fork(agent: MonitoredClient) -> None:
    """It is there once; for the fork no compaction is reported, and no draft is added."""
    run = agent.compact()
    again = agent.run(agent.steps(0, agent.ramp(0.1)))
    assert [body.count(HANDOFF_START) for body in agent.requests(again)] == [1]
    fork = agent.fork(run, agent.steps(2, agent.ramp(0.1)))
    assert agent.session_of(fork) != agent.session_of(run)
    assert "compacted" not in {kind for kind, _, _ in signals_of(agent.timeline(fork))}
    assert {body.count(HANDOFF_START) for body in agent.requests(fork)} == {1}


@pytest.mark.long
@retry_slow_hooks
@only_with(Codex, Opencode)
def test_slow_daemon_delivers_each_level_before_its_cycle_ends(agent: MonitoredClient) -> None:
    """The daemon is suspended for half of the time that a hook waits, again and again: no message
    is cancelled, and the first request after the compaction has the handoff. With hooks that waited
    120 ms, three of six runs of Codex failed. Eight of eight of opencode did on a busy machine when
    it reported the compaction beside the next request; of two the reason was looked at: a handoff
    that came a request late, and a level that did."""
    with agent.slow_daemon(stall_s=0.1, work_s=0.05):
        run = agent.compact()
    check_handoff_returns(agent, run)
    messages = agent.timeline(run)["messages"]
    levels = [one["state"] for one in messages if one["level"] is not None]
    assert levels == ["delivered"] * len(agent.levels)


@pytest.mark.long
@retry_slow_hooks
@pytest.mark.parametrize(
    ("agent", "step"),
    [
        pytest.param(one, step, id=f"{one.agent}-{step}")
        for one in WITHOUT_DELAY
        for step in range(one.compaction_steps)
    ],
    indirect=["agent"],
)
def test_daemon_killed_between_steps_loses_nothing(agent: MonitoredClient, step: int) -> None:
    """If the daemon is killed with -9 and started between two steps, the result is the same."""
    check_handoff_returns(agent, agent.compact({step: "kill start"}))


@retry_slow_hooks
@only_with(*WITHOUT_DELAY)
def test_handoff_returns_if_the_daemon_was_down_during_a_compaction(agent: MonitoredClient) -> None:
    """The document comes once, with the first hook that is answered again."""
    run = agent.compact({agent.last_step: "kill", agent.last_step + 1: "start"})
    bodies = agent.after_compaction(run)
    assert tuple(body.count(HANDOFF_START) for body in bodies) == (0, *agent.handoff_counts[1:])


@retry_slow_hooks
@only_with(Claude, Codex, Gemini, Opencode)
def test_daemon_killed_between_turns_reports_levels_once(agent: MonitoredClient) -> None:
    """A daemon that is killed and started between turns repeats no level and loses none.

    Claude Code writes the usage of a call after its tools have begun, so the level may come with
    the second turn, and a third shows that it is not repeated.
    """
    reported: list[list[float]] = []
    while len(reported) < 3 and not any(reported[:-1]):
        run = agent.run(agent.steps(1, agent.ramp(0.52)))
        reported.append(levels_reported(agent.requests(run)[-1]))
        agent.daemon.kill()
        agent.daemon.start()
    *_, before, last = reported
    assert len(last) == 1
    assert before == last


@retry_slow_hooks
@only_with(Claude, Codex, Copilot, Gemini, Pi, Qwen)
def test_message_keeps_a_headless_turn_from_ending_only_if_set(agent: MonitoredClient) -> None:
    """If set, it is delivered once when the turn would end, and the agent continues with it."""
    words = f'{brimline("send")} {agent.session_word} "Look at the tests." --block-stop'
    scenario = agent.steps(0, Ramp(), agent.shell(words))
    without = agent.requests(agent.run(scenario))
    assert [body.count("] Look at the tests.") for body in without] == [0, 0]
    agent.set_stop("headless = true")
    again = agent.requests(agent.run(scenario))
    assert [body.count("] Look at the tests.") for body in again] == [1, 1, 2]


@retry_slow_hooks
@only_with(Codex, Copilot, Gemini, Kilo, Opencode)
def test_subagent_gets_no_message_of_the_main_thread(agent: MonitoredClient) -> None:
    """Messages for the main thread never reach its subagent, whose hooks may look the same; and the
    subagent is not a session of its own. The jump over both levels sends one message."""
    asking, subagent = agent.subagent_script
    main = (*asking, Reply(text="Done."))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=agent.ramp(0.7)))
    own = agent.main_requests(run)
    assert [len(levels_reported(body)) for body in own] == [0] + [1] * len(asking)
    assert levels_reported(own[-1])[0] >= 65
    others = [body for body in agent.requests(run) if body not in own]
    assert len(others) >= len(subagent)
    assert not any(levels_reported(body) for body in others)
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["session"]["id"] == agent.session_of(run)


def test_remove_restores_the_files(agent: MonitoredClient) -> None:
    """After `setup --remove` the files are as before, and the agent gets no message."""
    assert agent.files() != agent.original_files
    agent.set_up("--remove")
    assert agent.files() == agent.original_files
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert levels_reported(agent.requests(run)[-1]) == []
    assert agent.shares_home or agent.daemon.get("/v1/sessions") == []


def test_events_without_a_daemon_are_processed_later(agent: MonitoredClient) -> None:
    """Without the daemon the agent works as usual; the daemon processes it later. The level of a
    session that has ended fires no more."""
    agent.daemon.stop()
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert levels_reported(agent.requests(run)[-1]) == []
    agent.daemon.start()
    (view,) = agent.daemon.until("/v1/sessions", bool)
    assert view["threads"][0]["percent"] >= 65
    assert signals_of(agent.timeline(run)) == []


def requests_after_start(agent: MonitoredClient) -> int:
    """Wait for a daemon that may still be starting, and return its number of hook requests."""
    end = time.monotonic() + START_TIMEOUT_S
    while True:
        shown = agent.daemon.command("serve", "--status", "--json")
        requests = json.loads(shown.stdout).get("heard", 0)
        if requests or time.monotonic() > end:
            return requests
        time.sleep(0.1)


def test_session_starts_the_daemon(agent: MonitoredClient) -> None:
    """If no daemon runs, the start of a session starts one, which receives the later hooks."""
    agent.daemon.stop()
    try:
        agent.run_with_autostart(agent.steps(2, agent.ramp(0.7)))
        assert requests_after_start(agent) > 0
    finally:
        stopped = agent.daemon.command("serve", "--stop")
    assert stopped.returncode == 0, stopped.stderr


def test_daemon_that_is_killed_within_a_session_is_started_again(agent: MonitoredClient) -> None:
    """A hook of the same session starts the daemon, which receives the later hooks."""
    killed = agent.daemon.get("/v1/daemon")["pid"]
    try:
        kill = agent.shell(f"kill -9 {killed}")
        agent.run_with_autostart(agent.steps(2, agent.ramp(0.1), kill))
        assert requests_after_start(agent) > 0
    finally:
        agent.daemon.command("serve", "--stop")
        agent.daemon.wait_for_exit()


@only_with(Opencode, Pi)
def test_missing_hook_client_is_silent(agent: ExtensionClient) -> None:
    """If Brimline was uninstalled without `setup --remove`, the agent works and shows no error."""
    agent.daemon.stop()
    agent.file.write_text(agent.file.read_text().replace("client.py", "gone"))
    run = agent.run(agent.steps(2, agent.ramp(0.7)))
    assert agent.errors_shown(run) == []
    assert [levels_reported(body) for body in agent.requests(run)] == [[], [], []]
