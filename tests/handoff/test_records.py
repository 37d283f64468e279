"""Reading the records of a transcript of any size."""

import tracemalloc
from pathlib import Path

import pytest

from brimline.agents.transcripts.lines import MAX_LINE_BYTES
from brimline.errors import UnreadableTranscript
from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.records import HEAD_BYTES

from .records import reply_record, user_record


def test_every_line_is_a_record_even_the_last_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"1\n2\n3")
    assert list(iter_records(str(path))) == [b"1", b"2", b"3"]


def test_unreadable_file_raises(tmp_path: Path) -> None:
    records = iter_records(str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(UnreadableTranscript):
        next(records)


def test_huge_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        user_record("First of all.")
        + b"\n"
        + b"x" * (MAX_LINE_BYTES + 1)
        + b"\n"
        + reply_record("Last.")
    )
    text = draft_handoff(iter_records(str(path)), "claude")
    assert "> First of all." in text
    assert "> Last." in text


def test_memory_is_bounded_for_a_long_transcript(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes((b"x" * 1_999 + b"\n") * 2_000)
    tracemalloc.start()
    try:
        assert sum(len(record) for record in iter_records(str(path))) == 1_999 * 2_000
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 500_000


MOST_BYTES = 3 * HEAD_BYTES


def test_huge_file_is_read_at_both_ends_only(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    middle = reply_record("m" * 65_536) + b"\n"
    with path.open("wb") as file:
        file.write(user_record("First of all.") + b"\n")
        for _ in range((MOST_BYTES + 2 * HEAD_BYTES) // len(middle)):
            file.write(middle)
        file.write(reply_record("Last.") + b"\n" + user_record("Latest."))
    read = sum(map(len, iter_records(str(path), most_bytes=MOST_BYTES)))
    assert read <= MOST_BYTES + HEAD_BYTES
    text = draft_handoff(iter_records(str(path), most_bytes=MOST_BYTES), "claude")
    assert all(words in text for words in ("- First of all.", "> Latest.", "> Last."))
