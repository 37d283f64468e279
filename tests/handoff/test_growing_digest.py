"""A digest that is read on as its transcript grows equals that of the whole transcript."""

from pathlib import Path

import pytest

from brimline.agents.transcripts.database import SQLITE
from brimline.errors import UnreadableTranscript
from brimline.handoff import GrowingDigest, draft_handoff, iter_records

from .records import FIXTURES, command_run, reply_record, tool_result, tool_use, user_record

SESSION = [
    user_record("Fix the parser."),
    tool_use("1", "TaskCreate", subject="Parse", description="d"),
    tool_result("1", "Task #1 created successfully: Parse"),
    *command_run("make test", "boom", failed=True),
    tool_use("2", "Write", file_path="/home/dev/project/a.py", content="x"),
    tool_result("2", "ok"),
    user_record("Now the docs."),
    reply_record("I will."),
]


def whole(path: Path) -> str:
    return draft_handoff(iter_records(str(path)), "claude", where=str(path))


@pytest.mark.parametrize("step", [1, 7, 50, 333])
def test_draft_of_a_growing_transcript_equals_that_of_the_whole(tmp_path: Path, step: int) -> None:
    """Also if it is read in the middle of a line."""
    path = tmp_path / "x.jsonl"
    data = b"\n".join(SESSION)
    path.write_bytes(b"")
    digest = GrowingDigest(str(path), "s1", "claude")
    for end in range(0, len(data), step * 10):
        path.write_bytes(data[:end])
        digest.read_on()
    path.write_bytes(data)
    assert digest.draft() == whole(path)
    assert list(digest.changed_files()) == ["/home/dev/project/a.py"]
    assert digest.offset == len(data)


def test_only_what_was_appended_is_read(tmp_path: Path) -> None:
    """A change of what was read before has no effect."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(SESSION[0] + b"\n")
    digest = GrowingDigest(str(path), "s1", "claude")
    digest.read_on()
    with path.open("r+b") as file:
        file.write(SESSION[0].replace(b"parser", b"writer") + b"\n" + SESSION[-1] + b"\n")
    assert "Fix the parser." in digest.draft()
    assert "> I will." in digest.draft()


def test_shorter_or_replaced_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, other = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    path.write_bytes(b"\n".join(SESSION))
    digest = GrowingDigest(str(path), "s1", "claude")
    digest.read_on()
    path.write_bytes(user_record("Shorter now."))
    assert digest.draft() == whole(path)
    other.write_bytes(user_record("Another file.") + b"\n" + b"\n".join(SESSION))
    other.replace(path)
    assert digest.draft() == whole(path)


def test_prompt_is_in_one_draft_and_not_in_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(SESSION))
    digest = GrowingDigest(str(path), "s1", "claude")
    assert "## Current request\n> Then the tests.\n" in digest.draft("Then the tests.")
    assert digest.draft() == whole(path) == digest.draft("Now the docs.")
    assert digest.draft("Fix the parser.") == digest.draft()


def test_documents_and_files_without_records_are_read_as_a_whole(tmp_path: Path) -> None:
    export = FIXTURES / "opencode/auto-compact/export.json"
    digest = GrowingDigest(str(export), "s1", "opencode")
    once = digest.draft()
    assert once
    assert digest.draft() == once
    empty = tmp_path / "empty.db"
    empty.write_bytes(SQLITE)
    with pytest.raises(UnreadableTranscript):
        GrowingDigest(str(empty), "s1", "opencode").read_on()
    with pytest.raises(UnreadableTranscript):
        GrowingDigest(str(tmp_path / "nowhere.jsonl"), "s1", "claude").read_on()
