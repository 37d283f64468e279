"""Observations of Gemini CLI's hooks."""

import os
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, MalformedJson

from .hook_input import AT, SESSION, hook_request

MODEL = "gemini-3.8-flash"
OPENING = "<session_context>\nThis is the Gemini CLI."
COUNTS = {"promptTokenCount": 12_511, "candidatesTokenCount": 30, "totalTokenCount": 12_541}


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("gemini").hooks.observe(
        hook_request("gemini", event, timestamp="2026-11-15T09:02:27.936Z", **more), AT
    )


def observe_model_reply(
    counts: dict[str, Any] | None, finish: str | None = "STOP", first: str = OPENING
) -> Observation | None:
    messages = [{"role": "user", "content": first}, {"role": "model", "content": "I run it."}]
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": ["Done."]}}
    response: dict[str, Any] = {"text": "Done.", "candidates": [candidate]}
    if finish:
        candidate["finishReason"] = finish
    if counts is not None:
        response["usageMetadata"] = counts
    request = {"model": MODEL, "messages": messages, "config": {"temperature": 1}}
    return observe("AfterModel", llm_request=request, llm_response=response)


@pytest.mark.parametrize(
    ("event", "more", "what"),
    [
        ("SessionStart", {"source": "startup"}, "started"),
        ("SessionStart", {"source": "resume"}, "started"),
        ("SessionStart", {"source": "clear"}, "cleared"),
        ("BeforeAgent", {"prompt": "Go."}, "prompt"),
        ("AfterTool", {"tool_name": "read_file", "tool_response": {}}, "tool"),
        ("AfterAgent", {"stop_hook_active": False}, "stopped"),
        ("SessionEnd", {"reason": "exit"}, "ended"),
    ],
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert (observation.kind, observation.usage) == (what, None)


@pytest.mark.parametrize("event", ["PreCompress", "BeforeModel", "BeforeTool"])
def test_pre_compress_and_other_events_give_no_observation(event: str) -> None:
    """PreCompress fires before every call."""
    assert observe(event, trigger="auto") is None


def test_end_of_a_reply_gives_usage_and_model() -> None:
    observation = observe_model_reply(COUNTS)
    assert observation is not None
    assert (observation.kind, observation.usage_source, observation.model) == (
        "status",
        "hook",
        MODEL,
    )
    assert observation.usage == Usage(12_511, 0, 0, 30)
    assert observation.window is None


def test_tokens_beyond_prompt_and_candidates_are_output() -> None:
    """Hooks do not contain the count of thoughts."""
    observation = observe_model_reply(COUNTS | {"totalTokenCount": 12_600})
    assert observation is not None
    assert observation.usage is not None
    assert (observation.usage.sent, observation.usage.output, observation.usage.held) == (
        12_511,
        89,
        12_600,
    )


def test_part_of_a_reply_gives_no_observation() -> None:
    assert observe_model_reply(COUNTS, finish=None) is None
    assert observe_model_reply(None) is None


def test_reply_to_a_subagent_gives_no_observation() -> None:
    """Only the start of its conversation differs."""
    assert observe_model_reply(COUNTS, first="Look around.") is None
    assert observe("AfterModel", llm_request={"messages": []}, llm_response={}) is None


@pytest.mark.parametrize("counts", [{"totalTokenCount": 5}, {"promptTokenCount": -1}])
def test_missing_or_negative_prompt_count_is_rejected(counts: dict[str, Any]) -> None:
    with pytest.raises(InvalidUsage):
        observe_model_reply(counts)


def test_count_that_is_no_number_is_rejected() -> None:
    with pytest.raises(MalformedJson):
        observe_model_reply({"promptTokenCount": "many"})


@pytest.fixture
def chats(tmp_path: Path) -> tuple[Path, Path]:
    """The chat of a session and the newer one of its subagent."""
    own, other = tmp_path / "session-1.jsonl", tmp_path / SESSION / "sub.jsonl"
    other.parent.mkdir()
    own.touch()
    other.touch()
    os.utime(own, ns=(0, 1_000))
    os.utime(other, ns=(0, 2_000))
    return own, other


def observe_tool_result(own: Path, tool: str = "read_file") -> Observation | None:
    return observe("AfterTool", tool_name=tool, transcript_path=str(own))


def test_tool_result_belongs_to_the_subagent_whose_chat_is_newer(chats: tuple[Path, Path]) -> None:
    own, _ = chats
    assert observe_tool_result(own) is None


def test_result_of_a_subagent_and_later_tools_belong_to_the_session(
    chats: tuple[Path, Path],
) -> None:
    own, _ = chats
    assert observe_tool_result(own, "invoke_agent") is not None
    os.utime(own, ns=(0, 3_000))
    assert observe_tool_result(own) is not None


def test_tool_result_without_a_transcript_belongs_to_the_session(tmp_path: Path) -> None:
    assert observe_tool_result(tmp_path / "not there.jsonl") is not None
    assert observe("AfterTool", transcript_path=None) is not None


@pytest.mark.parametrize(
    ("event", "more", "size"),
    [
        ("BeforeAgent", {"prompt": "Go."}, 3),
        ("AfterTool", {"tool_response": {"llmContent": "1\n2", "returnDisplay": "1\n2"}}, 3),
        ("AfterTool", {"tool_response": {"llmContent": [{"text": "ab"}]}}, 2),
        ("AfterTool", {"tool_response": {"llmContent": "x" * 300_000}}, 40_000),
        ("AfterTool", {"tool_response": {}}, 0),
        ("AfterTool", {"tool_response": "x"}, 0),
        ("AfterTool", {}, 0),
    ],
)
def test_observation_has_the_size_of_what_the_model_gets(
    event: str, more: dict[str, Any], size: int
) -> None:
    """The hook has the whole result; 0.61.0 gives the model 40,000 characters of it."""
    observation = observe(event, **more)
    assert observation is not None
    assert observation.added_bytes == size
