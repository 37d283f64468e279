"""Digests of rollouts of Codex."""

import json

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript

from .made import FIXTURES, codex, codex_answers, codex_calls, codex_said, encoded

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
    """A recorded rollout tells the words, the commands and where it was."""
    text = draft_handoff(iter_records(str(ROLLOUT)), "codex")
    assert "## First user message\n> Go.\n" in text
    assert "> All done.\n" in text
    assert "- ok: `echo two`\n- ok: `echo one`\n" in text
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
    """What Codex writes in the user's name is not what the user said."""
    assert (
        digest_transcript(
            [codex_said("user", text), codex_said("developer", "x")], "codex"
        ).first_prompt
        == ""
    )


def test_request_is_found_behind_editor_context() -> None:
    """The user's own request is found behind what an editor added."""
    framed = "# Context from my IDE setup:\n\nx\n\n## My request for Codex:\nFix it.\n"
    notes = digest_transcript(
        [codex_said("user", framed), codex_said("user", "<div> is wrong")], "codex"
    )
    assert (notes.first_prompt, notes.latest_prompt) == ("Fix it.", "<div> is wrong")


def test_bare_items_of_2025_are_read() -> None:
    """In 2025 an item stood bare on its line."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    assert digest_transcript([encoded(item)], "codex").first_prompt == "Go."


def test_plan_becomes_todos() -> None:
    """The plan's steps are the to-dos; a plan that was written out is the last plan."""
    steps = [{"step": "One", "status": "completed"}, {"step": "Two", "status": "in_progress"}]
    item = {"type": "Plan", "id": "1", "text": "# The plan"}
    told = [
        codex_said("user", "Go."),
        codex_calls("1", "update_plan", plan=steps, explanation="As agreed."),
    ]
    assert "- [in progress] Two\n" in draft_handoff(told, "codex")
    assert digest_transcript(told, "codex").plan == "As agreed."
    told += [codex({"type": "item_completed", "item": item}, "event_msg")]
    assert digest_transcript(told, "codex").plan == "# The plan"


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
    """The exit code is found in every wrapping that outputs have had."""
    told = [codex_calls("1", "exec_command", cmd="make test"), codex_answers("1", output)]
    (run,) = digest_transcript(told, "codex").command_runs.values()
    assert (run.command, run.ok) == ("make test", ok)


@pytest.mark.parametrize(
    "call",
    [
        codex_calls("1", "shell", command=["bash", "-lc", "make test"]),
        codex_calls("1", "shell", command=["make", "test"]),
        codex_calls("1", "shell_command", command="make test"),
        codex(
            {"type": "local_shell_call", "call_id": "1", "action": {"command": ["make", "test"]}}
        ),
        codex(
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
    """A command is found in every tool that has run commands."""
    assert [run.command for run in digest_transcript([call], "codex").command_runs.values()] == [
        "make test"
    ]


def test_result_of_long_command_comes_from_wait() -> None:
    """How a command came out is told by what waited for it."""
    told = [
        codex_calls("1", "exec_command", cmd="make test"),
        codex_answers("1", "Chunk ID: 1\nProcess running with session ID 77\nOutput:\n"),
        codex_calls("2", "write_stdin", session_id=77, chars=""),
        codex_answers("2", "Chunk ID: 2\nProcess exited with code 1\nOutput:\nboom"),
        codex_calls("3", "wait", cell_id="99"),
        codex_answers("3", "Exit code: 0\nOutput:\nnever begun"),
        codex_answers("4", "Script running with cell ID 5\nOutput:\nnever begun either"),
    ]
    notes = digest_transcript(told, "codex")
    assert [(run.command, run.ok) for run in notes.command_runs.values()] == [("make test", False)]
    assert [failure.output for failure in notes.failures.values()] == ["boom"]


def test_aborted_command_is_left_out() -> None:
    """A command that the user stopped has no result and is no error."""
    told = [
        codex_calls("1", "exec_command", cmd="make test"),
        codex_answers("1", "aborted by user after 2.0s"),
    ]
    notes = digest_transcript(told, "codex")
    assert (notes.command_runs, notes.failures) == ({}, {})


@pytest.mark.parametrize(
    "call",
    [
        codex({"type": "custom_tool_call", "name": "apply_patch", "call_id": "1", "input": PATCH}),
        codex_calls("1", "apply_patch", input=PATCH),
        codex_calls("1", "shell", command=["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]),
        codex(
            {
                "type": "custom_tool_call",
                "name": "exec",
                "call_id": "1",
                "input": f"await tools.apply_patch({json.dumps(PATCH)});",
            }
        ),
    ],
)
def test_patched_files_are_found(call: bytes) -> None:
    """The files of a patch are found wherever it stands, if it was applied."""
    files = ["/p/a.py", "b.py", "old.py", "new.py"]
    done = codex_answers("1", "Exit code: 0\nOutput:\nSuccess.", "custom_tool_call_output")
    failed = codex_answers("1", "apply_patch verification failed: Failed to find", "x")
    assert list(digest_transcript([call, done], "codex").changed_files) == files
    assert list(digest_transcript([call, failed], "codex").changed_files) == []


def test_failed_api_call_is_an_error_until_one_works() -> None:
    """A call that failed is an error until one works."""
    told = [codex({"type": "error", "message": "Stream lost."}, "event_msg")]
    assert [failure.output for failure in digest_transcript(told, "codex").failures.values()] == [
        "Stream lost."
    ]
    assert digest_transcript([*told, codex_said("assistant", "Well.")], "codex").failures == {}
