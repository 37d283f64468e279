"""events.jsonl: a row for each iteration, among the rows of others."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.errors import InvalidSettings, UnreadableTranscript
from brimline.file_lock import lock_file
from brimline.run.result import Iteration
from brimline.transcripts.lines import MALFORMED, Lines, open_transcript
from brimline.usage import percent

TOPIC = "iteration.summary"


class Figures(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The figures of an iteration, as Ralph names them; what is unknown is absent.

    The four counts are what was billed; `context_tokens` is what the last call sent, `context_pct`
    its share of the window. `peak_context_tokens`, `exit_code` and `ended` are ours.
    """

    duration_ms: int | None = None
    cost_usd: float | None = None
    num_turns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    context_window: int | None = None
    context_tokens: int | None = None
    context_pct: float | None = None
    peak_context_tokens: int | None = None
    exit_code: int | None = None
    ended: str | None = None


class Row(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A row of events.jsonl: Ralph's shape, with the figures as its payload.

    `input_tokens` and `context_utilization_pct` are the design's own: what the last call sent, and
    its share of the window.
    """

    ts: str
    iteration: int = 0
    hat: str | None = None
    topic: str
    payload: Figures | str | None = None
    input_tokens: int | None = None
    context_utilization_pct: float | None = None

    @property
    def figures(self) -> Figures:
        """The payload; Ralph itself writes it as a text that is JSON."""
        if isinstance(self.payload, str):
            return msgspec.json.decode(self.payload, type=Figures)
        return self.payload or Figures()


class _Kind(msgspec.Struct, frozen=True):
    topic: str | None = None


_kind = msgspec.json.Decoder(_Kind)
_row = msgspec.json.Decoder(Row)


def row_of(made: Iteration, at: float | None = None) -> Row:
    """The row of an iteration."""
    share = percent(made.context_tokens, made.context_window)
    figures = Figures(
        duration_ms=made.duration_ms,
        cost_usd=made.total_cost_usd,
        num_turns=made.num_turns,
        input_tokens=made.input_tokens,
        output_tokens=made.output_tokens,
        cache_read_tokens=made.cache_read_tokens,
        cache_write_tokens=made.cache_write_tokens,
        context_window=made.context_window,
        context_tokens=made.context_tokens,
        context_pct=share,
        peak_context_tokens=made.peak_context_tokens,
        exit_code=made.exit_code,
        ended=made.ended,
    )
    return Row(
        ts=_iso(time.time() if at is None else at),
        iteration=made.iteration,
        hat=made.hat,
        topic=TOPIC,
        payload=figures,
        input_tokens=made.context_tokens,
        context_utilization_pct=share,
    )


def _iso(at: float) -> str:
    millis = int(at * 1_000) % 1_000
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{millis:03}Z"


def ready(path: Path) -> None:
    """Make sure, before anything is run, that rows can be written; InvalidSettings where not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_opened(path))
    except OSError as error:
        problem = f"cannot write {path}: {error.strerror or error}"
        raise InvalidSettings("argument", "events", problem) from error


def append(path: Path, row: Row) -> None:
    """Add a row in one write, on a line of its own, also where the last line has no end."""
    line = msgspec.json.encode(row) + b"\n"
    file = _opened(path)
    try:
        lock_file(file)
        os.write(file, line if _at_line_start(file) else b"\n" + line)
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _at_line_start(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def summaries(path: Path) -> Iterator[Row]:
    """The rows of iterations in a file; other rows and malformed lines are passed over."""
    try:
        with open_transcript(str(path)) as file:
            lines = Lines(file)
            yield from (row for line in lines if (row := _summary(line)) is not None)
            if (row := _summary(lines.rest)) is not None:
                yield row
    except OSError as error:
        raise UnreadableTranscript(str(path), error.strerror or str(error)) from error


def _summary(line: bytes) -> Row | None:
    try:
        if _kind.decode(line).topic != TOPIC:
            return None
        row = _row.decode(line)
        return msgspec.structs.replace(row, payload=row.figures)
    except MALFORMED:
        return None
