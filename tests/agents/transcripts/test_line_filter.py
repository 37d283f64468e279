"""Picking lines: both pickers pick what a plain reading of the lines says, and nothing else."""

import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimline
from brimline.agents.claude.fast_reader import ID_KEY, NEEDLES, USAGE
from brimline.agents.transcripts.line_filter import (
    BATCH_RUNS,
    LIBRARY,
    MIN_NEEDLE_BYTES,
    CompiledLineFilter,
    LineFilter,
    LineRun,
    PythonLineFilter,
    load_library,
)
from hypothesis_examples import examples

Name = tuple[int, bytes]
"""A column, and what stands there."""


# What is to be picked, said as plainly as can be.


def name_of(line: bytes, needles: Sequence[bytes], key: bytes) -> Name | None:
    """What is behind a key, before a quote and the first needle, which must be the counted one."""
    before, found, _ = line.partition(needles[0])
    if any(0 <= line.find(needle) < len(before) for needle in needles):
        return None
    head, keyed, behind = before.partition(key)
    name, quoted, _ = behind.partition(b'"')
    return (len(head), name) if found and keyed and quoted else None


def passable(line: bytes) -> bool:
    """Whether a line is one record for sure."""
    return b'}{"' not in line and b"\0" not in line


def runs_of(lines: Sequence[bytes], needles: Sequence[bytes], key: bytes) -> list[list[int]]:
    """The numbers of the lines that matter, copies together."""
    runs: list[list[int]] = []
    for number, line in enumerate(lines):
        if not any(needle in line for needle in needles):
            continue
        name = name_of(line, needles, key)
        follows = bool(runs) and runs[-1][-1] == number - 1 and passable(lines[number - 1])
        if follows and name is not None and name == name_of(lines[number - 1], needles, key):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def plainly(data: bytes, needles: Sequence[bytes], key: bytes) -> list[LineRun]:
    """What is to be picked of whole lines."""
    lines = data.split(b"\n")[:-1]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    picked: list[LineRun] = []
    for first, *_, last in ([run[0], *run] for run in runs_of(lines, needles, key)):
        column, name = name_of(lines[first], needles, key) or (0, None)
        at = starts[first] + column
        end = at if name is None else at + len(key) + len(name) + 1
        picked.append((starts[first], starts[last], starts[last] + len(lines[last]), at, end))
    return picked


def check(
    picker: type[LineFilter],
    data: bytes,
    behind: bytes = b"",
    needles: Sequence[bytes] = NEEDLES,
    key: bytes = ID_KEY,
) -> list[LineRun]:
    """Check what is picked of whole lines, with something `behind` them that is no concern."""
    picked = list(picker(needles, key).runs(bytearray(data + behind), len(data)))
    assert picked == plainly(data, needles, key)
    return picked


# Any lines.


def usage(name: bytes = b"m1", column: int = 20, text: bytes = b"so") -> bytes:
    """A line with usage, with a name in a column."""
    return b"{" * column + ID_KEY + name + b'","text":"' + text + b'",' + USAGE + b"5}\n"


def part(needle: bytes, cut: int, front: bool) -> bytes:
    """What is left of a needle when it is cut."""
    return needle[:cut] if front else needle[cut:]


def repeated(byte: bytes, size: int) -> bytes:
    """A byte so many times."""
    return byte * size


def pieces(needles: Sequence[bytes], key: bytes) -> st.SearchStrategy[bytes]:
    """What lines are made of: needles, parts of them, and what could be taken for more."""
    whole = st.sampled_from(needles)
    parts = st.builds(part, whole, st.integers(0, 20), st.booleans())
    marks = st.sampled_from(
        [b"\n", b'"', b"\0", b'}{"', b"{", b"}", key, key + b'a"', key + b'b"', b"\xff", b"\r\n"]
    )
    sizes = st.sampled_from([3, 13, 64, 700])
    runs = st.builds(repeated, st.sampled_from([b"x", b'"', b"}", b"\n"]), sizes)
    return whole | parts | marks | runs | st.binary(max_size=20)


def anything(needles: Sequence[bytes], key: bytes = ID_KEY) -> st.SearchStrategy[bytes]:
    """Whole lines of such pieces, with records that have copies between them."""
    names = st.sampled_from([b"", b"a", b"ab", b"b", b"\xc3\xa9"])
    called = st.builds(
        usage, names, st.integers(0, 3), st.sampled_from([b"", b"so", b'}{"', b"\0"])
    )
    some = st.lists(called, min_size=1, max_size=4).map(b"".join) | pieces(needles, key)
    return st.lists(some, max_size=60).map(lambda made: b"".join(made) + b"\n")


