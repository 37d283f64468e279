"""Observations of Copilot CLI's hooks."""

from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind

from .hook_input import AT, SESSION, hook_request


def observe(event: str, env: dict[str, str] | None = None, **more: Any) -> Observation | None:
    return get_agent("copilot").hooks.observe(hook_request("copilot", event, env, **more), AT)


@pytest.mark.parametrize(
    ("event", "more", "what"),
    [
        ("SessionStart", {"source": "new", "initial_prompt": "Go."}, "started"),
        ("SessionStart", {"source": "resume"}, "started"),
        ("UserPromptSubmit", {"prompt": "Go."}, "prompt"),
        ("PostToolUse", {"tool_name": "Bash"}, "tool"),
        ("Stop", {"stop_hook_active": False}, "stopped"),
        ("PreCompact", {"trigger": "auto"}, "compacting"),
        ("SessionEnd", {"reason": "complete"}, "ended"),
    ],
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert observation.kind == what


def test_transcript_follows_from_the_session() -> None:
    """Only some hooks name it."""
    moved = observe("PostToolUse", {"COPILOT_HOME": "/moved"}, transcript_path=None)
    own = observe("PostToolUse", transcript_path=None)
    hook = observe("PostToolUse", {"COPILOT_HOOK_DIR": "/h/.copilot/hooks"}, transcript_path=None)
    shared = observe("PostToolUse", {"COPILOT_HOOK_DIR": "/p/.github/hooks"}, transcript_path=None)
    named = observe("Stop", transcript_path="/named/events.jsonl")
    assert moved is not None
    assert own is not None
    assert named is not None
    assert hook is not None
    assert shared is not None
    assert hook.transcript == f"/h/.copilot/session-state/{SESSION}/events.jsonl"
    assert shared.transcript == own.transcript
    assert moved.transcript == f"/moved/session-state/{SESSION}/events.jsonl"
    assert own.transcript == str(Path.home() / f".copilot/session-state/{SESSION}/events.jsonl")
    assert named.transcript == "/named/events.jsonl"


def test_size_of_a_result_is_known() -> None:
    result = {"result_type": "success", "text_result_for_llm": "12345"}
    observation = observe("PostToolUse", tool_name="Bash", tool_result=result)
    assert observation is not None
    assert observation.added_bytes == 5


def test_hooks_of_a_subagent_are_no_session() -> None:
    """Their session is the subagent's own id."""
    assert observe("UserPromptSubmit", agent_id="a1", parent_agent_id=SESSION) is None
