"""JSON lines of a file that may be growing, broken or huge, in bounded memory."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.transcripts.lines import (
    CHUNK_BYTES,
    MAX_LINE_BYTES,
    JsonLines,
    Lines,
    open_transcript,
)
from brimline.agents.transcripts.source import START, Cursor
from brimline.context.events import AnyEvent, Call
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, UnreadableTranscript
from brimline.files.foreign_json import decode_json, recover_objects


class Wire(msgspec.Struct):
    """A record of the parser below."""

    n: int | None = None
    kind: str = "call"


class Numbered:
    """A parser whose every record is a call; it remembers how many it saw."""

    def __init__(self, carry: bytes = b"") -> None:
        self.seen = int(carry or b"0")

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        """A call of `n` tokens; None for another kind."""
        wire = decode_json(record, Wire)
        if wire.kind != "call":
            return None
        if wire.n is None:
            raise InvalidUsage("n", None)
        usage = Usage(wire.n, 0, 0, 0)
        self.seen += 1
        return (Call(id=f"{self.seen}", usage=usage),)

    def carry(self) -> bytes:
        """How many calls were seen."""
        return str(self.seen).encode()


def reader(data: bytes, cursor: Cursor = START) -> JsonLines:
    """A reader of these bytes from a cursor on."""
    file = io.BytesIO(data)
    file.seek(cursor.offset)
    return JsonLines(file, Numbered(cursor.carry), cursor)


def counts(data: bytes) -> list[int]:
    """The numbers that a reader finds."""
    return numbers(reader(data))


def numbers(found: JsonLines) -> list[int]:
    """The numbers of the calls that come out of a reader."""
    return [event.usage.input for event in found if isinstance(event, Call)]


def tally(data: bytes) -> tuple[int, int, int]:
    """Records, unknown and malformed."""
    found = reader(data)
    list(found)
    return found.tally.records, found.tally.unknown, found.tally.malformed


def line(n: int) -> bytes:
    """A record and its end."""
    return b'{"n":%d}\n' % n


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_byte_order_mark_moves_no_offset(end: bytes) -> None:
    """A file that begins with a mark and grows is read on from where the last read ended."""
    data = MARK + line(1) + line(2).removesuffix(b"\n") + end
    found = reader(data)
    assert numbers(found) == [1, 2]
    assert (found.tally.records, found.tally.malformed) == (2, 0)
    assert found.cursor == Cursor(len(data), b"2")
    grown = data.removesuffix(b"\n") + b"\n" + line(3)
    assert numbers(reader(grown, found.cursor)) == [3]


def test_byte_order_mark_alone_is_no_record() -> None:
    found = reader(MARK)
    assert numbers(found) == []
    assert (found.tally.records, found.cursor.offset) == (0, len(MARK))


def test_lines() -> None:
    """Every line is a record, in order, and the cursor is the end."""
    data = line(1) + line(2) + line(3)
    found = reader(data)
    assert numbers(found) == [1, 2, 3]
    assert found.cursor == Cursor(len(data), b"3")
    assert (found.tally.records, found.tally.unknown, found.tally.malformed) == (3, 0, 0)


def test_empty_file() -> None:
    """An empty file has no events and stays where it is."""
    found = reader(b"")
    assert list(found) == []
    assert found.cursor == Cursor(0, b"0")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n\n", b" \t\n", b"\n\0\0\0\n", b"\0\n"])
def test_what_stands_around_a_record(end: bytes) -> None:
    """Blank lines, CRLF and NUL bytes are no records."""
    data = b'{"n":1}' + end + b'{"n":2}' + end
    assert counts(data) == [1, 2]
    assert tally(data) == (2, 0, 0)


def test_nul_bytes_at_the_end() -> None:
    """What a crash leaves of a file's end is no record, and the rest is read."""
    data = line(1) + b"\0" * 5_000
    assert counts(data) == [1]
    assert tally(data) == (1, 0, 0)
    assert counts(data + b"\n" + line(2)) == [1, 2]
    assert counts(line(1) + b"\0" * 5_000 + line(2)) == [1, 2]


