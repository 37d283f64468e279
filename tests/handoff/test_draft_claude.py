"""What is heard in a transcript of Claude Code."""

from pathlib import Path

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript

from .made import FIXTURES, answers, asked, claude, encoded, runs, said, uses

PROJECT = "home/.claude/projects/-home-dev-project"
MAIN = f"{PROJECT}/00000001-0000-4000-8000-000000000001.jsonl"


def fixture(scene: str) -> Path:
    """The main transcript of a recorded session."""
    return FIXTURES / "claude" / scene / MAIN


def test_recorded_session_is_drafted() -> None:
    """A recorded session with tools tells the words, the commands and where it was."""
    text = draft_handoff(iter_records(str(fixture("tool-loop"))), "claude")
    assert "## First user message\n> Go.\n" in text
    assert "> All done.\n" in text
    assert "- ok: `echo one`\n- ok: `echo two`\n" in text
    assert "- folder: /home/dev/project\n" in text
    assert "Errors" not in text


def test_recorded_compaction_is_not_a_user_message() -> None:
    """The client's own summary is not taken for the user's words."""
    notes = digest_transcript(iter_records(str(fixture("auto-compact"))), "claude")
    assert notes.first_prompt
    assert "session is being continued" not in notes.first_prompt + notes.latest_prompt


def test_failed_api_call_is_an_error_until_one_works() -> None:
    """A call that failed is an error until one works."""
    failed = said("API Error: overloaded", isApiErrorMessage=True)
    notes = digest_transcript([asked("Go."), failed], "claude")
    assert [failure.output for failure in notes.failures.values()] == ["API Error: overloaded"]
    assert notes.last_reply == ""
    assert digest_transcript([asked("Go."), failed, said("It works.")], "claude").failures == {}


def test_subagent_records_are_skipped() -> None:
    """What a subagent says or is told is not the session's."""
    told = [asked("Main."), asked("Sub.", isSidechain=True), said("Sub too.", isSidechain=True)]
    notes = digest_transcript(told, "claude")
    assert (notes.first_prompt, notes.latest_prompt, notes.last_reply) == ("Main.", "", "")


@pytest.mark.parametrize(
    "record",
    [
        asked("x", isMeta=True),
        asked("x", isCompactSummary=True),
        asked("x", origin={"kind": "task-notification"}),
        asked("[Request interrupted by user]"),
        asked("<local-command-stdout>x</local-command-stdout>"),
        asked("<system-reminder>x</system-reminder>"),
        asked("<bash-input>ls</bash-input><bash-stdout>x</bash-stdout>"),
        asked("<command-name>/exit</command-name><command-args></command-args>"),
        asked("This session is being continued from a previous conversation that ran out."),
    ],
)
def test_client_text_is_not_a_user_message(record: bytes) -> None:
    """What the client writes in the user's name is not what the user said."""
    assert digest_transcript([record], "claude").first_prompt == ""


def test_user_message_is_found_in_every_form() -> None:
    """Typed, in blocks, queued, as a command, or in place of a yes: all are the user's words."""
    command = "<command-message>x</command-message>\n<command-name>/review</command-name>\n"
    queued = {"type": "queued_command", "prompt": "And tests."}
    rejected = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell "
        "you how to proceed, the user said:\nnot like that"
    )
    for record, words in (
        (asked("Hi.", origin={"kind": "human"}), "Hi."),
        (claude("user", [{"type": "text", "text": "Hi."}]), "Hi."),
        (asked("<system-reminder>x</system-reminder>Hi."), "Hi."),
        (asked(f"{command}<command-args>all of it</command-args>"), "/review all of it"),
        (encoded({"type": "attachment", "attachment": queued}), "And tests."),
        (answers("1", rejected, failed=True), "not like that"),
    ):
        assert digest_transcript([record], "claude").first_prompt == words


def test_clear_starts_a_new_digest() -> None:
    """A conversation that was cleared is begun anew."""
    clear = asked("<command-name>/clear</command-name>")
    notes = digest_transcript([asked("Old."), *runs("make", ""), clear, asked("New.")], "claude")
    assert (notes.first_prompt, notes.latest_prompt, notes.command_runs) == ("New.", "", {})


def test_tasks_become_todos() -> None:
    """Tasks are followed from their making to their end."""
    told = [
        uses("1", "TaskCreate", subject="Parse", description="d"),
        answers("1", "Task #1 created successfully: Parse"),
        uses("2", "TaskCreate", subject="Test", description="d"),
        answers("2", [{"type": "text", "text": "Task #2 created successfully: Test"}]),
        uses("3", "TaskUpdate", taskId="1", status="completed"),
        uses("4", "TaskUpdate", taskId="2", status="in_progress", subject="Test it"),
        asked("Go."),
    ]
    assert "## Open to-dos\n- [in progress] Test it\n\n" in draft_handoff(told, "claude")


