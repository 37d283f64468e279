"""Terminal output of a run: the child's output, as text or unchanged, a bar below it, our lines."""

import contextlib
import os
import re
import sys
import time
from typing import Protocol

import msgspec

from brimline.agents import get_agent
from brimline.agents.content import (
    ContentReader,
    ErrorText,
    Piece,
    ReplyText,
    ToolCall,
    read_stream_line,
)
from brimline.cli.context import CommandContext, wants_colour
from brimline.cli.progress_bar import (
    Bar,
    bar_line,
    is_output_piped,
    is_same_terminal,
    status_parts,
    write_all,
    write_error,
)
from brimline.context.tracker import Reading
from brimline.context.usage import context_line
from brimline.monitor.user_rules import Rules
from brimline.redaction import redact, truncate_words
from brimline.run.iteration import RunPlan
from brimline.run.result import IterationResult
from brimline.run.run_state import RunState
from brimline.terminal.text import (
    colourize,
    encode_output,
    escape_control,
    strip_control,
    truncate,
)

READER_PAUSE_S = 0.15  # no bar for this long after output, so that `| jq` can write its own
SILENT_MODES = ("none", "json")  # values of --render without output and bar

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
            self._out.write(encode_output(text), None)


def _clean_lines(text: str) -> str:
    return "\n".join(strip_control(line.expandtabs(4)) for line in text.split("\n"))


class RunOutput:
    """Keeps the child's output, the bar and our own lines apart; a RunDisplay.

    `rules` have the levels of the colours: those of --warn, else those of the settings.
    """

    def __init__(
        self, writer: StreamWriter, bar: Bar | None, iterations: int, rules: Rules, colour: bool
    ) -> None:
        self.writer = writer
        self.colour = colour
        self._bar = bar
        self.rules = rules
        self._iterations = iterations
        self._shared = is_same_terminal()
        self._piped = is_output_piped()
        self._name = ""
        self._began = self._written = 0.0

    @property
    def is_live(self) -> bool:
        return self._bar is not None

    @property
    def renders_stream(self) -> bool:
        return isinstance(self.writer, TextRenderer)

    def start_iteration(self, iteration: int, hat: str | None) -> None:
        self._began = time.monotonic()
        if self._iterations > 1:
            self._name = f"{strip_control(hat)} {iteration}/{self._iterations}" if hat else ""
            named = f", {strip_control(hat)}" if hat else ""
            self.print_line(f"Iteration {iteration} of {self._iterations}{named}")

    def write_output(self, chunk: bytes, agent: str | None) -> None:
        if self._bar is not None and (self._shared or self._piped):
            self._bar.erase()
        self._write(chunk, agent)
        self._written = time.monotonic()
        if self._bar is not None and self._shared:
            self._bar.redraw()

    def _write(self, chunk: bytes, agent: str | None) -> None:
        """Write output; an error other than a closed pipe is reported."""
        try:
            self.writer.write(chunk, agent)
        except BrokenPipeError:
            raise
        except OSError as error:
            self.print_line(f"brimline: cannot write output: {error.strerror or error}")
            raise BrokenPipeError from error

    def update_bar(self, state: RunState) -> None:
        """Draw the bar, unless the reader of our pipe may be writing to the terminal."""
        reading = state.reading()
        if self._bar is None or reading is None:
            return
        if self._piped and time.monotonic() - self._written < READER_PAUSE_S:
            return
        details = status_parts(
            reading, state.call_count, time.monotonic() - self._began, self._name
        )
        whose = state.session_id or "", state.agent or "", state.model
        shade = self.rules.fullness_of(reading, *whose) or "dim"
        self._bar.draw(bar_line(reading, details, self._bar.width(), shade, self.colour))

    def report_level(self, level: float, reading: Reading, stops: bool) -> None:
        now = context_line(reading.sent, reading.window.tokens if reading.window else None)
        then = "; stopping the child" if stops else ""
        self.print_line(f"brimline: level {level:g} reached, {now}{then}")

    def report_unknown_window(self) -> None:
        hint = "set it under [windows] in Brimline's settings"
        self.print_line(f"brimline: the window is unknown, so no level was checked; {hint}")

    def report_rotation(self, text: str) -> None:
        self.print_line(f"brimline: {strip_control(text)}")

    def hide_bar(self) -> None:
        if self._bar is not None:
            self._bar.erase()

    def end_iteration(self) -> None:
        self.hide_bar()
        self._flush()
        if self._bar is not None:
            self._bar.clear()

    def _flush(self) -> None:
        try:
            self.writer.close()
        except OSError:
            self.writer = Discard()

    def print_line(self, text: str) -> None:
        """Print a line to standard error."""
        self.hide_bar()
        broken = self._shared and not self.writer.at_start
        write_error(("\n" if broken else "") + f"{text}\n")


def make_output(context: CommandContext, render: str | None, plan: RunPlan) -> RunOutput:
    """Return the output for --render; by default `pretty` on a terminal, else `plain`."""
    chosen = render or ("pretty" if os.isatty(1) else "plain")
    dumb = context.places.env.get("TERM", "dumb") == "dumb"
    bar = Bar() if os.isatty(2) and not dumb and chosen not in SILENT_MODES else None
    colour = wants_colour(context.settings.colour, context.places.env, sys.stderr)
    rules = Rules(plan.levels, "window") if plan.levels else Rules.of_settings(context.settings)
    return RunOutput(_make_writer(context, chosen), bar, plan.iterations, rules, colour)


def _make_writer(context: CommandContext, chosen: str) -> StreamWriter:
    if chosen in SILENT_MODES:
        return Discard()
    return TextRenderer(context.width, context.colour) if chosen == "pretty" else PassThrough()


def print_json(result: IterationResult) -> None:
    """Print a result as one line of JSON; the reader may have gone."""
    with contextlib.suppress(BrokenPipeError):
        text = escape_control(msgspec.json.encode(result).decode())
        write_all(1, f"{text}\n".encode())
