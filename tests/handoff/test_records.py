"""The records of a transcript, however long it is."""

import tracemalloc
from pathlib import Path

import pytest

from brimline.errors import UnreadableTranscript
from brimline.handoff import draft_handoff, iter_records
from brimline.handoff.records import HEAD_BYTES, MAX_WHOLE_FILE_BYTES
from brimline.transcripts.chunks import MAX_LINE_BYTES

from .made import asked, said


def test_every_line_is_a_record(tmp_path: Path) -> None:
    """Every line is a record, also a last one without an end."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"1\n2\n3")
    assert list(iter_records(str(path))) == [b"1", b"2", b"3"]


def test_unreadable_file_raises(tmp_path: Path) -> None:
    """An unreadable path raises at the first record."""
    found = iter_records(str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(UnreadableTranscript):
        next(found)


def test_huge_line_is_skipped(tmp_path: Path) -> None:
    """A line that is too long is skipped, and the rest is read."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(asked("First.") + b"\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\n" + said("Last."))
    text = draft_handoff(iter_records(str(path)), "claude")
    assert "> First." in text
    assert "> Last." in text


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Of a long transcript only a small piece is in memory at a time."""
    path = tmp_path / "x.jsonl"
    path.write_bytes((b"x" * 1_999 + b"\n") * 2_000)
    tracemalloc.start()
    try:
        assert sum(len(record) for record in iter_records(str(path))) == 1_999 * 2_000
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 500_000


@pytest.mark.slow
def test_huge_file_is_read_at_both_ends(tmp_path: Path) -> None:
    """Only the beginning and the end of a huge file are read."""
    path = tmp_path / "x.jsonl"
    middle = said("m" * 65_536) + b"\n"
    with path.open("wb") as file:
        file.write(asked("First.") + b"\n")
        for _ in range((MAX_WHOLE_FILE_BYTES + 2 * HEAD_BYTES) // len(middle)):
            file.write(middle)
        file.write(said("Last.") + b"\n" + asked("Latest."))
    read = sum(map(len, iter_records(str(path))))
    assert read <= MAX_WHOLE_FILE_BYTES + HEAD_BYTES
    text = draft_handoff(iter_records(str(path)), "claude")
    assert all(f"> {words}" in text for words in ("First.", "Latest.", "Last."))
