"""Selects lines of large files by the texts ("needles") that they contain.

The first needle marks a call, which a client writes once for each part of its reply. Of such copies
(consecutive lines with the same name in the same column) only the last is used.

`PythonLineFilter` is the reference. `CompiledLineFilter` does the same several times faster, if
Brimline was installed with a C compiler or from a wheel for this platform.
"""

import ctypes
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

# A run of copies, or a single line: the start of its first line, start and end of its last line,
# start and end of the first one's name (equal if it has none).
LineRun: TypeAlias = tuple[int, int, int, int, int]

LIBRARY = Path(__file__).with_name("libline_filter.so")
MIN_NEEDLE_BYTES = 8  # the longer the shortest needle is, the faster is the search
BATCH_RUNS = 2_048

_SEAM = b'}{"'
_NEWLINE = 0x0A


class LineFilter(Protocol):
    """Selects lines by needles, and copies by their names.

    A name is between `key`, such as `"id":"`, and a quote, before the first needle of the line.
    This needle must mark a call. A line that may hold more than one record is never skipped: its
    run ends with it.
    """

    def __init__(self, needles: Sequence[bytes], key: bytes) -> None: ...

    def runs(self, data: bytearray, end: int) -> Iterator[LineRun]:
        """Yield the selected lines of `data[:end]`, which must be whole lines."""
        ...


class PythonLineFilter:
    """The reference."""

    def __init__(self, needles: Sequence[bytes], key: bytes) -> None:
        self._needles = needles
        self._key = key

    def runs(self, data: bytearray, end: int) -> Iterator[LineRun]:
        run: LineRun | None = None
        for line, hit, stop in self._matching_lines(data, end):
            name = self._name(data, line, hit)
            if run and _continues_run(data, run, line, name):
                run = (run[0], line, stop, run[3], run[4])
                continue
            if run:
                yield run
            run = (line, line, stop, *name)
        if run:
            yield run

    def _matching_lines(self, data: bytearray, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, first needle and end of each line with a needle."""
        hits = [data.find(needle, 0, end) for needle in self._needles]
        start = 0
        while any(hit >= 0 for hit in hits):
            hit = min(hit for hit in hits if hit >= 0)
            stop = data.find(b"\n", hit, end)
            yield data.rfind(b"\n", start, hit) + 1 or start, hit, stop
            start = stop + 1
            for place, needle in enumerate(self._needles):
                if 0 <= hits[place] < start:
                    hits[place] = data.find(needle, start, end)

    def _name(self, data: bytearray, line: int, hit: int) -> tuple[int, int]:
        """Start and end of a line's name, with its key and its quote."""
        is_call = data.startswith(self._needles[0], hit)
        name = data.find(self._key, line, hit) if is_call else -1
        quote = data.find(b'"', name + len(self._key), hit) if name >= 0 else -1
        return (line, line) if quote < 0 else (name, quote + 1)


def _may_hold_several_records(data: bytearray, line: int, stop: int) -> bool:
    """Whether a line may be several records: glued, or with NULs of a crash between them."""
    return data.find(_SEAM, line, stop) >= 0 or data.find(0, line, stop) >= 0


def _continues_run(data: bytearray, run: LineRun, line: int, name: tuple[int, int]) -> bool:
    """Whether a line follows a run of single records and has its name in the same column."""
    first, last, stop, named, named_end = run
    return (
        line == stop + 1
        and name[1] > name[0]
        and name[0] - line == named - first
        and data[name[0] : name[1]] == data[named:named_end]
        and not _may_hold_several_records(data, last, stop)
    )


def load_library(path: Path) -> ctypes.PyDLL | None:
    """Load a library; None if it is missing, damaged or for another machine.

    Its checksum file is compared first: loading a truncated library crashes the process.
    """
    try:
        whole = b"%08x" % zlib.crc32(path.read_bytes()) == path.with_suffix(".crc").read_bytes()
        return ctypes.PyDLL(str(path)) if whole else None
    except OSError:
        return None


class CText(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("size", ctypes.c_size_t))


def c_texts(needles: Sequence[bytes]) -> "ctypes.Array[CText]":
    return (CText * len(needles))(*[CText(needle, len(needle)) for needle in needles])


class CompiledLineFilter:
    """The same by `line_filter.c`; for one thread at a time."""

    library = load_library(LIBRARY)

    def __init__(self, needles: Sequence[bytes], key: bytes) -> None:
        if min(map(len, needles)) < MIN_NEEDLE_BYTES:
            raise ValueError(f"a needle has less than {MIN_NEEDLE_BYTES} bytes: {needles}")
        if self.library is None:
            raise RuntimeError(f"no library for this machine at {LIBRARY}")
        self._find_runs = self.library.brimline_line_runs
        self._find_runs.restype = ctypes.c_size_t
        self._referenced = (*needles, key)
        numbers = (ctypes.c_uint32 * (5 * BATCH_RUNS))()
        self._numbers = memoryview(numbers).cast("B").cast("I")
        self._arguments = (
            c_texts(needles),
            ctypes.c_size_t(len(needles)),
            ctypes.byref(CText(key, len(key))),
            numbers,
            ctypes.c_size_t(BATCH_RUNS),
        )

    def runs(self, data: bytearray, end: int) -> Iterator[LineRun]:
        if end and data[end - 1] != _NEWLINE:
            raise ValueError(f"incomplete last line: byte {end - 1} is not a newline")
        c_data = (ctypes.c_char * len(data)).from_buffer(data)
        start, count = 0, BATCH_RUNS
        while count == BATCH_RUNS:
            count = self._find_runs(
                c_data, ctypes.c_size_t(start), ctypes.c_size_t(end), *self._arguments
            )
            numbers = iter(self._numbers[: 5 * count].tolist())
            for run in zip(numbers, numbers, numbers, numbers, numbers, strict=True):
                yield run
                start = run[2] + 1


FASTEST_LINE_FILTER: type[LineFilter] = (
    PythonLineFilter if CompiledLineFilter.library is None else CompiledLineFilter
)
