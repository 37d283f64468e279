"""Digests of transcripts of Claude Code."""

from pathlib import Path

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript

from .records import (
    FIXTURES,
    claude,
    command_run,
    encoded,
    reply_record,
    tool_result,
    tool_use,
    user_record,
)

PROJECT = "home/.claude/projects/-home-dev-project"
MAIN = f"{PROJECT}/00000001-0000-4000-8000-000000000001.jsonl"


def fixture(scene: str) -> Path:
    return FIXTURES / "claude" / scene / MAIN


def test_recorded_session_is_drafted() -> None:
    text = draft_handoff(iter_records(str(fixture("tool-loop"))), "claude")
    assert "## Current request\n> Go.\n" in text
    assert "> All done.\n" in text
    assert "- ran `echo one`, `echo two`" in text
    assert "- folder: /home/dev/project\n" in text
    assert "Errors" not in text


def test_recorded_compaction_is_not_a_user_message() -> None:
    notes = digest_transcript(iter_records(str(fixture("auto-compact"))), "claude")
    assert notes.latest_message
    assert "session is being continued" not in notes.latest_message + "".join(notes.messages)


def test_failed_api_call_is_an_error_until_one_works() -> None:
    failed = reply_record("API Error: overloaded", isApiErrorMessage=True)
    notes = digest_transcript([user_record("Go."), failed], "claude")
    assert [failure.output for failure in notes.failures.values()] == ["API Error: overloaded"]
    assert notes.last_reply == ""
    assert (
        digest_transcript(
            [user_record("Go."), failed, reply_record("It works.")], "claude"
        ).failures
        == {}
    )


def test_subagent_records_are_skipped() -> None:
    lines = [
        user_record("Main."),
        user_record("Sub.", isSidechain=True),
        reply_record("Sub too.", isSidechain=True),
    ]
    notes = digest_transcript(lines, "claude")
    assert (notes.latest_message, notes.last_reply) == ("Main.", "")


@pytest.mark.parametrize(
    "record",
    [
        user_record("x", isMeta=True),
        user_record("x", isCompactSummary=True),
        user_record("x", origin={"kind": "task-notification"}),
        user_record("[Request interrupted by user]"),
        user_record("<local-command-stdout>x</local-command-stdout>"),
        user_record("<system-reminder>x</system-reminder>"),
        user_record("<bash-input>ls</bash-input><bash-stdout>x</bash-stdout>"),
        user_record("<command-name>/exit</command-name><command-args></command-args>"),
        user_record("This session is being continued from a previous conversation that ran out."),
    ],
)
def test_client_text_is_not_a_user_message(record: bytes) -> None:
    assert digest_transcript([record], "claude").latest_message == ""


def test_user_message_is_found_in_every_form() -> None:
    command = "<command-message>x</command-message>\n<command-name>/review</command-name>\n"
    queued = {"type": "queued_command", "prompt": "And tests."}
    rejected = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell "
        "you how to proceed, the user said:\nnot like that"
    )
    for record, words in (
        (user_record("Hi.", origin={"kind": "human"}), "Hi."),
        (claude("user", [{"type": "text", "text": "Hi."}]), "Hi."),
        (user_record("<system-reminder>x</system-reminder>Hi."), "Hi."),
        (user_record(f"{command}<command-args>all of it</command-args>"), "/review all of it"),
        (encoded({"type": "attachment", "attachment": queued}), "And tests."),
        (tool_result("1", rejected, failed=True), "not like that"),
    ):
        assert digest_transcript([record], "claude").latest_message == words


def test_clear_starts_a_new_digest() -> None:
    clear = user_record("<command-name>/clear</command-name>")
    notes = digest_transcript(
        [user_record("Old."), *command_run("make", ""), clear, user_record("New.")], "claude"
    )
    assert (notes.latest_message, notes.command_runs) == ("New.", {})
    assert not notes.messages


def test_tasks_become_todos() -> None:
    lines = [
        tool_use("1", "TaskCreate", subject="Parse", description="d"),
        tool_result("1", "Task #1 created successfully: Parse"),
        tool_use("2", "TaskCreate", subject="Test", description="d"),
        tool_result("2", [{"type": "text", "text": "Task #2 created successfully: Test"}]),
        tool_use("3", "TaskUpdate", taskId="1", status="completed"),
        tool_use("4", "TaskUpdate", taskId="2", status="in_progress", subject="Test it"),
        user_record("Go."),
    ]
    assert "## Open to-dos\n- [in progress] Test it\n\n" in draft_handoff(lines, "claude")


def test_changed_task_keeps_its_place() -> None:
    records = [
        tool_use("1", "TaskCreate", subject="One", description="d"),
        tool_result("1", "Task #1 created successfully: One"),
        tool_use("2", "TaskCreate", subject="Two", description="d"),
        tool_result("2", "Task #2 created successfully: Two"),
        tool_use("3", "TaskUpdate", taskId="1", subject="One more"),
    ]
    todos = digest_transcript(records, "claude").todos.values()
    assert [todo.text for todo in todos] == ["One more", "Two"]


