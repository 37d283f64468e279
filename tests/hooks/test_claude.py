"""Claude Code's hooks and status line, as they are heard."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.events import MAIN
from brimline.observations import Observation, ObservationKind
from brimline.transcripts.source import Transcript
from brimline.usage import Usage

from .told import ALIKE, AT, SESSION, told


def heard(event: str, **more: Any) -> Observation | None:
    """What is heard of an event."""
    return get_agent("claude").hooks.observe(told("claude", event, **more), AT)


@pytest.mark.parametrize(
    ("event", "more", "what"),
    [
        *ALIKE,
        ("PostToolBatch", {"tool_calls": []}, "tool"),
        ("StopFailure", {"error": "unknown"}, "wrote"),
    ],
)
def test_happenings(event: str, more: dict[str, Any], what: ObservationKind) -> None:
    """Each event in the monitor's words."""
    found = heard(event, **more)
    assert found is not None
    assert (found.kind, found.thread) == (what, MAIN)


def test_details() -> None:
    """Who compacts, which model, and whether a turn goes on that was kept from ending."""
    compacting, started = heard("PreCompact", trigger="manual"), heard("SessionStart", model="m")
    stopped = heard("Stop", stop_hook_active=True)
    assert compacting is not None
    assert started is not None
    assert stopped is not None
    assert (compacting.trigger, started.model, stopped.is_continuation) == ("manual", "m", True)
    assert (started.trigger, started.is_continuation) == (None, False)


def test_nobody_reads_the_answer_of_post_compact() -> None:
    """SessionStart(compact) is answered; PostCompact, which follows, would be for nobody."""
    start, after = heard("SessionStart", source="compact"), heard("PostCompact")
    assert start is not None
    assert after is not None
    assert (start.is_late, after.is_late) == (False, True)


@pytest.fixture
def subagent(tmp_path: Path) -> Path:
    """The transcript of a subagent, below the session's own."""
    path = tmp_path / "session/subagents/agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    return path


def test_tool_of_a_subagent(subagent: Path, tmp_path: Path) -> None:
    """It is heard of in a thread of its own, and its model is not the session's."""
    own = str(tmp_path / "session.jsonl")
    found = heard("PostToolUse", agent_id="a1", transcript_path=own, model="small")
    assert found is not None
    assert (found.kind, found.thread, found.transcript, found.model) == ("tool", "a1", own, None)
    stamp = subagent.stat().st_mtime
    assert found.file == Transcript("claude", str(subagent), stamp, 3, SESSION, "a1")


def test_end_of_a_subagent(subagent: Path) -> None:
    """Its thread ends, and its file is read to the end; what only writes a summary has none."""
    found = heard("SubagentStop", agent_id="a1", agent_transcript_path=str(subagent))
    assert found is not None
    assert (found.kind, found.thread) == ("ended", "a1")
    assert found.file is not None
    assert found.file.path == str(subagent)
    summary = str(subagent.with_name("agent-a2.jsonl"))
    assert heard("SubagentStop", agent_id="a2", agent_transcript_path=summary) is None


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SubagentStart", "PreCompact", "Stop"])
def test_rest_of_a_subagent(subagent: Path, tmp_path: Path, event: str) -> None:
    """What else happens in a subagent does not happen to its session."""
    own = str(tmp_path / "session.jsonl")
    assert subagent.exists()
    assert heard(event, agent_id="a1", transcript_path=own) is None


def test_project(subagent: Path) -> None:
    """A hook's project is where its session began, not the folder that the agent went to."""
    env = {"CLAUDE_PROJECT_DIR": "/project"}
    more = {"cwd": "/project/sub", "agent_transcript_path": str(subagent)}
    for own in ({}, {"agent_id": "a1"}):
        moved = heard("PostToolUse", **more, **own)
        known = heard("PostToolUse", env=env, **more, **own)
        assert moved is not None
        assert known is not None
        assert (moved.project, known.project) == ("/project/sub", "/project")


def status(context: dict[str, Any], **more: Any) -> Observation:
    """What is heard of a status line."""
    model = {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"}
    body = {"session_id": SESSION, "version": "2.1.325", "model": model, "context_window": context}
    body |= more
    request = HookRequest("statusline", "claude", "1-1", 1, {}, json.dumps(body).encode())
    return get_agent("claude").status_line(request, AT)[0]


def test_status_line() -> None:
    """Its usage and its window, and never its percentages."""
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_creation_input_tokens": 11,
        "cache_read_input_tokens": 13,
    }
    found = status(
        {"context_window_size": 200_000, "current_usage": usage, "used_percentage": 1_763_000_000}
    )
    assert (found.kind, found.usage_source) == ("status", "status line")
    assert (found.usage, found.window) == (Usage(5, 13, 11, 7), 200_000)
    assert (found.model, found.version) == ("claude-sonnet-4-5", "2.1.325")


def test_status_line_before_a_call() -> None:
    """Then there is no usage, and that is not 0."""
    assert status({"context_window_size": 200_000, "current_usage": None}).usage is None


@pytest.mark.parametrize(
    ("workspace", "project"),
    [
        ({"current_dir": "/project/sub", "project_dir": "/project"}, "/project"),
        ({"current_dir": "/project/sub"}, "/project/sub"),
        (None, "/project/sub"),
    ],
)
def test_project_of_a_status_line(workspace: Any, project: str) -> None:
    """It is where the session began, as far as the client tells that."""
    assert status({}, cwd="/project/sub", workspace=workspace).project == project


def test_no_status_line() -> None:
    """What is no status line's input is refused."""
    with pytest.raises(msgspec.DecodeError):
        get_agent("claude").status_line(
            HookRequest("statusline", "claude", "1-1", 1, {}, b"[]"), AT
        )
