"""The content of Copilot CLI's sessions: every kind of record that goes into the context."""

import json
from typing import Any

from brimline.agents import get_agent
from brimline.agents.content import (
    AddedText,
    ContextCleared,
    ErrorText,
    Images,
    KeptContent,
    Location,
    Piece,
    ReplyText,
    SummaryText,
    SystemPrompt,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.agents.file_edits import FileEdit, file_edits
from brimline.agents.tools import UNRECORDED_TOOLS, listed_skill

Json = dict[str, Any]


def event(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


def pieces_of(*records: Json) -> list[Piece]:
    return list(
        read_content(
            [json.dumps(record).encode() for record in records],
            get_agent("copilot").content_reader(),
        )
    )


def test_additions_to_a_prompt_have_their_source() -> None:
    date = "<current_datetime>today</current_datetime>"
    hook = "<system_reminder>\nBe brief.\n</system_reminder>"
    added = f"{date}\n\nGo.\n\n{hook}"
    attachment = {"type": "file", "mimeType": "image/png"}
    prompt = event(
        "user.message", content="Go.", transformedContent=added, attachments=[attachment]
    )
    assert pieces_of(prompt) == [
        UserText("Go."),
        AddedText("client", "current_datetime", f"{date}\n\n"),
        AddedText("hook", "system_reminder", hook),
        Images(1),
    ]


def test_reason_not_to_end_a_turn_is_not_the_users() -> None:
    stop = event("hook.end", hookType="agentStop", output={"decision": "block", "reason": "Test."})
    again = event("user.message", content="Test.")
    start = event("hook.end", hookType="sessionStart", output={"additionalContext": "Hi."})
    continued = event("user.message", content="More.", isAutopilotContinuation=True)
    assert pieces_of(again, stop, again, start, continued) == [
        UserText("Test."),
        AddedText("hook", "agentStop", "Test."),
        AddedText("hook", "sessionStart", "Hi."),
        AddedText("client", "autopilot", "More."),
    ]


def test_instructions_are_memory_files_once() -> None:
    listed = "<skill>\n  <name>knots</name>\n  <description>Ties.</description>\n</skill>\n"
    rules = f"<custom_instruction>\nBe brief.\n{listed}</custom_instruction>"
    content = f"You are.\n{rules}\n<available_skills>\n{listed}</available_skills>"
    prompt = event("system.message", role="system", content=content)
    first, memory, second = pieces_of(prompt, prompt)
    assert memory == AddedText("memory", "custom instructions 1", f"{rules}\n")
    rest = "You are.\n<available_skills>\n</available_skills>"
    own = AddedText("tools", "system prompt", rest, kind="system prompt")
    assert first == second == SystemPrompt((UNRECORDED_TOOLS, own, listed_skill("knots", listed)))


def test_compaction_keeps_prompts_and_what_came_in_since_it_began() -> None:
    reply = event("assistant.message", content="I see.")
    done = event("session.compaction_complete", success=True, summaryContent="So far.")
    pieces = pieces_of(
        event("user.message", content="Go."),
        event("assistant.message", content="I go."),
        event("session.compaction_start"),
        reply,
        event("session.compaction_complete", success=False),
        event("session.compaction_start"),
        reply,
        done,
    )
    kept = KeptContent((UserText("Go."), ReplyText("I see.")))
    assert pieces[-2:] == [kept, SummaryText("So far.")]
    assert sum(isinstance(piece, KeptContent) for piece in pieces) == 1


def test_tools_have_their_files_commands_and_results() -> None:
    edit = {"path": "/p/a", "old_str": "x", "new_str": "y"}
    new = {"path": "/p/b", "file_text": "z"}
    patch = "*** Begin Patch\n*** Update File: /p/c\n-x\n+y\n*** End Patch"
    requests: list[Json] = [
        {"toolCallId": "1", "name": "edit", "arguments": edit},
        {"toolCallId": "2", "name": "create", "arguments": new},
        {"toolCallId": "3", "name": "apply_patch", "arguments": patch},
        {"toolCallId": "4", "name": "find", "arguments": {}, "mcpServerName": "docs"},
    ]
    results = [
        event("tool.execution_complete", toolCallId="1", success=True, result={"content": "ok"}),
        event("tool.execution_complete", toolCallId="2", success=False, error={"message": "no"}),
    ]
    *calls, first, second = pieces_of(event("assistant.message", toolRequests=requests), *results)
    assert [call.files for call in calls if isinstance(call, ToolCall)] == [
        ("/p/a",), ("/p/b",), ("/p/c",), (),
    ]  # fmt: skip
    edits = [file_edits(call) for call in calls if isinstance(call, ToolCall)]
    assert [list(each) for each in edits[:3]] == [
        [FileEdit("/p/a", ("y",), ("x",))],
        [FileEdit("/p/b", ("z",), ())],
        [FileEdit("/p/c", ("y",), ("x",))],
    ]
    assert [call.server for call in calls if isinstance(call, ToolCall)][3] == "docs"
    assert (first, second) == (ToolResult("1", True, "ok"), ToolResult("2", False, "no"))


def test_other_events_have_their_piece() -> None:
    folder = {"cwd": "/p", "branch": "topic"}
    assert pieces_of(
        event("session.start", context=folder),
        event("session.context_changed", cwd="/q"),
        event("skill.invoked", name="lint", content="Run it."),
        event("system.notification", content="Done."),
        event("session.context_cleared", messagesCleared=2),
        event("session.error", message="overloaded"),
        event("assistant.turn_end"),
    ) == [
        Location("/p", "topic"),
        Location("/q", None),
        listed_skill("lint", "Run it."),
        AddedText("client", "notification", "Done."),
        ContextCleared(),
        ErrorText("overloaded"),
    ]