@examples(200)
@given(data=anything(NEEDLES), behind=st.just(b"") | pieces(NEEDLES, ID_KEY))
def test_any_lines(picker: type[LineFilter], data: bytes, behind: bytes) -> None:
    """Whatever the lines are, what is picked is what a plain reading says."""
    check(picker, data, behind)


words = st.binary(min_size=MIN_NEEDLE_BYTES, max_size=20).map(
    lambda word: word.replace(b"\n", b"-")
)
alike = st.text("ab", min_size=MIN_NEEDLE_BYTES, max_size=11).map(str.encode)
long = st.text("ab", min_size=250, max_size=300).map(str.encode)


@examples(200)
@given(st.data(), st.lists(alike | words, min_size=1, max_size=5) | st.lists(long, min_size=1))
def test_any_needles(picker: type[LineFilter], data: st.DataObject, needles: list[bytes]) -> None:
    """Whatever the needles are: like each other, inside each other, or very long."""
    made = data.draw(anything(needles, b"ab"), "data")
    check(picker, made, needles=needles, key=b"ab")


@given(data=anything(NEEDLES))
def test_both_pick_the_same(compiled: type[LineFilter], data: bytes) -> None:
    """The two are interchangeable."""
    ours, theirs = (
        list(kind(NEEDLES, ID_KEY).runs(bytearray(data), len(data)))
        for kind in (PythonLineFilter, compiled)
    )
    assert ours == theirs


# Single cases.


def test_nothing(picker: type[LineFilter]) -> None:
    """Of nothing, and of lines without a needle, nothing is picked."""
    for data in (
        b"",
        b"\n",
        b"\n\n\n",
        b"x" * 5_000 + b"\n",
        USAGE[:-1] + b"\n" + USAGE[1:] + b"\n",
    ):
        assert check(picker, data) == []


@pytest.mark.parametrize("needle", NEEDLES)
def test_every_place(picker: type[LineFilter], needle: bytes) -> None:
    """A needle is found wherever it stands: at the beginning, at the end, behind any line."""
    for shift in range(40):
        for data in (
            b"x" * shift + needle + b"\n",
            b"y\n" * shift + needle + b"\n",
            needle + b"x" * shift + b"\n",
            b"x" * shift + b"\n" + needle + b"\n" + needle + b"z" * shift + b"\n",
        ):
            assert check(picker, data)


def test_only_up_to_the_end(picker: type[LineFilter]) -> None:
    """What stands behind the end is not looked at, though a needle goes on over it."""
    assert check(picker, b"x\n", behind=USAGE) == []
    assert check(picker, USAGE[:-1] + b"\n", behind=b":\n") == []
    assert len(check(picker, usage(), behind=usage())) == 1


def test_copies(picker: type[LineFilter]) -> None:
    """Of copies the last, with where the first one begins and what its name is."""
    data = b"before\n" + usage() + usage(text=b"longer") + usage(b"m2")
    copies, other = check(picker, data)
    first, line, stop, name, name_end = copies
    assert data[first:line] == usage()
    assert data[line : stop + 1] == usage(text=b"longer")
    assert data[name:name_end] == ID_KEY + b'm1"'
    assert data[other[1] : other[2] + 1] == usage(b"m2")


@pytest.mark.parametrize(
    "lines",
    [
        [usage(column=3), usage(column=4)],
        [usage(), b"\n", usage()],
        [usage(), b"x\n", usage()],
        [usage(), NEEDLES[1] + b"\n", usage()],
        [usage(b"m1"), usage(b"m11")],
        [usage(text=b'}{"'), usage()],
        [usage(text=b"\0"), usage(text=b"\0")],
        [usage(), USAGE + usage()],
        [usage(column=60), USAGE + b"\n" + b"{" * (60 - len(USAGE) - 1) + ID_KEY + b'm1"\n'],
        [USAGE + usage(), USAGE + usage()],
        [USAGE + b"\n", USAGE + b"\n"],
        [ID_KEY + USAGE + b"\n", ID_KEY + USAGE + b"\n"],
    ],
    ids=range(12),
)
def test_no_copies(picker: type[LineFilter], lines: list[bytes]) -> None:
    """Another column, another name, a line between, two records in one: each line is picked."""
    wanted = [line for line in b"".join(lines).split(b"\n") if any(n in line for n in NEEDLES)]
    assert len(check(picker, b"".join(lines))) == len(wanted)


