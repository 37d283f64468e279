"""Observations of Claude Code's hooks and status line."""

import json
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import Observation, ObservationKind, Reply
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN
from brimline.context.usage import Usage
from brimline.errors import MalformedJson

from .hook_input import AT, COMMON_EVENTS, SESSION, hook_request


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("claude").hooks.observe(hook_request("claude", event, **more), AT)


@pytest.mark.parametrize(
    ("event", "more", "what"),
    [
        *COMMON_EVENTS,
        ("PostToolBatch", {"tool_calls": []}, "tool"),
        ("StopFailure", {"error": "unknown"}, "wrote"),
    ],
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert (observation.kind, observation.thread) == (what, MAIN)


@pytest.mark.parametrize(
    ("event", "more", "size"),
    [
        ("UserPromptSubmit", {"prompt": "caf\u00e9"}, 5),
        ("PostToolBatch", {"tool_calls": [{"tool_response": "1\n2"}, {"tool_response": "x"}]}, 4),
        ("PostToolBatch", {"tool_calls": [{"tool_response": [{"type": "text", "text": "ab"}]}]}, 2),
        ("PostToolBatch", {"tool_calls": [{"tool_response": [{"type": "image"}]}]}, 0),
        ("PostToolBatch", {"tool_calls": [{"tool_response": {"stdout": "x"}}, {}]}, 0),
        ("PostToolBatch", {"tool_calls": "x"}, 0),
        ("PostToolUse", {"tool_response": "not what the model gets"}, 0),
    ],
)
def test_observation_has_the_size_of_what_the_model_gets(
    event: str, more: dict[str, Any], size: int
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert observation.added_bytes == size


def test_observation_has_trigger_model_and_continuation() -> None:
    compacting, started = (
        observe("PreCompact", trigger="manual"),
        observe("SessionStart", model="m"),
    )
    stopped = observe("Stop", stop_hook_active=True)
    assert compacting is not None
    assert started is not None
    assert stopped is not None
    assert (compacting.trigger, started.model, stopped.is_continuation) == ("manual", "m", True)
    assert (started.trigger, started.is_continuation) == (None, False)


@pytest.mark.parametrize(
    ("entrypoint", "is_interactive"),
    [("cli", True), ("sdk-cli", False), ("sdk-py", False), (None, None)],
)
def test_entrypoint_distinguishes_headless_runs(
    entrypoint: str | None, is_interactive: bool | None
) -> None:
    """2.1.325 sets it for hooks and the status line; a hook over HTTP has no variables."""
    env = {} if entrypoint is None else {"CLAUDE_CODE_ENTRYPOINT": entrypoint}
    stop = get_agent("claude").hooks.observe(hook_request("claude", "Stop", env), AT)
    assert stop is not None
    assert stop.is_interactive is is_interactive
    body = json.dumps({"session_id": SESSION}).encode()
    line, _ = get_agent("claude").status_line(
        HookRequest("statusline", "claude", "1-1", 1, env, body), AT
    )
    assert line.is_interactive is is_interactive


def test_orchestrator_names_its_id_of_a_session() -> None:
    env = {"CLAUDE_SESSION_MANAGER_ID": "sm-1"}
    prompt = get_agent("claude").hooks.observe(hook_request("claude", "UserPromptSubmit", env), AT)
    assert prompt is not None
    assert prompt.manager_id == "sm-1"
    body = json.dumps({"session_id": SESSION}).encode()
    line, _ = get_agent("claude").status_line(
        HookRequest("statusline", "claude", "1-1", 1, env, body), AT
    )
    assert line.manager_id == "sm-1"


@pytest.mark.parametrize("version", ["2.1.325", "2.2.0", "3.0.0-beta.1"])
def test_stop_feedback_is_context_if_the_client_takes_it(version: str) -> None:
    reply = Reply(stop_feedback="a reason", client_version=version)
    assert json.loads(get_agent("claude").hooks.encode_reply("Stop", reply)) == {
        "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "a reason"}
    }


@pytest.mark.parametrize("version", ["2.1.139", "2.1.324", "", None])
def test_stop_feedback_is_a_decision_for_older_and_unknown_clients(version: str | None) -> None:
    reply = Reply(stop_feedback="a reason", client_version=version)
    answer = json.loads(get_agent("claude").hooks.encode_reply("Stop", reply))
    assert answer == {"decision": "block", "reason": "a reason"}


def test_reply_waits_for_session_start_not_post_compact() -> None:
    start, after = observe("SessionStart", source="compact"), observe("PostCompact")
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


def test_tool_of_a_subagent_belongs_to_its_own_thread(subagent: Path, tmp_path: Path) -> None:
    own = str(tmp_path / "session.jsonl")
    observation = observe("PostToolUse", agent_id="a1", transcript_path=own, model="small")
    assert observation is not None
    assert (observation.kind, observation.thread, observation.transcript, observation.model) == (
        "tool",
        "a1",
        own,
        None,
    )
    stamp = subagent.stat().st_mtime
    assert observation.file == Transcript("claude", str(subagent), stamp, 3, SESSION, "a1")


def test_end_of_a_subagent_reads_its_file_and_a_missing_file_is_ignored(subagent: Path) -> None:
    """A process that only writes a summary has no file."""
    observation = observe("SubagentStop", agent_id="a1", agent_transcript_path=str(subagent))
    assert observation is not None
    assert (observation.kind, observation.thread) == ("ended", "a1")
    assert observation.file is not None
    assert observation.file.path == str(subagent)
    summary = str(subagent.with_name("agent-a2.jsonl"))
    assert observe("SubagentStop", agent_id="a2", agent_transcript_path=summary) is None


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SubagentStart", "PreCompact", "Stop"])
def test_other_events_of_a_subagent_do_not_change_its_session(
    subagent: Path, tmp_path: Path, event: str
) -> None:
    own = str(tmp_path / "session.jsonl")
    assert subagent.exists()
    assert observe(event, agent_id="a1", transcript_path=own) is None


def test_project_is_where_the_session_began(subagent: Path) -> None:
    env = {"CLAUDE_PROJECT_DIR": "/project"}
    more = {"cwd": "/project/sub", "agent_transcript_path": str(subagent)}
    for own in ({}, {"agent_id": "a1"}):
        moved = observe("PostToolUse", **more, **own)
        known = observe("PostToolUse", env=env, **more, **own)
        assert moved is not None
        assert known is not None
        assert (moved.project, known.project) == ("/project/sub", "/project")


def observe_status_line(context: dict[str, Any], **more: Any) -> Observation:
    model = {"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"}
    body = {"session_id": SESSION, "version": "2.1.325", "model": model, "context_window": context}
    body |= more
    request = HookRequest("statusline", "claude", "1-1", 1, {}, json.dumps(body).encode())
    return get_agent("claude").status_line(request, AT)[0]


def test_status_line_gives_usage_and_window_but_no_percentage() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_creation_input_tokens": 11,
        "cache_read_input_tokens": 13,
    }
    observation = observe_status_line(
        {"context_window_size": 200_000, "current_usage": usage, "used_percentage": 1_763_000_000}
    )
    assert (observation.kind, observation.usage_source) == ("status", "status line")
    assert (observation.usage, observation.window) == (Usage(5, 13, 11, 7), 200_000)
    assert (observation.model, observation.version) == ("claude-sonnet-4-5", "2.1.325")


def test_status_line_before_the_first_call_has_no_usage() -> None:
    assert (
        observe_status_line({"context_window_size": 200_000, "current_usage": None}).usage is None
    )


@pytest.mark.parametrize(
    ("workspace", "project"),
    [
        ({"current_dir": "/project/sub", "project_dir": "/project"}, "/project"),
        ({"current_dir": "/project/sub"}, "/project/sub"),
        (None, "/project/sub"),
    ],
)
def test_project_of_a_status_line_is_where_the_session_began(workspace: Any, project: str) -> None:
    assert observe_status_line({}, cwd="/project/sub", workspace=workspace).project == project


def test_invalid_status_line_input_is_rejected() -> None:
    with pytest.raises(MalformedJson):
        get_agent("claude").status_line(
            HookRequest("statusline", "claude", "1-1", 1, {}, b"[]"), AT
        )
