"""Gemini CLI with our hooks and a real daemon: what is not so with the others."""

from __future__ import annotations

import pytest

from brimline.hooks import agents
from brimline.hooks.protocol import Request
from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Gemini
from .monitored.fixtures import in_time, running
from .monitored.found import kinds, sent
from .scenes import THOUGHT

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = running(Gemini)


@in_time
def test_readings_of_hooks_equal_the_bill(agent: Gemini) -> None:
    """Each end of an answer is a reading if the user has a hook at each piece of one: what was
    billed for the main thread's calls, and no other's, with the thoughts."""
    folder = agent.record_hook("AfterModel")
    asking, errand = agent.errand
    main = (agent.shell("echo one"), *asking, Reply(text="Done.", reasoning=THOUGHT))
    run = agent.run(Scenario(main=main, subagent=errand, ramp=Ramp(step=5_000)))
    bodies = [file.read_bytes() for file in sorted(folder.iterdir())]
    requests = [Request("hook", "gemini", f"{at}-1", 1, {}, body) for at, body in enumerate(bodies)]
    found = [agents.heard(request, request.at) for request in requests]
    usages = [one.usage for one in found if one is not None and one.usage is not None]
    assert [(usage.sent, usage.output) for usage in usages] == [
        (sent(one), one.usage.output) for one in run.of("main")
    ]


@in_time
def test_compression_is_told_of(agent: Gemini) -> None:
    """A real compression, of which no hook tells, is one, once."""
    run = agent.compact()
    assert [one.thread for one in run.billed].count("compaction") == 2
    timeline = agent.timeline(run)
    assert kinds(timeline) == [("level", 0, 50.0), ("compacted", 0, 0.0), ("level", 1, 50.0)]
    assert [call["cycle"] for call in timeline["calls"]] == [0, 0, 0, 1, 1, 1]


@in_time
def test_draft_after_a_compression(agent: Gemini) -> None:
    """Where nobody handed a document over, the agent gets a draft, once; no hook told before."""
    run = agent.compress(agent.shell("echo one"))
    assert agent.sent(run)[-1].count("a draft that Brimline made") == 1
