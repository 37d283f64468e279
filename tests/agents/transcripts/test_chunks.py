"""Large files in chunks: a chunk is whole lines, and no line is lost."""

import io
import tracemalloc
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.transcripts.lines import CHUNK_BYTES, MAX_LINE_BYTES, Chunks

HOLE = 100 << 20


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time, as a slow disk or a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file, self._step = io.BytesIO(data), step

    def readinto(self, buffer: object) -> int:
        """The next few bytes."""
        view = cast("memoryview", buffer)
        return self._file.readinto(view[: self._step])


def chunks_of(data: bytes, size: int, step: int | None = None) -> tuple[Chunks, list[bytes]]:
    """The chunks of a file read with a buffer of this size."""
    file = io.BytesIO(data) if step is None else Trickle(data, step)
    chunks = Chunks(cast("BinaryIO", file), size=size)
    return chunks, [bytes(chunks.view[:end]) for end in chunks]


@given(
    lines=st.lists(st.binary(max_size=70).map(lambda b: b.replace(b"\n", b"-"))),
    rest=st.binary(max_size=70).map(lambda b: b.replace(b"\n", b"-")),
    size=st.sampled_from([1, 2, 3, 7, 16, 64, 300, 4_096]),
    step=st.none() | st.integers(1, 40),
)
def test_chunks_are_whole_lines(
    lines: list[bytes], rest: bytes, size: int, step: int | None
) -> None:
    """All whole lines come back, in order, whatever the sizes; the rest is kept apart."""
    whole = b"".join(line + b"\n" for line in lines)
    chunks, given_back = chunks_of(whole + rest, size, step)
    assert all(chunk.endswith(b"\n") for chunk in given_back)
    assert b"".join(given_back) == whole
    assert chunks.rest == rest
    assert chunks.offset == len(whole)
    assert chunks.too_long == 0


def test_chunks_from_an_offset() -> None:
    """The offset counts from where the file was opened."""
    file = io.BytesIO(b"one\ntwo\nthr")
    file.seek(4)
    chunks = Chunks(file, 4, size=8)
    assert [bytes(chunks.view[:end]) for end in chunks] == [b"two\n"]
    assert (chunks.offset, chunks.rest) == (8, b"thr")


def test_nothing() -> None:
    """An empty file has no chunk."""
    chunks, given_back = chunks_of(b"", 64)
    assert (given_back, chunks.rest, chunks.offset) == ([], b"", 0)


def test_two_at_once() -> None:
    """Two files that are read in turns do not share a buffer."""
    one, two = (Chunks(io.BytesIO(name * 50 + b"\n")) for name in (b"a", b"b"))
    for first, second in zip(one, two, strict=True):
        assert bytes(one.view[:first]) == b"a" * 50 + b"\n"
        assert bytes(two.view[:second]) == b"b" * 50 + b"\n"


def test_one_after_the_other() -> None:
    """What a file left in a buffer is not seen in the next one."""
    assert chunks_of(b"x" * 500 + b"\n", CHUNK_BYTES)[1] == [b"x" * 500 + b"\n"]
    assert chunks_of(b"y\n", CHUNK_BYTES)[1] == [b"y\n"]
    chunks, given_back = chunks_of(b"z", CHUNK_BYTES)
    assert (given_back, chunks.rest) == ([], b"z")


def test_a_line_up_to_the_longest() -> None:
    """A line that just fits is given, however small the buffer was at first."""
    line = b"x" * (MAX_LINE_BYTES - 1) + b"\n"
    chunks, given_back = chunks_of(b"a\n" + line + b"b\n", CHUNK_BYTES)
    assert b"".join(given_back) == b"a\n" + line + b"b\n"
    assert chunks.too_long == 0


@pytest.mark.parametrize("behind", [b"", b"after\n", b"after\nmore", b"\n\n"])
def test_too_long(behind: bytes) -> None:
    """A line that is too long is counted and skipped; what stands around it is read."""
    data = b"before\n" + b"x" * (MAX_LINE_BYTES + 5) + b"\n" + behind
    chunks, given_back = chunks_of(data, CHUNK_BYTES)
    whole, _, rest = behind.rpartition(b"\n")
    assert b"".join(given_back) == b"before\n" + whole + (b"\n" if b"\n" in behind else b"")
    assert (chunks.too_long, chunks.rest) == (1, rest)
    assert chunks.offset == len(data) - len(rest)


def test_too_long_and_not_ended() -> None:
    """A last line that is too long and has no end is passed over too."""
    data = b"before\n" + b"x" * (MAX_LINE_BYTES + 5)
    chunks, given_back = chunks_of(data, CHUNK_BYTES)
    assert given_back == [b"before\n"]
    assert (chunks.too_long, chunks.rest, chunks.offset) == (1, b"", len(data))


def test_memory_is_bounded(tmp_path: Path) -> None:
    """A line of 100 MB is never held."""
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b"before\n")
        file.truncate(HOLE)
        file.seek(HOLE)
        file.write(b"\nafter\n")
    tracemalloc.start()
    try:
        with path.open("rb", buffering=0) as raw:
            chunks = Chunks(cast("BinaryIO", raw))
            ends = [bytes(chunks.view[:end]) for end in chunks]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ends == [b"before\n", b"after\n"]
    assert chunks.too_long == 1
    assert peak < 2 * MAX_LINE_BYTES + (8 << 20)
