"""Observations of Qwen Code's hooks."""

from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind

from .hook_input import AT, SESSION, hook_request


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("qwen").hooks.observe(hook_request("qwen", event, **more), AT)


def batch(*outputs: str) -> list[dict[str, Any]]:
    """The results of a batch of tools."""
    return [
        {
            "tool_response": {
                "response_parts": [{"functionResponse": {"response": {"output": each}}}]
            }
        }
        for each in outputs
    ]


@pytest.mark.parametrize(
    ("event", "more", "what"),
    [
        ("SessionStart", {"source": "startup"}, "started"),
        ("SessionStart", {"source": "clear"}, "cleared"),
        ("UserPromptSubmit", {"prompt": "Go."}, "prompt"),
        ("PostToolBatch", {"tool_calls": []}, "tool"),
        ("Stop", {"stop_hook_active": False}, "stopped"),
        ("PreCompact", {"trigger": "auto"}, "compacting"),
        ("PostCompact", {"trigger": "auto", "compact_summary": "..."}, "compacted"),
        ("SessionEnd", {"reason": "exit"}, "ended"),
    ],
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert observation.kind == what


def test_empty_prompt_is_no_turn() -> None:
    """0.24.4 runs UserPromptSubmit before each call that follows tools, with an empty prompt."""
    assert observe("UserPromptSubmit", prompt="") is None


def test_start_after_a_compression_waits_for_the_next_tool() -> None:
    """Its answer would be in the same request as that tool's, but not in the chat."""
    assert observe("SessionStart", source="compact") is None


def test_size_of_a_batch_is_that_of_its_results() -> None:
    observation = observe("PostToolBatch", tool_calls=batch("four", "é"))
    assert observation is not None
    assert observation.added_bytes == 6
    prompt = observe("UserPromptSubmit", prompt="Go.")
    assert prompt is not None
    assert (prompt.added_bytes, prompt.prompt) == (3, "Go.")


@pytest.mark.parametrize(("event", "kind"), [("PostToolBatch", "tool"), ("SubagentStop", "ended")])
def test_subagents_hook_names_its_chat(event: str, kind: str, tmp_path: Path) -> None:
    chat = tmp_path / "chats" / f"{SESSION}.jsonl"
    own = tmp_path / "subagents" / SESSION / "agent-general-1.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    observation = observe(event, transcript_path=str(chat), agent_id="general-1")
    assert observation is not None
    assert observation.file is not None
    assert (observation.kind, observation.thread) == (kind, "general-1")
    assert (observation.file.path, observation.file.session) == (str(own), SESSION)
    own.unlink()
    assert observe(event, transcript_path=str(chat), agent_id="general-1") is None
    assert observe("Stop", transcript_path=str(chat), agent_id="general-1") is None