def test_changed_task_keeps_its_place() -> None:
    """A task that changes keeps its place among the others."""
    records = [
        uses("1", "TaskCreate", subject="One", description="d"),
        answers("1", "Task #1 created successfully: One"),
        uses("2", "TaskCreate", subject="Two", description="d"),
        answers("2", "Task #2 created successfully: Two"),
        uses("3", "TaskUpdate", taskId="1", subject="One more"),
    ]
    todos = digest_transcript(records, "claude").todos.values()
    assert [todo.text for todo in todos] == ["One more", "Two"]


def test_later_success_resolves_failure() -> None:
    """An error is forgotten when the same command, or a change of the same file, works."""
    change = {"file_path": "/a", "old_string": "x", "new_string": "y"}
    told = [
        *runs("make test", "boom", failed=True),
        uses("1", "Edit", **change),
        answers("1", "<tool_use_error>String not found</tool_use_error>", failed=True),
    ]
    assert [failure.output for failure in digest_transcript(told, "claude").failures.values()] == [
        "boom",
        "String not found",
    ]
    told += [*runs("make test 2>&1", "fine"), uses("2", "Write", **change), answers("2", "ok")]
    assert digest_transcript(told, "claude").failures == {}


def test_check_of_everything_resolves_partial_failure() -> None:
    """A check of everything takes back what failed in a part of it, and nothing else."""
    told = [
        *runs("go test ./a", "boom", failed=True),
        *runs("go build ./a", "bang", failed=True),
        *runs("go test ./b", "fine"),
    ]
    assert len(digest_transcript(told, "claude").failures) == 2
    told += runs("go test ./...", "fine")
    assert [failure.output for failure in digest_transcript(told, "claude").failures.values()] == [
        "bang"
    ]


def test_exit_code_of_pipe_resolves_nothing() -> None:
    """An exit code that is another program's neither takes an error back nor says ok."""
    told = [*runs("make test", "boom", failed=True), *runs("make test | tail", "boom")]
    notes = digest_transcript(told, "claude")
    assert [failure.output for failure in notes.failures.values()] == ["boom"]
    assert [(run.command, run.ok) for run in notes.command_runs.values()] == [
        ("make test | tail", None)
    ]


def test_harmless_failures_are_left_out() -> None:
    """A search that found nothing, a failed look, a rejection or a cancelled tool is no error."""
    cancelled = "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>"
    told = [
        *runs("rg nothing", "Exit code 1", failed=True),
        *runs("make nothing", "Exit code 1", failed=True),
        *runs("make x", cancelled, failed=True),
        uses("1", "Read", file_path="/nowhere"),
        answers("1", "File does not exist.", failed=True),
    ]
    notes = digest_transcript(told, "claude")
    assert notes.failures == {}
    assert list(notes.command_runs) == ["make nothing"]


def test_failure_of_unknown_tool_is_noted() -> None:
    """A tool that we do not know is noted when it fails, and one that only shows is not."""
    told = [
        uses("1", "mcp__db__query", sql="x"),
        answers("1", "no such table", failed=True),
        uses("2", "Bash"),
        answers("2", "nothing to run", failed=True),
    ]
    troubles = digest_transcript(told, "claude").failures.values()
    assert [(one.label, one.output) for one in troubles] == [("mcp__db__query", "no such table")]


def test_failed_edit_is_no_changed_file() -> None:
    """A file that was not changed after all is not among the changed ones."""
    told = [uses("1", "Write", file_path="/a"), answers("1", "no", failed=True)]
    assert digest_transcript(told, "claude").changed_files == {}


def test_unfinished_command_is_not_ok() -> None:
    """A command without a result, and one in the background, do not count as ok."""
    told = [
        asked("Go."),
        uses("1", "Bash", command="make all"),
        *runs("make serve", "Command running in background with ID: b1"),
    ]
    text = draft_handoff(told, "claude")
    assert "- no result: `make all`\n" in text
    assert "- unclear: `make serve`\n" in text


def test_malformed_line_does_not_affect_others() -> None:
    """Two records on one line are both read, and a malformed one affects no other."""
    told = [asked("One.") + asked("Two."), asked("x")[:-9], b"\0\0", said("Three.")]
    notes = digest_transcript(told, "claude")
    assert (notes.first_prompt, notes.latest_prompt, notes.last_reply) == ("One.", "Two.", "Three.")


def test_digest_is_bounded() -> None:
    """A long session keeps its first words and its last deeds, in bounded memory."""
    told = [asked("First.")]
    for number in range(300):
        told += runs(f"git tag v{number}", "x" * 20_000)
        told += [uses("w", "Write", file_path=f"/f{number}"), answers("w", "")]
        told += [uses(f"t{number}", "Bash", command="never ends")]
    notes = digest_transcript(told, "claude")
    assert notes.first_prompt == "First."
    assert len(notes.command_runs) == len(notes.changed_files) == 200
    assert list(notes.changed_files)[-1] == "/f299"
    assert all(len(run.output) <= 8_192 for run in notes.command_runs.values())
