"""An agent's JSON stream as text for people; whatever is no stream goes through as it is."""

import re
from typing import Protocol

from brimline.agents.content import (
    ContentReader,
    ErrorText,
    Piece,
    ReplyText,
    ToolCall,
    content_reader,
    read_stream_line,
)
from brimline.cli.progress_bar import put
from brimline.terminal.text import colourize, strip_control, truncate

_PIECE = re.compile(rb"[^\n]*\n|[^\n]+")


class Outlet(Protocol):
    """Where a child's output goes."""

    @property
    def at_start(self) -> bool:
        """Whether what was written last ended its line."""
        ...

    def write(self, chunk: bytes, agent: str | None) -> None:
        """Take some output; `agent` is whose stream it is, if it is one."""
        ...

    def close(self) -> None:
        """There is no more."""
        ...


class Through:
    """Byte for byte, at once."""

    def __init__(self) -> None:
        self.at_start = True

    def write(self, chunk: bytes, agent: str | None) -> None:
        """Pass it on."""
        put(1, chunk)
        self.at_start = chunk.endswith(b"\n")

    def close(self) -> None:
        """Nothing is held back."""


class Nowhere:
    """Shows nothing of it."""

    at_start = True

    def write(self, chunk: bytes, agent: str | None) -> None:
        """Drop it."""

    def close(self) -> None:
        """Nothing is held back."""


class Pretty:
    """Readable text: what the agent says, which tools it uses, what went wrong.

    A line that begins as a JSON object is held back until it is whole; any other is passed on at
    once, as is a JSON line of nobody's stream.
    """

    def __init__(self, width: int, colour: bool) -> None:
        self._width, self._colour = width, colour
        self._out = Through()
        self._held = b""
        self._speaking = False
        self._reader: ContentReader | None = None

    @property
    def at_start(self) -> bool:
        """Whether what was written last ended its line."""
        return self._out.at_start

    def write(self, chunk: bytes, agent: str | None) -> None:
        """Take some output."""
        for piece in _PIECE.findall(chunk):
            self._piece(piece, agent)

    def close(self) -> None:
        """Show what is held back as it is; end the last line. What comes next is another run's."""
        held, self._held, self._reader = self._held, b"", None
        if held:
            self._raw(held)
        self._end_speech()

    def _piece(self, piece: bytes, agent: str | None) -> None:
        """A line, or a part of one."""
        inside = not self._held and not self.at_start and not self._speaking
        held = self._held + piece
        if inside or not held.lstrip().startswith(b"{"):
            self._held = b""
            self._raw(held)
        elif held.endswith(b"\n"):
            self._held = b""
            self._line(held, agent)
        else:
            self._held = held

    def _line(self, line: bytes, agent: str | None) -> None:
        if agent is None:
            self._raw(line)
            return
        if self._reader is None:
            self._reader = content_reader(agent)
        for piece in read_stream_line(self._reader, line):
            self._show(piece)

    def _show(self, piece: Piece) -> None:
        match piece:
            case ReplyText(text):
                if not piece.is_continuation:
                    self._end_speech()
                self._text(_lines(text))
                self._speaking = not self.at_start
                if not piece.is_partial:
                    self._end_speech()
            case ToolCall():
                self._end_speech()
                line = strip_control(f"› {piece.tool}  {piece.summary}".rstrip())
                self._text(colourize(truncate(line, self._width), "dim", self._colour) + "\n")
            case ErrorText(text):
                self._end_speech()
                self._text(colourize(f"! {_lines(text)}", "high", self._colour) + "\n")
            case _:
                pass

    def _end_speech(self) -> None:
        if self._speaking:
            self._speaking = False
            self._text("\n")

    def _raw(self, data: bytes) -> None:
        self._end_speech()
        self._out.write(data, None)

    def _text(self, text: str) -> None:
        if text:
            self._out.write(text.encode("utf-8", "replace"), None)


def _lines(text: str) -> str:
    """Text of several lines without anything that a terminal would obey."""
    return "\n".join(strip_control(line.expandtabs(4)) for line in text.split("\n"))
