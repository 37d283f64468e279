"""Digests of rollouts of Codex."""

import json

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript

from .records import FIXTURES, codex_call, codex_message, codex_output, codex_record, encoded

ROLLOUT = next((FIXTURES / "codex/tool-loop/home").rglob("*.jsonl"))

PATCH = """*** Begin Patch
*** Update File: /p/a.py
@@
-x
*** Add File: b.py
+*** Update File: not a header
*** Update File: old.py
*** Move to: new.py
*** End Patch"""


def test_recorded_rollout_is_drafted() -> None:
    text = draft_handoff(iter_records(str(ROLLOUT)), "codex")
    assert "## Current request\n> Go.\n" in text
    assert "> All done.\n" in text
    assert "- ran `echo one`, `echo two`" in text
    assert "- folder: /home/dev/project\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/x</cwd>",
        "<turn_aborted>\nThe user interrupted",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>",
    ],
)
def test_client_text_is_not_a_user_message(text: str) -> None:
    assert (
        digest_transcript(
            [codex_message("user", text), codex_message("developer", "x")], "codex"
        ).latest_message
        == ""
    )


def test_request_is_found_behind_editor_context() -> None:
    framed = "# Context from my IDE setup:\n\nx\n\n## My request for Codex:\nFix that bug.\n"
    notes = digest_transcript(
        [codex_message("user", framed), codex_message("user", "<div> is wrong")], "codex"
    )
    assert list(notes.messages) == ["Fix that bug.", "<div> is wrong"]


def test_bare_items_of_2025_are_read() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    assert digest_transcript([encoded(item)], "codex").latest_message == "Go."


def test_plan_becomes_todos() -> None:
    steps = [{"step": "One", "status": "completed"}, {"step": "Two", "status": "in_progress"}]
    item = {"type": "Plan", "id": "1", "text": "# The plan"}
    lines = [
        codex_message("user", "Go."),
        codex_call("1", "update_plan", plan=steps, explanation="As agreed."),
    ]
    assert "- [in progress] Two\n" in draft_handoff(lines, "codex")
    assert digest_transcript(lines, "codex").plan == "As agreed."
    lines += [codex_record({"type": "item_completed", "item": item}, "event_msg")]
    assert digest_transcript(lines, "codex").plan == "# The plan"


@pytest.mark.parametrize(
    ("output", "ok"),
    [
        ("Chunk ID: 1\nWall time: 0 s\nProcess exited with code 0\nOutput:\nfine", True),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nboom", False),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nboom", False),
        (json.dumps({"output": "fine", "metadata": {"exit_code": 0}}), True),
        (json.dumps({"output": "boom", "metadata": {"exit_code": 1}}), False),
        ('{"output": cut', None),
        ([{"type": "input_text", "text": "Script completed\nOutput:\n"}], None),
        ("exec_command failed for `x`: denied", False),
        ("something else", None),
    ],
)
def test_exit_code_is_found_in_every_format(output: object, ok: bool | None) -> None:
    lines = [codex_call("1", "exec_command", cmd="make test"), codex_output("1", output)]
    (run,) = digest_transcript(lines, "codex").command_runs.values()
    assert (run.command, run.ok) == ("make test", ok)


@pytest.mark.parametrize(
    "call",
    [
        codex_call("1", "shell", command=["bash", "-lc", "make test"]),
        codex_call("1", "shell", command=["make", "test"]),
        codex_call("1", "shell_command", command="make test"),
        codex_record(
            {"type": "local_shell_call", "call_id": "1", "action": {"command": ["make", "test"]}}
        ),
        codex_record(
            {
                "type": "custom_tool_call",
                "name": "exec",
                "call_id": "1",
                "input": 'const r = await tools.exec_command({cmd:"make test","workdir":"/x"});',
            }
        ),
    ],
)
def test_command_is_found_in_every_tool(call: bytes) -> None:
    assert [run.command for run in digest_transcript([call], "codex").command_runs.values()] == [
        "make test"
    ]


def test_result_of_long_command_comes_from_wait() -> None:
    lines = [
        codex_call("1", "exec_command", cmd="make test"),
        codex_output("1", "Chunk ID: 1\nProcess running with session ID 77\nOutput:\n"),
        codex_call("2", "write_stdin", session_id=77, chars=""),
        codex_output("2", "Chunk ID: 2\nProcess exited with code 1\nOutput:\nboom"),
        codex_call("3", "wait", cell_id="99"),
        codex_output("3", "Exit code: 0\nOutput:\nnever begun"),
        codex_output("4", "Script running with cell ID 5\nOutput:\nnever begun either"),
    ]
    notes = digest_transcript(lines, "codex")
    assert [(run.command, run.ok) for run in notes.command_runs.values()] == [("make test", False)]
    assert [failure.output for failure in notes.failures.values()] == ["boom"]


def test_aborted_command_has_no_result_and_is_no_error() -> None:
    lines = [
        codex_call("1", "exec_command", cmd="make test"),
        codex_output("1", "aborted by user after 2.0s"),
    ]
    notes = digest_transcript(lines, "codex")
    assert (notes.command_runs, notes.failures) == ({}, {})


@pytest.mark.parametrize(
    "call",
    [
        codex_record(
            {"type": "custom_tool_call", "name": "apply_patch", "call_id": "1", "input": PATCH}
        ),
        codex_call("1", "apply_patch", input=PATCH),
        codex_call("1", "shell", command=["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]),
        codex_record(
            {
                "type": "custom_tool_call",
                "name": "exec",
                "call_id": "1",
                "input": f"await tools.apply_patch({json.dumps(PATCH)});",
            }
        ),
    ],
)
def test_files_of_an_applied_patch_are_found(call: bytes) -> None:
    files = ["/p/a.py", "b.py", "old.py", "new.py"]
    applied = codex_output("1", "Exit code: 0\nOutput:\nSuccess.", "custom_tool_call_output")
    failed = codex_output("1", "apply_patch verification failed: Failed to find", "x")
    assert list(digest_transcript([call, applied], "codex").changed_files) == files
    assert list(digest_transcript([call, failed], "codex").changed_files) == []


def test_failed_api_call_is_an_error_until_one_works() -> None:
    lines = [codex_record({"type": "error", "message": "Stream lost."}, "event_msg")]
    assert [failure.output for failure in digest_transcript(lines, "codex").failures.values()] == [
        "Stream lost."
    ]
    assert digest_transcript([*lines, codex_message("assistant", "Well.")], "codex").failures == {}
