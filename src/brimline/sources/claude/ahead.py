"""What stands behind a place of a transcript, told without reading it: `ahead.c`.

An agent waits for its hook, and what most hooks find is one more call that nobody has anything to
say about. That is seen here; where it is anything else, the transcript is read.
"""

import ctypes
import os
from collections.abc import Callable

from brimline.sources.claude.parse import TranscriptParser
from brimline.sources.claude.quick import ID, NEEDLES
from brimline.transcripts.line_filter import CompiledLineFilter, CText, c_texts
from brimline.transcripts.source import Ahead, Cursor, Expected, Look

LOOKS: tuple[Look, ...] = ("nothing", "calls", "unsure")
_SOUGHT = (c_texts(NEEDLES), ctypes.c_size_t(len(NEEDLES)), ctypes.byref(CText(ID, len(ID))))
"""What tells the lines that matter, and what stands before a call's id."""


class _Place(ctypes.Structure):
    """A place, and what is expected behind it."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("file", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("version", CText),
        ("model", CText),
        ("asked", CText),
        ("sent", ctypes.c_uint64),
        ("most", ctypes.c_uint64),
    )


class _Compiled:
    """A place that `ahead.c` looks behind."""

    def __init__(self, look: Callable[..., int], place: _Place) -> None:
        self._look = look
        self._place = place
        self._asked = (ctypes.byref(place), *_SOUGHT)

    def look(self) -> Look:
        """What was written since the last look."""
        return LOOKS[self._look(*self._asked)]


def ahead(path: str, file: int, cursor: Cursor, expected: Expected) -> Ahead | None:
    """A place that is looked behind; None where nothing is compiled, or every record matters."""
    library, version = CompiledLineFilter.library, TranscriptParser(cursor.carry).plain
    last = expected.last
    if library is None or version is None or last.model is None or expected.most < 0:
        return None
    place = _Place(
        os.fsencode(path),
        file,
        cursor.offset,
        _text(version),
        _text(last.model),
        _text(last.asked_for or ""),
        last.usage.sent,
        expected.most,
    )
    return _Compiled(library.brimline_ahead, place)


def _text(text: str) -> CText:
    encoded = text.encode()
    return CText(encoded, len(encoded))