@pytest.mark.parametrize(
    "count", [BATCH_RUNS - 1, BATCH_RUNS, BATCH_RUNS + 1, 2 * BATCH_RUNS, 2 * BATCH_RUNS + 1, 5_000]
)
@pytest.mark.parametrize("copies", [1, 3])
def test_more_than_there_is_room(picker: type[LineFilter], count: int, copies: int) -> None:
    """However many there are, all are picked, and copies are kept together."""
    data = b"".join(usage(b"m%d" % number) * copies for number in range(count))
    assert len(check(picker, data)) == count


def test_one_run_without_end(picker: type[LineFilter]) -> None:
    """A run may have any number of copies."""
    assert len(check(picker, usage() * (3 * BATCH_RUNS))) == 1


def test_one_after_the_other(picker: type[LineFilter]) -> None:
    """One picker serves for any number of chunks, also two in turns."""
    one = picker(NEEDLES, ID_KEY)
    data = bytearray(usage(b"m1") + usage(b"m2"))
    turns = zip(one.runs(data, len(data)), one.runs(data, len(data)), strict=True)
    assert all(first == second for first, second in turns)


def test_data_can_grow_again(picker: type[LineFilter]) -> None:
    """When all is picked, the data is let go of."""
    data = bytearray(usage())
    list(picker(NEEDLES, ID_KEY).runs(data, len(data)))
    data += b"more"


# The compiled one.


def test_short_needle(compiled: type[LineFilter]) -> None:
    """A needle that is too short for it is refused."""
    with pytest.raises(ValueError, match="less than 8 bytes"):
        compiled([b"1234567"], ID_KEY)


def test_no_whole_lines(compiled: type[LineFilter]) -> None:
    """Lines that are not whole are refused, before anything behind them could be read."""
    data = bytearray(usage() + USAGE)
    with pytest.raises(ValueError, match="incomplete last line"):
        list(compiled(NEEDLES, ID_KEY).runs(data, len(data)))
    with pytest.raises(IndexError):
        list(compiled(NEEDLES, ID_KEY).runs(data, len(data) + 1))


@pytest.fixture
def library(compiled: type[LineFilter], tmp_path: Path) -> Path:
    """A copy of the library, with its sum."""
    shutil.copy(LIBRARY.with_suffix(".crc"), tmp_path)
    return Path(shutil.copy(LIBRARY, tmp_path))


def summed(path: Path) -> None:
    """Write the sum of a library beside it."""
    path.with_suffix(".crc").write_text(f"{zlib.crc32(path.read_bytes()):08x}")


def missing(path: Path) -> None:
    """Remove the library."""
    path.unlink()


def without_sum(path: Path) -> None:
    """Remove the library's sum."""
    path.with_suffix(".crc").unlink()


def cut(path: Path) -> None:
    """Cut the library off."""
    os.truncate(path, path.stat().st_size // 2)


def damaged(path: Path) -> None:
    """Change one bit of it."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def of_another_machine(path: Path) -> None:
    """Something that is whole, and that this machine cannot load."""
    data = bytearray(path.read_bytes())
    data[:64] = bytes(64)
    path.write_bytes(data)
    summed(path)


BREAKS = [missing, without_sum, cut, damaged, of_another_machine]


def test_load(library: Path) -> None:
    """A library that is whole is loaded."""
    assert load_library(library) is not None


@pytest.mark.parametrize("broken", BREAKS)
def test_load_nothing(library: Path, broken: Callable[[Path], None]) -> None:
    """One that is not is none."""
    broken(library)
    assert load_library(library) is None


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.usefixtures("compiled")
def test_python_instead(tmp_path: Path, broken: Callable[[Path], None]) -> None:
    """A Brimline whose library is broken picks in Python."""
    copy = tmp_path / "brimline"
    shutil.copytree(Path(brimline.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    broken(copy / "agents" / "transcripts" / LIBRARY.name)
    program = (
        "from brimline.agents.transcripts import line_filter\n"
        "print(line_filter.FASTEST_LINE_FILTER.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]},
        check=True,
    )
    assert done.stdout == "PythonLineFilter\n"


def test_none_to_make() -> None:
    """Without a library there is no compiled picker, and it says so."""

    class Without(CompiledLineFilter):
        library = None

    with pytest.raises(RuntimeError, match="no library"):
        Without(NEEDLES, ID_KEY)
