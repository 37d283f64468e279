"""events.jsonl: a row for each iteration, among the rows of other programs."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidSettings, UnreadableTranscript
from brimline.run.ralph import append_row, ensure_writable, make_row, read_rows
from brimline.run.result import IterationResult

# Rows of other programs, and malformed ones.
OTHERS = [
    b'{"ts":"2026-01-15T10:23:45Z","iteration":1,"hat":"loop","topic":"task.start","payload":"Go"}',
    b'{"topic":"build.done","payload":{"tests":"pass"},"ts":"2026-01-15T10:24:12Z"}',
    b"not json at all",
    b'{"topic":"iteration.summary"}',
    b'{"topic":"iteration.summary","ts":"x","payload":"no figures"}',
    b'{"topic":"iteration.summary","ts":"x","payload":{"num_turns":"many"}}',
    b"\xff\xfe\x00",
    b"",
]


def iteration(number: int = 1, hat: str | None = None, **fields: Any) -> IterationResult:
    figures: dict[str, Any] = {"duration_ms": 12_345, "agent": "claude", "session_id": "s"}
    figures |= {"exit_code": 0, "ended": "itself", "said_it": False, "reading": None}
    return IterationResult(iteration=number, hat=hat, **{**figures, **fields})


WHOLE: dict[str, Any] = {
    "total_cost_usd": 0.0526,
    "num_turns": 3,
    "input_tokens": 12,
    "output_tokens": 156,
    "cache_read_tokens": 150_000,
    "cache_write_tokens": 22_000,
    "context_tokens": 90_000,
    "peak_context_tokens": 120_000,
    "context_window": 200_000,
}


def test_row_has_figures_of_iteration(tmp_path: Path) -> None:
    """The payload has Ralph's fields; two more are beside it."""
    path = tmp_path / "events.jsonl"
    append_row(path, make_row(iteration(2, "builder", **WHOLE), at=1_794_712_687.5))
    assert json.loads(path.read_text()) == {
        "ts": "2026-11-15T03:18:07.500Z",
        "iteration": 2,
        "hat": "builder",
        "topic": "iteration.summary",
        "payload": {
            "duration_ms": 12_345,
            "cost_usd": 0.0526,
            "num_turns": 3,
            "input_tokens": 12,
            "output_tokens": 156,
            "cache_read_tokens": 150_000,
            "cache_write_tokens": 22_000,
            "context_window": 200_000,
            "context_tokens": 90_000,
            "context_pct": 45.0,
            "peak_context_tokens": 120_000,
            "exit_code": 0,
            "ended": "itself",
        },
        "input_tokens": 90_000,
        "context_utilization_pct": 45.0,
    }


def test_unknown_figures_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append_row(path, make_row(iteration(), at=0.0))
    assert path.read_text() == (
        '{"ts":"1970-01-01T00:00:00.000Z","iteration":1,"topic":"iteration.summary","payload":'
        '{"duration_ms":12345,"exit_code":0,"ended":"itself"}}\n'
    )


@given(st.lists(st.sampled_from(OTHERS), max_size=6), st.booleans())
def test_append_keeps_other_rows_and_starts_a_new_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bool
) -> None:
    path = tmp_path_factory.mktemp("rows") / "events.jsonl"
    before = b"\n".join(lines) + (b"\n" if end and lines else b"")
    path.write_bytes(before)
    append_row(path, make_row(iteration(7, **WHOLE)))
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == before.count(b"\n") + 1 + (
        not before.endswith(b"\n") and before != b""
    )
    (row,) = read_rows(path)
    assert (row.iteration, row.figures.context_tokens) == (7, 90_000)


def test_concurrent_appends_keep_lines_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    def write(hat: str) -> None:
        for number in range(1, 51):
            append_row(path, make_row(iteration(number, hat, **WHOLE)))

    writers = [threading.Thread(target=write, args=(f"h{n}" * 50,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(list(read_rows(path))) == len(path.read_bytes().splitlines()) == 200


def test_rows_of_ralph_are_read(tmp_path: Path) -> None:
    """Ralph writes its payload as a JSON string."""
    path = tmp_path / "events.jsonl"
    payload = json.dumps({"duration_ms": 1, "context_tokens": 5, "context_window": 10})
    row = {"ts": "t", "iteration": 3, "hat": "", "topic": "iteration.summary", "payload": payload}
    path.write_text(json.dumps(row))
    (read,) = read_rows(path)
    assert (read.iteration, read.hat, read.figures.context_tokens) == (3, "", 5)


def test_unwritable_file_raises_before_run(tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.jsonl"
    ensure_writable(path)
    assert path.read_bytes() == b""
    with pytest.raises(InvalidSettings, match=r"argument events: cannot write .*Is a directory"):
        ensure_writable(tmp_path)
    with pytest.raises(InvalidSettings, match="cannot write"):
        ensure_writable(path / "below" / "a-file")


def test_missing_file_raises(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UnreadableTranscript) as caught:
            list(read_rows(path))
        assert caught.value.path == str(path)


def test_new_file_has_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        ensure_writable(tmp_path / "events.jsonl")
    finally:
        os.umask(before)
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o640