@pytest.mark.parametrize("between", [b"", b" ", b"\0\0"])
def test_glued_objects(between: bytes) -> None:
    """Two or three objects on one line are all read."""
    data = line(1) + b'{"n":2}' + between + b'{"n":3}' + between + b'{"n":4}\n' + line(5)
    assert counts(data) == [1, 2, 3, 4, 5]
    assert tally(data) == (5, 0, 0)


def test_glued_with_a_bad_one() -> None:
    """Of glued objects the bad one is counted and the others are read."""
    data = b'{"n":1}{"n":"x"}{"kind":"new"}{"n":4}\n'
    assert counts(data) == [1, 4]
    assert tally(data) == (4, 1, 1)


def test_glued_to_what_is_cut_off() -> None:
    """An object that was cut off by the next one is lost, and counted."""
    data = b'{"n":1,"te{"n":2}\n' + line(3)
    assert counts(data)[-1] == 3
    assert tally(data)[2] == 1


def test_last_line_complete() -> None:
    """A last line without its end that is a whole object is read now, and not again."""
    data = line(1) + b'{"n":2}'
    found = reader(data)
    assert numbers(found) == [1, 2]
    assert found.cursor.offset == len(data)
    assert numbers(reader(data + b"\n" + line(3), found.cursor)) == [3]
    assert numbers(reader(data + line(3), found.cursor)) == [3]


@pytest.mark.parametrize("cut", range(1, 7))
def test_last_line_incomplete(cut: int) -> None:
    """A last line still being written is left for the next read, then read once."""
    whole = line(1) + line(22)
    half = whole[: len(line(1)) + cut]
    found = reader(half)
    assert numbers(found) == [1]
    assert found.cursor.offset == len(line(1))
    assert (found.tally.records, found.tally.malformed) == (1, 0)
    again = reader(half, found.cursor)
    assert numbers(again) == []
    assert numbers(reader(whole, again.cursor)) == [22]


def test_glued_last_line_incomplete() -> None:
    """A second object that is still being written holds back the first one on its line."""
    found = reader(b'{"n":1}{"n":')
    assert numbers(found) == []
    assert numbers(reader(b'{"n":1}{"n":2}\n', found.cursor)) == [1, 2]


def test_last_line_malformed() -> None:
    """A whole last object of the wrong form is counted once, and passed."""
    data = b'{"n":"x"}'
    found = reader(data)
    assert numbers(found) == []
    assert found.tally.malformed == 1
    assert found.cursor.offset == len(data)


@pytest.mark.parametrize(
    "bad", [b"[1,2]", b"7", b'"text"', b"null", b"true", b"{", b"{]", b"\xff\xfe", b"{}x", b"}{"]
)
def test_no_object(bad: bytes) -> None:
    """A line that is no JSON object is counted as malformed with its place, the rest is read."""
    data = line(1) + bad + b"\n" + line(2)
    found = reader(data)
    assert numbers(found) == [1, 2]
    assert (found.tally.records, found.tally.malformed) == (3, 1)
    assert found.tally.places[0].startswith(f"before byte {len(line(1)) + len(bad) + 1}: ")


def test_invalid_usage_is_malformed() -> None:
    """A record whose counts cannot be is counted with what is wrong in it."""
    found = reader(b'{"n":-1}\n{"n":null}\n' + line(3))
    assert numbers(found) == [3]
    assert found.tally.malformed == 2
    assert "'input' must be an integer of 0 or more: got -1" in found.tally.places[0]


def test_unknown_kind() -> None:
    """A kind that the parser does not know is counted and skipped."""
    assert tally(b'{"kind":"new"}\n' + line(1)) == (2, 1, 0)


def test_few_places() -> None:
    """However many records are bad, only the first few places are kept."""
    found = reader(b"?\n" * 1_000)
    assert list(found) == []
    assert found.tally.malformed == 1_000
    assert len(found.tally.places) == 5


@pytest.mark.parametrize(
    "record",
    [
        b'{"n":5,"text":"\xff\xfe"}',
        b'{"n":5,"kind":"call","text":"caf\xe9"}',
        b'{"text":"\xc3(","n":5}',
    ],
)
def test_invalid_utf8_beside(record: bytes) -> None:
    """Invalid UTF-8 in a text that nobody reads does not lose the record."""
    assert counts(line(1) + record + b"\n" + line(2)) == [1, 5, 2]


