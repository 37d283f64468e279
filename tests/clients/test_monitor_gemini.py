"""Gemini CLI with our hooks and a real daemon: how it differs from the other clients."""

from __future__ import annotations

import pytest

from brimline.agents import get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.testing.fake_model import Ramp, Reply, Scenario

from .monitored import Gemini
from .monitored.assertions import check_handoff_returns, sent_tokens, signals_of
from .monitored.fixtures import client_fixture, only_with, retry_slow_hooks
from .scenes import THOUGHT

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Gemini)


@retry_slow_hooks
def test_readings_of_hooks_equal_the_bill(agent: Gemini) -> None:
    """If the user has a hook for each chunk of an answer, the last chunk is a reading: what was
    billed for the calls of the main thread only, including reasoning."""
    folder = agent.record_hook("AfterModel")
    asking, subagent = agent.subagent_script
    main = (agent.shell("echo one"), *asking, Reply(text="Done.", reasoning=THOUGHT))
    run = agent.run(Scenario(main=main, subagent=subagent, ramp=Ramp(step=5_000)))
    bodies = [file.read_bytes() for file in sorted(folder.iterdir())]
    requests = [
        HookRequest("hook", "gemini", f"{at}-1", 1, {}, body) for at, body in enumerate(bodies)
    ]
    found = [get_agent(request.agent).hooks.observe(request, request.at) for request in requests]
    usages = [one.usage for one in found if one is not None and one.usage is not None]
    assert [(usage.sent, usage.output) for usage in usages] == [
        (sent_tokens(one), one.usage.output) for one in run.of("main")
    ]


@retry_slow_hooks
def test_compression_without_a_hook_is_found(agent: Gemini) -> None:
    """A real compression, which no hook reports, is recorded once, and the handoff returns."""
    run = agent.compact()
    check_handoff_returns(agent, run)
    assert [one.thread for one in run.billed].count("compaction") == 2
    timeline = agent.timeline(run)
    assert signals_of(timeline) == [("level", 0, 65.0), ("compacted", 0, 0.0), ("level", 1, 65.0)]
    assert [call["cycle"] for call in timeline["calls"]] == [0, 0, 0, 1, 1, 1]


@retry_slow_hooks
@only_with(Gemini, is_short=True)
def test_draft_after_a_compression(agent: Gemini) -> None:
    """If no document was handed over, the agent gets a draft once."""
    run = agent.compress(agent.shell("echo one"))
    assert agent.conversation(run)[-1].count("a draft that Brimline generated") == 1
