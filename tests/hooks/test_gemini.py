"""Gemini CLI's hooks, as they are heard."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import get_agent
from brimline.errors import InvalidUsage
from brimline.observations import Observation, ObservationKind
from brimline.usage import Usage

from .told import AT, SESSION, told

MODEL = "gemini-3.8-flash"
OPENING = "<session_context>\nThis is the Gemini CLI."
COUNTS = {"promptTokenCount": 12_511, "candidatesTokenCount": 30, "totalTokenCount": 12_541}


def heard(event: str, **more: Any) -> Observation | None:
    """What is heard of an event."""
    return get_agent("gemini").hooks.observe(
        told("gemini", event, timestamp="2026-11-15T09:02:27.936Z", **more), AT
    )


def after_model(
    counts: dict[str, Any] | None, finish: str | None = "STOP", first: str = OPENING
) -> Observation | None:
    """What is heard of a part of an answer."""
    messages = [{"role": "user", "content": first}, {"role": "model", "content": "I run it."}]
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": ["Done."]}}
    response: dict[str, Any] = {"text": "Done.", "candidates": [candidate]}
    if finish:
        candidate["finishReason"] = finish
    if counts is not None:
        response["usageMetadata"] = counts
    request = {"model": MODEL, "messages": messages, "config": {"temperature": 1}}
    return heard("AfterModel", llm_request=request, llm_response=response)


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
def test_happenings(event: str, more: dict[str, Any], what: ObservationKind) -> None:
    """Each event in the monitor's words."""
    found = heard(event, **more)
    assert found is not None
    assert (found.kind, found.usage) == (what, None)


@pytest.mark.parametrize("event", ["PreCompress", "BeforeModel", "BeforeTool"])
def test_nothing(event: str) -> None:
    """PreCompress fires before every call: it is no compaction, nor is anything else of it."""
    assert heard(event, trigger="auto") is None


def test_reading() -> None:
    """The end of an answer is a reading, told by a hook, with the model that answered."""
    found = after_model(COUNTS)
    assert found is not None
    assert (found.kind, found.usage_source, found.model) == ("status", "hook", MODEL)
    assert found.usage == Usage(12_511, 0, 0, 30)
    assert found.window is None


def test_thoughts() -> None:
    """Hooks are not told of thoughts; what the total has beyond the rest is output."""
    found = after_model(COUNTS | {"totalTokenCount": 12_600})
    assert found is not None
    assert found.usage is not None
    assert (found.usage.sent, found.usage.output, found.usage.held) == (12_511, 89, 12_600)


def test_part_of_an_answer() -> None:
    """A part that is not the last has a count that still grows: it tells nothing."""
    assert after_model(COUNTS, finish=None) is None
    assert after_model(None) is None


def test_reading_of_a_subagent() -> None:
    """A subagent's call looks the same, but for how its conversation begins."""
    assert after_model(COUNTS, first="Look around.") is None
    assert heard("AfterModel", llm_request={"messages": []}, llm_response={}) is None


@pytest.mark.parametrize("counts", [{"totalTokenCount": 5}, {"promptTokenCount": -1}])
def test_impossible_counts(counts: dict[str, Any]) -> None:
    """A usage without a prompt, or with a negative one, is none."""
    with pytest.raises(InvalidUsage):
        after_model(counts)


def test_malformed() -> None:
    """A count that is no number makes no reading."""
    with pytest.raises(msgspec.DecodeError):
        after_model({"promptTokenCount": "many"})


@pytest.fixture
def chats(tmp_path: Path) -> tuple[Path, Path]:
    """The chat of a session, and that of its subagent, which is written later."""
    own, other = tmp_path / "session-1.jsonl", tmp_path / SESSION / "sub.jsonl"
    other.parent.mkdir()
    own.touch()
    other.touch()
    os.utime(own, ns=(0, 1_000))
    os.utime(other, ns=(0, 2_000))
    return own, other


def after_tool(own: Path, tool: str = "read_file") -> Observation | None:
    """What is heard of a tool's result."""
    return heard("AfterTool", tool_name=tool, transcript_path=str(own))


def test_tool_of_a_subagent(chats: tuple[Path, Path]) -> None:
    """While a subagent's chat is the newer one, a tool's result is the subagent's."""
    own, _ = chats
    assert after_tool(own) is None


def test_tool_after_a_subagent(chats: tuple[Path, Path]) -> None:
    """The subagent's own result is the session's, and so is all that follows."""
    own, _ = chats
    assert after_tool(own, "invoke_agent") is not None
    os.utime(own, ns=(0, 3_000))
    assert after_tool(own) is not None


def test_no_transcript(tmp_path: Path) -> None:
    """Where no file can be looked at, the result is the session's."""
    assert after_tool(tmp_path / "not there.jsonl") is not None
    assert heard("AfterTool", transcript_path=None) is not None
