"""Hooks of all agents through one interface: observations and encoded replies."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, agents_with_hooks, get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import EMPTY_REPLY, Reply
from brimline.errors import InvalidUsage, MalformedJson, UnknownAgent

from .hook_input import AT, SESSION, hook_request

ENDED = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9}}
CALL: dict[str, Any] = {
    "llm_request": {"model": "gemini-3.8-flash", "messages": [{"content": "<session_context>"}]},
    "llm_response": ENDED,
}
AGENTS = agents_with_hooks(agent_names())
SUBAGENT_EVENT = "SubagentStop"  # tested in test_claude.py


@pytest.mark.parametrize(
    ("agent", "event"),
    [
        (n, event)
        for n in AGENTS
        for event in get_agent(n).install_spec.events
        if event != SUBAGENT_EVENT
    ],
)
def test_every_installed_hook_gives_an_observation(agent: str, event: str) -> None:
    observation = get_agent(agent).hooks.observe(hook_request(agent, event, **CALL), AT)
    assert observation is not None
    assert (observation.agent, observation.session, observation.at) == (agent, SESSION, AT)
    transcript = observation.file.path if observation.file else observation.transcript
    assert (observation.project, transcript) == ("/project", "/no/transcript.jsonl")


@pytest.mark.parametrize("agent", AGENTS)
def test_observation_has_the_parent_and_whether_it_is_late(agent: str) -> None:
    env = {"BRIMLINE_PARENT": "parent"}
    observation = get_agent(agent).hooks.observe(
        hook_request(agent, "SessionStart", env), AT, late=True
    )
    plain = get_agent(agent).hooks.observe(hook_request(agent, "SessionStart"), AT)
    assert observation is not None
    assert plain is not None
    assert (observation.parent, observation.is_late) == ("parent", True)
    assert (plain.parent, plain.is_late) == (None, False)


@pytest.mark.parametrize("agent", AGENTS)
def test_reply_is_encoded_as_context_or_as_a_decision(agent: str) -> None:
    hooks = get_agent(agent).hooks
    observation = hooks.observe(hook_request(agent, "SessionStart"), AT)
    assert observation is not None
    assert hooks.encode_reply(observation.hook_event, EMPTY_REPLY) == b""
    context = json.loads(hooks.encode_reply(observation.hook_event, Reply(context="a text")))
    answer = {"additionalContext": "a text"}
    expected = {"hookSpecificOutput": {"hookEventName": "SessionStart"} | answer}
    own = {"copilot": answer, "kimi": {"message": "a text"}}
    assert context == own.get(agent, expected)
    going_on = json.loads(hooks.encode_reply("Stop", Reply(stop_feedback="a reason")))
    refusal = {"permissionDecision": "deny", "permissionDecisionReason": "a reason"}
    own = {"kimi": {"hookSpecificOutput": refusal}}
    assert going_on == own.get(agent, {"decision": "block", "reason": "a reason"})


@pytest.mark.parametrize("agent", AGENTS)
def test_unknown_event_gives_no_observation(agent: str) -> None:
    assert get_agent(agent).hooks.observe(hook_request(agent, "Notification"), AT) is None


def test_agent_without_hooks_or_status_line_is_rejected() -> None:
    with pytest.raises(UnknownAgent, match="unknown agent 'emacs'"):
        get_agent("emacs").hooks.observe(hook_request("emacs", "SessionStart"), AT)
    with pytest.raises(UnknownAgent, match="unknown agent 'emacs'"):
        get_agent("emacs").hooks.encode_reply("SessionStart", EMPTY_REPLY)
    with pytest.raises(UnknownAgent, match="unknown agent 'codex'"):
        get_agent("codex").status_line(hook_request("codex", ""), AT)


@given(st.sampled_from(AGENTS), st.binary() | st.text().map(str.encode))
def test_invalid_hook_input_raises_a_decode_error(agent: str, body: bytes) -> None:
    request = HookRequest("hook", agent, "1-1", 1, {}, body)
    with pytest.raises((MalformedJson, InvalidUsage)):
        get_agent(request.agent).hooks.observe(request, AT)
