"""The calls in the lines that were picked out of a transcript.

Nearly all of those lines tell a call and nothing else. `CompiledCalls` reads them faster than the
parser does, and leaves to it whatever is in any way different; `PythonCalls` leaves it all.
"""

import ctypes
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from brimline.events import MAIN, Call
from brimline.sources.claude.parse import TranscriptParser, asked_for
from brimline.transcripts.line_filter import BATCH_RUNS, CompiledLineFilter, LineFilter, LineRun
from brimline.usage import Usage

COLUMNS, TEXTS = 7, 8
"""How many numbers are told of a call, and how many of the setting that it is in."""

_UNKNOWN, _NEW = 0, 2

Told: TypeAlias = Call | LineRun
"""A call, or lines that the parser is to read."""


class Calls(Protocol):
    """Reads what was picked."""

    def told(self, data: bytearray, end: int, parser: TranscriptParser) -> Iterable[Told]:
        """What `data[:end]` tells, which is whole lines; lines are fed before the next is asked."""
        ...


class PythonCalls:
    """Lines alone."""

    def __init__(self, picker: LineFilter) -> None:
        self._picker = picker

    def told(self, data: bytearray, end: int, parser: TranscriptParser) -> Iterable[Told]:
        """The lines."""
        return self._picker.runs(data, end)


class CompiledCalls:
    """Calls by `calls.c`, where the parser expects nothing but calls of their version."""

    def __init__(self, picker: CompiledLineFilter, key: bytes) -> None:
        self._picker = picker
        self._read = picker.function("brimline_calls")
        self._read.restype = None
        rows = (ctypes.c_uint64 * (COLUMNS * BATCH_RUNS))()
        settings = (ctypes.c_uint32 * (TEXTS * BATCH_RUNS))()
        times = (ctypes.c_double * BATCH_RUNS)()
        self._rows = memoryview(rows).cast("B").cast("Q")
        self._settings = memoryview(settings).cast("B").cast("I")
        self._times = memoryview(times).cast("B").cast("d")
        self._into = (ctypes.c_uint32(len(key)), rows, settings, times)

    def told(self, data: bytearray, end: int, parser: TranscriptParser) -> Iterator[Told]:
        """Calls, and the lines of what is none. Time is spent here: every step counts."""
        version, model, asked, thread = "", None, None, MAIN
        plain = parser.plain
        for held, count in self._picker.batches(data, end):
            self._read(held, self._picker.run_numbers, ctypes.c_size_t(count), *self._into)
            each = iter(self._rows[: COLUMNS * count].tolist())
            rows = zip(each, each, each, each, each, each, each, strict=True)
            times = self._times[:count].tolist()
            for n, (known, id, id_end, input, read, write, output) in enumerate(rows):
                if known == _NEW:
                    version, model, asked, thread = self._setting(data, n)
                if known == _UNKNOWN or version != plain:
                    yield self._picker.run(n)
                    plain = parser.plain  # it was fed
                    continue
                usage = Usage(input, read, write, output)
                name = data[id:id_end].decode()
                yield Call(name, usage, model, asked, thread, at=times[n])

    def _setting(self, data: bytearray, n: int) -> tuple[str, str | None, str | None, str]:
        """What a call is in: version, model, the model as it was asked for, thread."""
        places = iter(self._settings[TEXTS * n : TEXTS * (n + 1)])
        pairs = zip(places, places, strict=True)
        version, model, asked, agent = (data[begin:end].decode() or None for begin, end in pairs)
        wanted = asked_for(asked, model) if asked else None
        return version or "", model, wanted, agent or MAIN


def calls(picker: LineFilter, key: bytes) -> Calls:
    """The faster reading that there is for a picker."""
    return (
        CompiledCalls(picker, key)
        if isinstance(picker, CompiledLineFilter)
        else PythonCalls(picker)
    )