def test_invalid_utf8_in_what_is_read() -> None:
    """Invalid UTF-8 in a text that is read loses no other record, and is no crash."""
    data = line(1) + b'{"n":5,"kind":"ca\xffll"}\n' + line(2)
    assert counts(data) == [1, 2]
    assert tally(data)[0] == 3


@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting(depth: int, left: bytes, right: bytes) -> None:
    """A record nested beyond measure loses no other record, and is no crash."""
    deep = b'{"n":5,"x":' + left * depth + b"1" + right * depth + b"}"
    found = counts(line(1) + deep + b"\n" + line(2))
    assert (found[0], found[-1]) == (1, 2)
    assert counts(line(1) + deep)[0] == 1


def test_salvage() -> None:
    """Objects are found one after another; anything else on the line makes it no good."""
    assert recover_objects(b'{"a":1} {"b":2}\0') == [b'{"a":1}', b'{"b":2}']
    assert recover_objects(b'{"a":1}7') == []
    assert recover_objects(b'7{"a":1}') == []
    assert recover_objects(b'{"a":1}{"b"') == []
    assert recover_objects(b"") == []
    assert recover_objects(b"[" * 100_000) == []


def test_file_is_closed() -> None:
    """A reader closes its file."""
    file = io.BytesIO(line(1))
    list(JsonLines(file, Numbered()))
    assert file.closed


@pytest.mark.parametrize(
    "size", [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7]
)
def test_long_lines(size: int) -> None:
    """A line over the ends of chunks is read as one."""
    text = b"x" * (size - len(b'{"n":2,"t":""}'))
    long = b'{"n":2,"t":"' + text + b'"}'
    data = line(1) + long + b"\n" + line(3)
    assert counts(data) == [1, 2, 3]
    assert counts(line(1) + long) == [1, 2]


class Filler(io.RawIOBase):
    """A file that is never held: some bytes, a flood of one byte, some bytes again."""

    def __init__(self, head: bytes, flood: int, tail: bytes) -> None:
        self._parts = [head, flood, tail]

    def readable(self) -> bool:
        """It can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most so many."""
        head, flood, tail = self._parts
        assert isinstance(head, bytes)
        assert isinstance(flood, int)
        assert isinstance(tail, bytes)
        if head:
            self._parts[0] = b""
            return head
        if flood:
            self._parts[1] = flood - min(size, flood)
            return b"x" * min(size, flood)
        self._parts[2] = b""
        return tail


@pytest.mark.parametrize("flood", [MAX_LINE_BYTES + 1, MAX_LINE_BYTES + CHUNK_BYTES + 5])
def test_line_that_is_too_long(flood: int) -> None:
    """A line beyond all measure is counted as malformed, and the rest is read."""
    head, tail = line(1) + b'{"n":2,"t":"', b'"}\n' + line(3)
    found = JsonLines(Filler(head, flood, tail), Numbered())  # pyright: ignore[reportArgumentType]
    assert numbers(found) == [1, 3]
    assert found.tally.malformed == 1
    assert found.tally.places == ["a line longer than 16 MiB"]
    assert found.cursor.offset == len(head) + flood + len(tail)


def test_long_line_that_is_not_too_long() -> None:
    """A line as long as it may be is read."""
    head, tail = b'{"n":2,"t":"', b'"}\n' + line(3)
    flood = MAX_LINE_BYTES - len(head) - 2
    found = JsonLines(Filler(head, flood, tail), Numbered())  # pyright: ignore[reportArgumentType]
    assert numbers(found) == [2, 3]
    assert found.tally.malformed == 0


def test_line_that_is_too_long_at_the_end() -> None:
    """A line beyond all measure that is still being written is counted once, and not held."""
    found = JsonLines(
        Filler(line(1) + b'{"t":"', MAX_LINE_BYTES * 2, b""),  # pyright: ignore[reportArgumentType]
        Numbered(),
    )
    assert numbers(found) == [1]
    assert found.tally.malformed == 1


MEASURE = """
import io, resource, sys
sys.path.insert(0, {folder!r})
from test_lines import Filler, Numbered
from brimline.agents.transcripts.lines import JsonLines
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
found = JsonLines(Filler(b'{{"t":"', {flood}, b'"}}\\n{{"n":3}}\\n'), Numbered())
assert [event.usage.input for event in found] == [3]
print((peak() - before) * (1 if sys.platform == "darwin" else 1024))
"""


