"""Render an agent's JSON stream as text; other output passes through unchanged."""

import re
from typing import Protocol

from brimline.agents import get_agent
from brimline.agents.content import (
    ContentReader,
    ErrorText,
    Piece,
    ReplyText,
    ToolCall,
    read_stream_line,
)
from brimline.cli.progress_bar import write_all
from brimline.redaction import redact, truncate_words
from brimline.terminal.text import colourize, strip_control, truncate

MAX_SUMMARY_CHARS = 4_000  # of a tool call: the line of a terminal shows less

_PIECE = re.compile(rb"[^\n]*\n|[^\n]+")


class StreamWriter(Protocol):
    """Where a child's output goes."""

    @property
    def at_start(self) -> bool:
        """Whether the last write ended its line."""
        ...

    def write(self, chunk: bytes, agent: str | None) -> None:
        """Write output; `agent` is set if it is that agent's JSON stream."""
        ...

    def close(self) -> None: ...


class PassThrough:
    def __init__(self) -> None:
        self.at_start = True

    def write(self, chunk: bytes, agent: str | None) -> None:
        write_all(1, chunk)
        self.at_start = chunk.endswith(b"\n")

    def close(self) -> None:
        pass


class Discard:
    at_start = True

    def write(self, chunk: bytes, agent: str | None) -> None:
        pass

    def close(self) -> None:
        pass


class TextRenderer:
    """Renders replies, tool calls and errors as text; replies pass through as the agent wrote them.

    A line that begins like a JSON object is held back until it is complete; others pass through at
    once, as do JSON lines that are not an agent's.
    """

    def __init__(self, width: int, colour: bool) -> None:
        self._width, self._colour = width, colour
        self._out = PassThrough()
        self._held = b""
        self._in_reply = False
        self._reader: ContentReader | None = None

    @property
    def at_start(self) -> bool:
        return self._out.at_start

    def write(self, chunk: bytes, agent: str | None) -> None:
        for piece in _PIECE.findall(chunk):
            self._write_piece(piece, agent)

    def close(self) -> None:
        """Write the incomplete line unchanged, and end the last line; the next run may follow."""
        held, self._held, self._reader = self._held, b"", None
        if held:
            self._write_raw(held)
        self._end_reply()

    def _write_piece(self, piece: bytes, agent: str | None) -> None:
        inside = not self._held and not self.at_start and not self._in_reply
        held = self._held + piece
        if inside or not held.lstrip().startswith(b"{"):
            self._held = b""
            self._write_raw(held)
        elif held.endswith(b"\n"):
            self._held = b""
            self._render_line(held, agent)
        else:
            self._held = held

    def _render_line(self, line: bytes, agent: str | None) -> None:
        if agent is None:
            self._write_raw(line)
            return
        if self._reader is None:
            self._reader = get_agent(agent).content_reader()
        for piece in read_stream_line(self._reader, line):
            self._render(piece)

    def _render(self, piece: Piece) -> None:
        match piece:
            case ReplyText(text):
                if not piece.is_continuation:
                    self._end_reply()
                self._write_text(_clean_lines(text))
                self._in_reply = not self.at_start
                if not piece.is_partial:
                    self._end_reply()
            case ToolCall():
                self._end_reply()
                summary = " ".join(redact(truncate_words(piece.summary, MAX_SUMMARY_CHARS)).split())
                line = strip_control(f"› {piece.tool}  {summary}".rstrip())
                self._write_text(colourize(truncate(line, self._width), "dim", self._colour) + "\n")
            case ErrorText(text):
                self._end_reply()
                shown = f"! {_clean_lines(redact(text))}"
                self._write_text(colourize(shown, "high", self._colour) + "\n")
            case _:
                pass

    def _end_reply(self) -> None:
        if self._in_reply:
            self._in_reply = False
            self._write_text("\n")

    def _write_raw(self, data: bytes) -> None:
        self._end_reply()
        self._out.write(data, None)

    def _write_text(self, text: str) -> None:
        if text:
            self._out.write(text.encode("utf-8", "replace"), None)


def _clean_lines(text: str) -> str:
    return "\n".join(strip_control(line.expandtabs(4)) for line in text.split("\n"))
