"""No draft of any agent shows a credential, wherever in the transcript it stands."""

from collections.abc import Callable
from random import Random

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import MAX_OUTPUT_BYTES, strip_noise

from .canaries import Canary, canaries, leaked
from .made import (
    FIXTURES,
    answers,
    asked,
    codex,
    codex_answers,
    codex_calls,
    codex_said,
    encoded,
    runs,
    said,
    uses,
)

Scene = Callable[[str], list[bytes]]


def claude_scene(text: str) -> list[bytes]:
    """A session of Claude Code with a text in each place that drafts show."""
    return [
        asked(f"First: {text}"),
        asked(f"Then: {text}"),
        uses("1", "TodoWrite", todos=[{"content": f"Do: {text}"}]),
        uses("2", "ExitPlanMode", plan=f"Plan: {text}"),
        uses("3", "Write", file_path=f"/tmp/{text}"),
        answers("3", "ok"),
        *runs(f"make test {text}", f"boom\n{text}", failed=True),
        *runs(f"deploy\n{text}", "ok"),
        said(f"Last: {text}"),
    ]


def codex_scene(text: str) -> list[bytes]:
    """The same of Codex; a file's name in a patch is one line."""
    name = "x" if "\n" in text else text
    return [
        codex_said("user", f"First: {text}"),
        codex_said("user", f"Then: {text}"),
        codex_calls("1", "update_plan", plan=[{"step": f"Do: {text}", "status": "pending"}]),
        codex_calls("2", "exec_command", cmd=f"make test\n{text}"),
        codex_answers("2", f"Process exited with code 1\nboom\n{text}"),
        codex({"type": "custom_tool_call", "name": "apply_patch", "call_id": "3",
               "input": f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch"}),
        codex_answers("3", "Exit code: 0\nSuccess", "custom_tool_call_output"),
        codex_said("assistant", f"Last: {text}"),
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
    done = {"status": "completed", "input": {"filePath": text}, "time": {"end": 5_000}}
    failed = {"status": "completed", "input": {"command": f"make test\n{text}"},
              "metadata": {"exit": 2}, "output": f"boom\n{text}"}  # fmt: skip
    listed = {"status": "completed", "input": {"todos": [{"content": f"Do: {text}"}]}}
    parts = [
        {"type": "tool", "tool": "write", "callID": "1", "state": done},
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


SCENES: dict[str, Scene] = {
    "claude": claude_scene,
    "codex": codex_scene,
    "pi": pi_scene,
    "gemini": gemini_scene,
    "opencode": opencode_scene,
}


@pytest.mark.parametrize("agent", SCENES)
def test_scene_shows_its_text(agent: str) -> None:
    """What is no credential is shown in every place, so that the test below looks at them all."""
    text = draft_handoff(SCENES[agent]("ordinary-words"), agent)
    assert text.count("ordinary-words") >= 5
    assert text.count("***") == 1  # the title's


@pytest.mark.parametrize("agent", SCENES)
def test_no_draft_shows_a_credential(agent: str) -> None:
    """No part of a made-up credential of any kind is readable in a draft."""
    found: list[Canary] = list(canaries(Random(7)))
    shown = {canary.kind: draft_handoff(SCENES[agent](canary.text), agent) for canary in found}
    assert all(shown.values())
    assert not [canary.kind for canary in found if leaked(canary.secret, shown[canary.kind])]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "pi"])
def test_drafts_of_recorded_sessions_hide_nothing(agent: str) -> None:
    """Recorded sessions have no credentials, and nothing in their drafts is masked."""
    paths = sorted((FIXTURES / agent).rglob("home/**/*.jsonl"))
    drafts = [
        draft_handoff(iter_records(str(path)), agent, where="x", session="y") for path in paths
    ]
    assert any(drafts)
    assert all(text.count("***") <= 1 for text in drafts)


def test_credential_at_the_cut_of_an_output() -> None:
    """Of a credential that the kept end of an output begins in nothing is shown."""
    secret = "gh" + "p_" + "".join(Random(1).choices("abcdefgh12345678", k=36))
    for kept in range(1, 60):
        output = f"before {secret} " + "x" * (MAX_OUTPUT_BYTES - kept)
        assert not leaked(secret, strip_noise(output)) or secret in strip_noise(output)
