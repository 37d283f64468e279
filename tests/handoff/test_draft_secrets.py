"""No draft of any agent shows a credential, wherever it is in the transcript."""

from collections.abc import Callable
from random import Random

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import MAX_OUTPUT_BYTES, strip_noise
from redaction.canaries import Canary, canaries, leaked

from .records import (
    FIXTURES,
    codex_call,
    codex_message,
    codex_output,
    codex_record,
    command_run,
    encoded,
    reply_record,
    tool_result,
    tool_use,
    user_record,
)

Scene = Callable[[str], list[bytes]]


def claude_scene(text: str) -> list[bytes]:
    """A session of Claude Code with a text in each place that drafts show."""
    return [
        user_record(f"First: {text}"),
        user_record(f"Then: {text}"),
        tool_use("1", "TodoWrite", todos=[{"content": f"Do: {text}"}]),
        tool_use("2", "ExitPlanMode", plan=f"Plan: {text}"),
        tool_use("3", "Write", file_path=f"/tmp/{text}"),
        tool_result("3", "ok"),
        *command_run(f"make test {text}", f"boom\n{text}", failed=True),
        *command_run(f"deploy\n{text}", "ok"),
        reply_record(f"Last: {text}"),
    ]


def codex_scene(text: str) -> list[bytes]:
    """The same of Codex; a file's name in a patch is one line."""
    name = "x" if "\n" in text else text
    return [
        codex_message("user", f"First: {text}"),
        codex_message("user", f"Then: {text}"),
        codex_call("1", "update_plan", plan=[{"step": f"Do: {text}", "status": "pending"}]),
        codex_call("2", "exec_command", cmd=f"make test\n{text}"),
        codex_output("2", f"Process exited with code 1\nboom\n{text}"),
        codex_record({"type": "custom_tool_call", "name": "apply_patch", "call_id": "3",
               "input": f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch"}),
        codex_output("3", "Exit code: 0\nSuccess", "custom_tool_call_output"),
        codex_message("assistant", f"Last: {text}"),
    ]  # fmt: skip


def pi_scene(text: str) -> list[bytes]:
    """The same of Pi."""
    edit = {"type": "toolCall", "id": "1", "name": "edit", "arguments": {"path": f"/tmp/{text}"}}
    shell = {"type": "toolCall", "id": "2", "name": "bash", "arguments": {"command": f"x\n{text}"}}
    messages: list[dict[str, object]] = [
        {"role": "user", "content": f"First: {text}"},
        {"role": "user", "content": f"Then: {text}"},
        {"role": "assistant", "content": [edit, shell]},
        {"role": "toolResult", "toolCallId": "1", "content": "ok"},
        {"role": "toolResult", "toolCallId": "2", "isError": True, "content": f"boom\n{text}"},
        {"role": "assistant", "content": [{"type": "text", "text": f"Last: {text}"}]},
        {"role": "assistant", "content": "", "errorMessage": f"overloaded\n{text}"},
    ]
    return [encoded({"type": "message", "message": message}) for message in messages]


def gemini_scene(text: str) -> list[bytes]:
    """The same of Gemini CLI."""
    failed = {"functionResponse": {"response": {"output": f"Output: b\n{text}\nExit Code: 1"}}}
    tools = [
        {"id": "1", "name": "write_file", "args": {"file_path": text}, "status": "success"},
        {"id": "2", "name": "write_todos", "args": {"todos": [{"description": f"Do: {text}"}]}},
        {"id": "3", "name": "run_shell_command", "args": {"command": f"make test\n{text}"},
         "status": "success", "result": [failed]},
    ]  # fmt: skip
    return [
        encoded({"type": "user", "content": f"First: {text}"}),
        encoded({"type": "user", "content": f"Then: {text}"}),
        encoded({"type": "gemini", "content": f"Last: {text}", "toolCalls": tools}),
        encoded({"type": "error", "content": f"Quota exceeded.\n{text}"}),
    ]


def opencode_scene(text: str) -> list[bytes]:
    """The same of opencode."""
    completed = {"status": "completed", "input": {"filePath": text}, "time": {"end": 5_000}}
    failed = {"status": "completed", "input": {"command": f"make test\n{text}"},
              "metadata": {"exit": 2}, "output": f"boom\n{text}"}  # fmt: skip
    listed = {"status": "completed", "input": {"todos": [{"content": f"Do: {text}"}]}}
    parts = [
        {"type": "tool", "tool": "write", "callID": "1", "state": completed},
        {"type": "tool", "tool": "bash", "callID": "2", "state": failed},
        {"type": "tool", "tool": "todowrite", "callID": "3", "state": listed},
        {"type": "text", "text": f"Last: {text}"},
    ]
    said_first = [{"type": "text", "text": f"First: {text}"}]
    error = {"name": "APIError", "data": {"message": f"overloaded\n{text}"}}
    return [
        encoded({"info": {"role": "user"}, "parts": said_first}),
        encoded({"info": {"role": "assistant"}, "parts": parts}),
        encoded({"info": {"role": "assistant", "error": error}, "parts": []}),
    ]


def copilot_scene(text: str) -> list[bytes]:
    """The same of Copilot CLI."""
    edit = {"toolCallId": "1", "name": "create", "arguments": {"path": f"/tmp/{text}"}}
    shell = {"toolCallId": "2", "name": "bash", "arguments": {"command": f"make test\n{text}"}}
    failed: dict[str, object] = {"toolCallId": "2", "success": False, "error": {"message": text}}
    events: list[tuple[str, dict[str, object]]] = [
        ("user.message", {"content": f"First: {text}"}),
        ("user.message", {"content": f"Then: {text}"}),
        ("assistant.message", {"toolRequests": [edit, shell]}),
        ("tool.execution_complete", {"toolCallId": "1", "success": True}),
        ("tool.execution_complete", failed),
        ("assistant.message", {"content": f"Last: {text}"}),
        ("session.error", {"message": f"overloaded\n{text}"}),
    ]
    return [encoded({"type": kind, "data": data}) for kind, data in events]


SCENES: dict[str, Scene] = {
    "claude": claude_scene,
    "codex": codex_scene,
    "copilot": copilot_scene,
    "pi": pi_scene,
    "gemini": gemini_scene,
    "opencode": opencode_scene,
}


@pytest.mark.parametrize("agent", SCENES)
def test_scene_shows_ordinary_text_in_every_place(agent: str) -> None:
    """Shows that the test below covers every place."""
    text = draft_handoff(SCENES[agent]("ordinary-words"), agent)
    assert text.count("ordinary-words") >= 5
    assert text.count("***") == 1  # the title's


@pytest.mark.parametrize("agent", SCENES)
def test_no_draft_shows_a_credential(agent: str) -> None:
    samples: list[Canary] = list(canaries(Random(7)))
    drafts = {canary.kind: draft_handoff(SCENES[agent](canary.text), agent) for canary in samples}
    assert all(drafts.values())
    assert not [canary.kind for canary in samples if leaked(canary.secret, drafts[canary.kind])]


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "pi"])
def test_drafts_of_recorded_sessions_hide_nothing(agent: str) -> None:
    """Recorded sessions contain no credentials."""
    paths = sorted((FIXTURES / agent).rglob("home/**/*.jsonl"))
    drafts = [
        draft_handoff(iter_records(str(path)), agent, where="x", session="y") for path in paths
    ]
    assert any(drafts)
    assert all(text.count("***") <= 1 for text in drafts)


def test_credential_at_the_cut_of_an_output_is_not_shown() -> None:
    secret = "gh" + "p_" + "".join(Random(1).choices("abcdefgh12345678", k=36))
    for kept_chars in range(1, 60):
        output = f"before {secret} " + "x" * (MAX_OUTPUT_BYTES - kept_chars)
        assert not leaked(secret, strip_noise(output)) or secret in strip_noise(output)
