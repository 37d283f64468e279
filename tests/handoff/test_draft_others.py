"""Digests of transcripts of Pi, Gemini CLI and opencode."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.digest import digest_transcript

from .records import FIXTURES, encoded

SESSION = "ses_00000000000100000000000000"


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "opencode.db"
    script = next((FIXTURES / "opencode/tool-loop/home").rglob("*.sql"))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script.read_text("utf-8"))
    return str(path)


def transcript(agent: str) -> str:
    return str(min((FIXTURES / agent / "tool-loop/home").rglob("*.jsonl")))


@pytest.mark.parametrize("agent", ["pi", "gemini"])
def test_recorded_session_is_drafted(agent: str) -> None:
    text = draft_handoff(iter_records(transcript(agent)), agent)
    assert "## Current request\n> Go.\n" in text
    assert "> All done.\n" in text
    assert "- ran `echo one`, `echo two`" in text


def test_recorded_database_is_drafted_by_session(database: str) -> None:
    text = draft_handoff(iter_records(database, SESSION), "opencode")
    assert "## Current request\n> Go.\n" in text
    assert "- ran `echo one`, `echo two`" in text
    assert "> All done.\n" in text
    assert "- folder: /home/dev/project\n" in text
    assert list(iter_records(database, "ses_x")) == []
    assert list(iter_records(database)) == []


def test_recorded_export_is_digested() -> None:
    """The output of `opencode export`."""
    notes = digest_transcript(
        iter_records(str(FIXTURES / "opencode/auto-compact/export.json")), "opencode"
    )
    assert notes.latest_message == "Go."
    assert notes.last_reply


def test_pi_tools_are_digested() -> None:
    call = {"type": "toolCall", "id": "1", "name": "edit", "arguments": {"path": "/a"}}
    shell = {"type": "toolCall", "id": "2", "name": "bash", "arguments": {"command": "make"}}
    messages = [
        {"role": "assistant", "content": [call, shell]},
        {"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": "ok"}]},
        {"role": "toolResult", "toolCallId": "2", "isError": True, "content": "boom"},
        {"role": "assistant", "content": "", "errorMessage": "overloaded"},
    ]
    notes = digest_transcript(
        [encoded({"type": "message", "message": message}) for message in messages], "pi"
    )
    assert list(notes.changed_files) == ["/a"]
    assert [failure.output for failure in notes.failures.values()] == ["boom", "overloaded"]


def test_gemini_tools_are_digested() -> None:
    failed = {"output": "Output: boom\nExit Code: 1"}
    tools = [
        {"id": "1", "name": "write_file", "args": {"file_path": "/a"}, "status": "success"},
        {"id": "2", "name": "replace", "args": {"file_path": "/b"}, "status": "error"},
        {"id": "3", "name": "write_todos", "args": {"todos": [{"description": "Later"}]}},
        {
            "id": "4",
            "name": "run_shell_command",
            "args": {"command": "make"},
            "status": "success",
            "result": [{"functionResponse": {"response": failed}}],
        },
    ]
    notes = digest_transcript(
        [encoded({"type": "gemini", "content": "", "toolCalls": tools})], "gemini"
    )
    assert list(notes.changed_files) == ["/a"]
    assert [run.ok for run in notes.command_runs.values()] == [False]
    assert [todo.text for todo in notes.todos.values()] == ["Later"]


def test_gemini_error_is_resolved_by_reply() -> None:
    failed = encoded({"type": "error", "content": "Quota exceeded."})
    notes = digest_transcript([failed], "gemini")
    assert [failure.output for failure in notes.failures.values()] == ["Quota exceeded."]
    assert (
        digest_transcript(
            [failed, encoded({"type": "gemini", "content": "Hi."})], "gemini"
        ).failures
        == {}
    )


def test_gemini_document_is_digested_unless_it_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "session-1.json"
    messages = [{"type": "user", "content": "Go."}, {"type": "gemini", "content": "Done."}]
    path.write_text(json.dumps({"sessionId": "1", "messages": messages}))
    notes = digest_transcript(iter_records(str(path)), "gemini")
    assert (notes.latest_message, notes.last_reply) == ("Go.", "Done.")
    path.write_text(path.read_text()[:-20])
    assert list(iter_records(str(path))) == []


def test_older_storage_of_opencode_is_drafted(tmp_path: Path) -> None:
    """Before 1.2 each message and each part was a file; one may begin with a byte order mark."""
    files: dict[str, object] = {
        "session/project/ses_1.json": {"id": "ses_1", "time": {}},
        "message/ses_1/msg_1.json": {"role": "user", "id": "msg_1"},
        "message/ses_1/msg_2.json": {"role": "assistant", "id": "msg_2"},
        "part/msg_1/prt_1.json": {"type": "text", "text": "Go."},
        "part/msg_2/prt_1.json": {"type": "text", "text": "Done."},
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\ufeff" + json.dumps(content, indent=2))
    own = str(tmp_path / "session/project/ses_1.json")
    notes = digest_transcript(iter_records(own), "opencode")
    assert (notes.latest_message, notes.last_reply) == ("Go.", "Done.")


def test_opencode_tools_are_digested() -> None:
    completed = {"status": "completed", "input": {"filePath": "/a"}, "time": {"end": 5_000}}
    failed = {"status": "completed", "input": {"command": "make"}, "metadata": {"exit": 2}}
    listed = {"status": "completed", "input": {"todos": [{"content": "Later"}]}}
    parts = [
        {"type": "tool", "tool": "write", "callID": "1", "state": completed},
        {"type": "tool", "tool": "bash", "callID": "2", "state": failed | {"output": "boom"}},
        {"type": "tool", "tool": "todowrite", "callID": "3", "state": listed},
    ]
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    records: list[object] = [
        {"info": {"role": "user"}, "parts": [{"type": "text", "text": "x", "synthetic": True}]},
        {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Go."}]},
        {"info": {"role": "assistant"}, "parts": parts},
        {"info": {"role": "assistant", "error": error}, "parts": []},
    ]
    notes = digest_transcript(map(encoded, records), "opencode")
    assert notes.latest_message == "Go."
    assert notes.changed_files == {"/a": 5.0}
    assert [failure.output for failure in notes.failures.values()] == ["boom", "overloaded"]
    assert [todo.text for todo in notes.todos.values()] == ["Later"]