def test_memory_is_bounded() -> None:
    """A line of 300 MB takes no more memory than the longest line that is read."""
    script = MEASURE.format(folder=str(Path(__file__).parent), flood=300_000_000)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 4 * MAX_LINE_BYTES


def test_many_short_lines() -> None:
    """A chunk of nothing but line ends is passed over."""
    assert counts(b"\n" * 1_034 + line(1)) == [1]
    lines = Lines(io.BytesIO(b"\n" * 1_034 + line(1)), chunk_bytes=1_024)
    assert [one for one in lines if one] == [line(1).rstrip(b"\n")]


def test_lines_without_a_parser() -> None:
    """The bare lines tell where they are and what is left."""
    lines = Lines(io.BytesIO(b"ab\ncd\nef"), 10)
    assert list(lines) == [b"ab", b"cd"]
    assert (lines.offset, lines.rest, lines.too_long) == (16, b"ef", 0)


RECORDS = st.lists(
    st.sampled_from(
        [
            line(1),
            line(22),
            b'{"n":3}{"n":4}\n',
            b'{"kind":"new"}\n',
            b"\n",
            b'{"n":"x"}\r\n',
            b"garbage\n",
            b'{"n":7,"t":"\xff"}\n',
            b"\0\0\n",
        ]
    ),
    max_size=12,
)


@given(RECORDS, st.data())
def test_going_on_at_every_boundary(records: list[bytes], data: st.DataObject) -> None:
    """Read in parts, from cursor to cursor, a file gives what it gives at once."""
    whole = b"".join(records)
    cursor, found, bad = START, list[AnyEvent](), 0
    for n in sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=5))):
        part = reader(b"".join(records[:n]), cursor)
        found += list(part)
        bad += part.tally.malformed
        cursor = part.cursor
    last = reader(whole, cursor)
    found += list(last)
    at_once = reader(whole)
    assert found == list(at_once)
    assert bad + last.tally.malformed == at_once.tally.malformed
    assert last.cursor == at_once.cursor


@given(st.lists(st.integers(0, 99), max_size=6), st.data())
def test_going_on_at_every_byte(values: list[int], data: st.DataObject) -> None:
    """A file that grows byte by byte gives what it gives at once, nothing lost, nothing twice."""
    whole = b"".join(map(line, values))
    cursor, found = START, list[int]()
    for size in sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8))):
        part = reader(whole[:size], cursor)
        found += numbers(part)
        cursor = part.cursor
    assert found + numbers(reader(whole, cursor)) == values


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["n", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(st.binary(max_size=40) | JSONISH.map(lambda v: json.dumps(v).encode()), max_size=8))
def test_garbage(pieces: list[bytes]) -> None:
    """Whatever bytes come, they are read, counted or left, and what follows is read."""
    found = reader(b"\n".join(pieces) + b"\n" + line(5))
    assert numbers(found)[-1] == 5
    assert found.tally.unknown + found.tally.malformed <= found.tally.records


def test_opened(tmp_path: Path) -> None:
    """A file is opened at its offset."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(line(1) + line(2))
    with open_transcript(str(path), len(line(1))) as file:
        assert file.read() == line(2)


def test_opened_beyond_the_end(tmp_path: Path) -> None:
    """A file that has become shorter than the cursor has nothing more to give."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(line(1))
    with open_transcript(str(path), 5_000) as file:
        assert file.read() == b""


def test_not_there(tmp_path: Path) -> None:
    """A path that is not there, is a folder or a dangling link is an error that says why."""
    folder = tmp_path / "x.jsonl"
    folder.mkdir()
    dangling = tmp_path / "dangling.jsonl"
    dangling.symlink_to(tmp_path / "gone")
    reasons: dict[str, str] = {}
    for path in (tmp_path / "none.jsonl", folder, dangling):
        with pytest.raises(UnreadableTranscript) as caught:
            open_transcript(str(path))
        assert caught.value.path == str(path)
        reasons[path.name] = caught.value.reason
    assert reasons == {
        "none.jsonl": "No such file or directory",
        "x.jsonl": "Is a directory",
        "dangling.jsonl": "No such file or directory",
    }