def test_later_success_resolves_failure() -> None:
    """The same command, or an edit of the same file."""
    change = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    lines = [
        *command_run("make test", "boom", failed=True),
        tool_use("1", "Edit", **change),
        tool_result("1", "<tool_use_error>String not found</tool_use_error>", failed=True),
    ]
    assert [failure.output for failure in digest_transcript(lines, "claude").failures.values()] == [
        "boom",
        "String not found",
    ]
    lines += [
        *command_run("make test 2>&1", "fine"),
        tool_use("2", "Write", **change),
        tool_result("2", "ok"),
    ]
    assert digest_transcript(lines, "claude").failures == {}


def test_check_of_everything_resolves_partial_failure() -> None:
    lines = [
        *command_run("go test ./a", "boom", failed=True),
        *command_run("go build ./a", "bang", failed=True),
        *command_run("go test ./b", "fine"),
    ]
    assert len(digest_transcript(lines, "claude").failures) == 2
    lines += command_run("go test ./...", "fine")
    assert [failure.output for failure in digest_transcript(lines, "claude").failures.values()] == [
        "bang"
    ]


def test_exit_code_of_pipe_resolves_nothing() -> None:
    """The exit code of a pipe is another program's."""
    lines = [
        *command_run("make test", "boom", failed=True),
        *command_run("make test | tail", "boom"),
    ]
    notes = digest_transcript(lines, "claude")
    assert [failure.output for failure in notes.failures.values()] == ["boom"]
    assert [(run.command, run.ok) for run in notes.command_runs.values()] == [
        ("make test | tail", None)
    ]


def test_harmless_failures_are_left_out() -> None:
    """A search without a match, a failed read, a rejection or a cancelled tool."""
    cancelled = "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>"
    lines = [
        *command_run("rg nothing", "Exit code 1", failed=True),
        *command_run("make nothing", "Exit code 1", failed=True),
        *command_run("make x", cancelled, failed=True),
        tool_use("1", "Read", file_path="/nowhere"),
        tool_result("1", "File does not exist.", failed=True),
    ]
    notes = digest_transcript(lines, "claude")
    assert notes.failures == {}
    assert list(notes.command_runs) == ["make nothing"]


def test_failure_of_unknown_tool_is_noted() -> None:
    lines = [
        tool_use("1", "mcp__db__query", sql="x"),
        tool_result("1", "no such table", failed=True),
        tool_use("2", "Bash"),
        tool_result("2", "nothing to run", failed=True),
    ]
    troubles = digest_transcript(lines, "claude").failures.values()
    assert [(trouble.label, trouble.output) for trouble in troubles] == [
        ("mcp__db__query", "no such table")
    ]


def test_failed_edit_is_no_changed_file() -> None:
    lines = [tool_use("1", "Write", file_path="/a"), tool_result("1", "no", failed=True)]
    assert digest_transcript(lines, "claude").changed_files == {}


def test_unfinished_command_is_not_ok() -> None:
    lines = [
        user_record("Go."),
        tool_use("1", "Bash", command="make all"),
        *command_run("make serve", "Command running in background with ID: b1"),
    ]
    text = draft_handoff(lines, "claude")
    assert "- ran `make all` (no result), `make serve`\n" in text
    text = draft_handoff([*lines, user_record("Now the docs.")], "claude")
    assert "- no result: `make all`\n" in text
    assert "- unclear: `make serve`\n" in text


def test_malformed_line_does_not_affect_others() -> None:
    lines = [
        user_record("One.") + user_record("Two."),
        user_record("x")[:-9],
        b"\0\0",
        reply_record("Three."),
    ]
    notes = digest_transcript(lines, "claude")
    assert (notes.latest_message, notes.last_reply) == ("Two.", "Three.")


def test_digest_of_a_long_session_is_bounded() -> None:
    lines = [user_record("First of all.")]
    for number in range(300):
        lines += command_run(f"git tag v{number}", "x" * 20_000)
        lines += [tool_use("w", "Write", file_path=f"/f{number}"), tool_result("w", "")]
        lines += [tool_use(f"t{number}", "Bash", command="never ends")]
        lines += [
            user_record(f"Message {number} and {number * 2}.") for number in (number, -number)
        ]
    notes = digest_transcript(lines, "claude")
    assert next(iter(notes.messages)) == "First of all."
    assert len(notes.messages) == 200
    assert len(notes.command_runs) == len(notes.changed_files) == 200
    assert list(notes.changed_files)[-1] == "/f299"
    assert all(len(run.output) <= 8_192 for run in notes.command_runs.values())
