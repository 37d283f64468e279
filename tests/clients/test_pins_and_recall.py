"""Pins and recall with the real clients: what their contexts have after two compactions."""

from __future__ import annotations

import os

import pytest

from brimline.handoff.pins import INTRO, PinFile, make_pin
from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Claude, Codex, MonitoredClient, Pi
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .monitored.script import brimline
from .run import ClientRun, Place

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Claude, Codex, Pi)

NEVER = "Never touch the README."
FACT = "The harbour gate is number 4711."
RECALL_HINT = "recall WORDS --before-compaction"


def run_over_compaction(
    agent: MonitoredClient, before: Reply, after: Reply, *arguments: str
) -> ClientRun:
    """A turn with a tool call before the client compacts, and another one after it."""
    if isinstance(agent, Claude):
        ramp = Ramp(start=70_000, step=10_000, after_compaction=32_000)
        steps, environment = 7, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    else:
        ramp, steps, environment = agent.ramp(0.7, 0.06, 0.05), 6, {}
    main = (before, *agent.loop(steps)[:-1], after, Reply(text="Done."))
    return agent.run(Scenario(main=main, ramp=ramp), *arguments, **environment)


@retry_slow_hooks
def test_pin_and_fact_are_lost_in_two_compactions(agent: MonitoredClient) -> None:
    """Each context has the pin once; the second finds with recall what was run before the first.

    The agent's own pin is a proposal, which no context gets.
    """
    project = os.path.realpath(Place(agent.folder).project)
    pins = PinFile(agent.daemon.state)
    pins.add(make_pin(NEVER, 1e9, "user", project=project))
    tell = agent.shell(f"echo {FACT!r}; {brimline('pin', 'Delete the tests.')}")
    look = agent.shell("ls")
    first = run_over_compaction(agent, tell, look)
    assert agent.main_requests(first)[0].count(INTRO) == 1
    recall = agent.shell(brimline("recall", "harbour", "gate", "--before-compaction"))
    second = run_over_compaction(agent, look, recall)
    for run in (first, second):
        last = agent.after_compaction(run)[-1]
        assert (last.count(INTRO), last.count(NEVER)) == (1, 1)
        assert last.index(NEVER) < last.index(RECALL_HINT)
        assert "- Delete the tests. (pinned" not in last
    assert FACT in agent.after_compaction(second)[-1]
    (proposal,) = (pin for pin in pins.load() if pin.by == "agent")
    assert (proposal.text, proposal.session) == ("Delete the tests.", agent.session_of(first))
