"""Every agent's hooks through one door: what is heard, and what they are answered."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.errors import InvalidUsage, UnknownAgent
from brimline.observations import EMPTY_REPLY, Reply

from .told import AT, SESSION, told

ENDED = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9}}
CALL: dict[str, Any] = {
    "llm_request": {"model": "gemini-3.8-flash", "messages": [{"content": "<session_context>"}]},
    "llm_response": ENDED,
}
SUBAGENTS = "SubagentStop"
"""An event that only a subagent has; test_claude.py has it."""


@pytest.mark.parametrize(
    ("agent", "event"),
    [
        (n, event)
        for n in agent_names()
        for event in get_agent(n).install_spec.events
        if event != SUBAGENTS
    ],
)
def test_every_installed_hook_is_heard(agent: str, event: str) -> None:
    """No hook that setup installs is run for nothing."""
    heard = get_agent(agent).hooks.observe(told(agent, event, **CALL), AT)
    assert heard is not None
    assert (heard.agent, heard.session, heard.at) == (agent, SESSION, AT)
    transcript = heard.file.path if heard.file else heard.transcript
    assert (heard.project, transcript) == ("/project", "/no/transcript.jsonl")


@pytest.mark.parametrize("agent", agent_names())
def test_what_comes_along(agent: str) -> None:
    """The parent is told by the environment, and what is late by its way."""
    env = {"BRIMLINE_PARENT": "parent"}
    heard = get_agent(agent).hooks.observe(told(agent, "SessionStart", env), AT, late=True)
    plain = get_agent(agent).hooks.observe(told(agent, "SessionStart"), AT)
    assert heard is not None
    assert plain is not None
    assert (heard.parent, heard.is_late) == ("parent", True)
    assert (plain.parent, plain.is_late) == (None, False)


@pytest.mark.parametrize("agent", agent_names())
def test_answers(agent: str) -> None:
    """What to read goes with the event's name, what to go on for as a decision; nothing is b''."""
    hooks = get_agent(agent).hooks
    observation = hooks.observe(told(agent, "SessionStart"), AT)
    assert observation is not None
    assert hooks.encode_reply(observation.hook_event, EMPTY_REPLY) == b""
    context = json.loads(hooks.encode_reply(observation.hook_event, Reply(context="a text")))
    assert context == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "a text"}
    }
    going_on = json.loads(hooks.encode_reply("Stop", Reply(stop_feedback="a reason")))
    assert going_on == {"decision": "block", "reason": "a reason"}


@pytest.mark.parametrize("agent", agent_names())
def test_events_of_others(agent: str) -> None:
    """An event that we do not know tells nothing."""
    assert get_agent(agent).hooks.observe(told(agent, "Notification"), AT) is None


def test_unknown_agent() -> None:
    """An agent that has no hooks of ours is refused, and one without a status line for its."""
    with pytest.raises(UnknownAgent, match="unknown agent 'emacs'"):
        get_agent("emacs").hooks.observe(told("emacs", "SessionStart"), AT)
    with pytest.raises(UnknownAgent, match="unknown agent 'emacs'"):
        get_agent("emacs").hooks.encode_reply("SessionStart", EMPTY_REPLY)
    with pytest.raises(UnknownAgent, match="unknown agent 'codex'"):
        get_agent("codex").status_line(told("codex", ""), AT)


@given(st.sampled_from(sorted(agent_names())), st.binary() | st.text().map(str.encode))
def test_garbage(agent: str, body: bytes) -> None:
    """What is no hook's input is refused in a way that the daemon counts."""
    request = HookRequest("hook", agent, "1-1", 1, {}, body)
    with pytest.raises((msgspec.DecodeError, InvalidUsage)):
        get_agent(request.agent).hooks.observe(request, AT)
