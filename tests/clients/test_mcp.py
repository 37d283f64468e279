"""`brimline mcp` with the real clients: the agent asks, and gets the figure that was billed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from brimline.context.usage import format_tokens
from brimline.testing.fake_model import Billed, Ramp, Reply, Scenario, ToolCall

from .monitored import Claude, Codex, Copilot, Gemini, Kilo, MonitoredClient, Opencode, Qwen
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .run import ClientRun

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Claude, Codex, Copilot, Gemini, Kilo, Opencode, Qwen)

DOCUMENT = "The crane is half painted."
# How each client names a tool of ours, and Codex its group.
TOOL_NAMES: Mapping[str, tuple[str, str | None]] = {
    "claude": ("mcp__brimline__{}", None),
    "codex": ("{}", "mcp__brimline"),
    "copilot": ("brimline-{}", None),
    "gemini": ("mcp_brimline_{}", None),
    "kilo": ("brimline_{}", None),
    "opencode": ("brimline_{}", None),
    "qwen": ("mcp__brimline__{}", None),
}
ARGUMENTS = {
    "claude": ("--allowedTools", "mcp__brimline", "Bash"),
}


def ask(agent: MonitoredClient, tool: str, **arguments: Any) -> Reply:
    """A reply that calls a tool of ours."""
    name, group = TOOL_NAMES[agent.agent]
    return Reply(text="I ask.", tools=(ToolCall(name.format(tool), arguments, group),))


def run(agent: MonitoredClient, scenario: Scenario, **environment: str) -> ClientRun:
    agent.set_up("--mcp")
    return agent.run(scenario, *ARGUMENTS.get(agent.agent, ()), **environment)


def answers(agent: MonitoredClient, run: ClientRun) -> str:
    """What the last request of the conversation has of our tools' answers."""
    return json.loads(agent.conversation(run)[-1])["body"].__repr__()


@retry_slow_hooks
def test_agent_gets_the_figure_that_was_billed(agent: MonitoredClient) -> None:
    """The call that asks is the last one that was billed by then.

    opencode records a call when its tools have run: there it is the one before.
    """
    main = (agent.shell("echo 1"), ask(agent, "context"), Reply(text="Done."))
    asked = run(agent, Scenario(main=main, ramp=agent.ramp(0.2, 0.05)))
    billed = [call for call in asked.billed if call.thread == "main"]
    sent = format_tokens(_sent(billed[-3 if isinstance(agent, Opencode) else -2]))
    found = re.search(r"(\S+) of \S+ \((\S+)%\)", answers(agent, asked))
    assert found, answers(agent, asked)[-3000:]
    assert found[1].strip("'\"").endswith(sent), (found[0], [_sent(call) for call in billed])


@retry_slow_hooks
def test_document_comes_back_after_a_compaction(agent: MonitoredClient) -> None:
    if isinstance(agent, Gemini):
        agent.threshold = 0.6
        agent.write_settings()
        agent.set_up("--mcp")
        first = Scenario(main=(ask(agent, "handoff", action="write", text=DOCUMENT),
                               Reply(text="Done.")), ramp=agent.ramp(0.5, 0.02))  # fmt: skip
        agent.run(first)
        last = agent.run(Scenario(main=agent.loop(3), ramp=agent.ramp(0.61, after=0.5)))
    else:
        write = ask(agent, "handoff", action="write", text=DOCUMENT)
        ramp, environment = agent.ramp(*agent.compaction_ramp), dict[str, str]()
        steps = agent.compaction_steps
        if isinstance(agent, Claude):
            steps += 1
            ramp = Ramp(start=70_000, step=10_000, after_compaction=32_000)
            environment = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
        main = (write, *agent.loop(steps))
        last = run(agent, Scenario(main=main, ramp=ramp), **environment)
    assert DOCUMENT in agent.after_compaction(last)[-1]
    session = agent.session_of(last)
    (handoff,) = agent.daemon.get(f"/v1/sessions/{session}/handoff")["handoffs"]
    assert (handoff["author"], handoff["text"]) == ("the agent itself", DOCUMENT)


def _sent(call: Billed) -> int:
    usage = call.usage
    return usage.input + usage.cache_read + usage.cache_write
