"""Files that Ralph shares with us: rows of events.jsonl, a loop's figures by them, its settings."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from brimline.agents.transcripts.lines import Lines, open_transcript
from brimline.agents.transcripts.source import MALFORMED
from brimline.context.usage import percent
from brimline.errors import InvalidSettings, UnreadableTranscript
from brimline.files.file_lock import lock_file
from brimline.files.foreign_json import JsonDecoder, decode_json
from brimline.files.regular_file import read_regular_file
from brimline.run.result import IterationResult

TOPIC = "iteration.summary"


class IterationFigures(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The figures of an iteration, named as Ralph names them; unknown ones are absent.

    The four counts are what was billed; `context_tokens` is what the last call sent, `context_pct`
    its share of the window. `peak_context_tokens`, `exit_code` and `ended` are our additions.
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


class EventRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A row of events.jsonl: Ralph's shape, with the figures as its payload.

    `input_tokens` and `context_utilization_pct` are what the last call sent, and its share of the
    window.
    """

    ts: str
    iteration: int = 0
    hat: str | None = None
    topic: str
    payload: IterationFigures | str | None = None
    input_tokens: int | None = None
    context_utilization_pct: float | None = None

    @property
    def figures(self) -> IterationFigures:
        """The payload; Ralph itself writes it as a string of JSON."""
        if isinstance(self.payload, str):
            return decode_json(self.payload, IterationFigures)
        return self.payload or IterationFigures()


class _RowTopic(msgspec.Struct, frozen=True):
    topic: str | None = None


_topic = JsonDecoder(_RowTopic)
_row = JsonDecoder(EventRow)


def make_row(result: IterationResult, at: float | None = None) -> EventRow:
    share = percent(result.context_tokens, result.context_window)
    figures = IterationFigures(
        duration_ms=result.duration_ms,
        cost_usd=result.total_cost_usd,
        num_turns=result.num_turns,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        cache_read_tokens=result.cache_read_tokens,
        cache_write_tokens=result.cache_write_tokens,
        context_window=result.context_window,
        context_tokens=result.context_tokens,
        context_pct=share,
        peak_context_tokens=result.peak_context_tokens,
        exit_code=result.exit_code,
        ended=result.ended,
    )
    return EventRow(
        ts=_iso(time.time() if at is None else at),
        iteration=result.iteration,
        hat=result.hat,
        topic=TOPIC,
        payload=figures,
        input_tokens=result.context_tokens,
        context_utilization_pct=share,
    )


def _iso(at: float) -> str:
    millis = int(at * 1_000) % 1_000
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{millis:03}Z"


def ensure_writable(path: Path) -> None:
    """Check, before anything is run, that rows can be written. Raises InvalidSettings."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_open(path))
    except OSError as error:
        reason = f"cannot write {path}: {error.strerror or error}"
        raise InvalidSettings("argument", "events", reason) from error


def append_row(path: Path, row: EventRow) -> None:
    """Append a row on a line of its own in one write, even if the last line has no end."""
    line = msgspec.json.encode(row) + b"\n"
    file = _open(path)
    try:
        lock_file(file)
        os.write(file, line if _at_line_start(file) else b"\n" + line)
    finally:
        os.close(file)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _at_line_start(file: int) -> bool:
    size = os.fstat(file).st_size
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def read_rows(path: Path) -> Iterator[EventRow]:
    """Yield the rows of iterations in a file; other rows and malformed lines are skipped."""
    try:
        with open_transcript(str(path)) as file:
            lines = Lines(file)
            yield from (row for line in lines if (row := _decode_row(line)) is not None)
            if (row := _decode_row(lines.rest)) is not None:
                yield row
    except OSError as error:
        raise UnreadableTranscript(str(path), error.strerror or str(error)) from error


def _decode_row(line: bytes) -> EventRow | None:
    try:
        if _topic.decode(line).topic != TOPIC:
            return None
        row = _row.decode(line)
        return msgspec.structs.replace(row, payload=row.figures)
    except MALFORMED:
        return None


class HatStats(msgspec.Struct, frozen=True):
    """Context of a hat's last iteration, and of its fullest one.

    An iteration without figures counts in `iterations` alone.
    """

    hat: str | None
    iterations: int
    last_context_tokens: int | None
    last_context_window: int | None
    last_pct: float | None
    peak_context_tokens: int | None
    peak_context_window: int | None
    peak_pct: float | None


class LoopStats(msgspec.Struct, frozen=True):
    """Each hat in the order of its first iteration, and all iterations together."""

    hats: list[HatStats]
    overall: HatStats


def loop_stats(rows: Iterable[EventRow]) -> LoopStats:
    all_rows = list(rows)
    names = dict.fromkeys(row.hat for row in all_rows)
    hats = [_hat_stats(name, [row for row in all_rows if row.hat == name]) for name in names]
    return LoopStats(hats, _hat_stats(None, all_rows))


def _hat_stats(hat: str | None, rows: list[EventRow]) -> HatStats:
    known = [row.figures for row in rows if row.figures.context_tokens is not None]
    last = known[-1] if known else IterationFigures()
    fullest = max(known, key=_peak, default=IterationFigures())
    peak = _peak(fullest) or None
    return HatStats(
        hat=hat,
        iterations=len(rows),
        last_context_tokens=last.context_tokens,
        last_context_window=last.context_window,
        last_pct=percent(last.context_tokens, last.context_window),
        peak_context_tokens=peak,
        peak_context_window=fullest.context_window,
        peak_pct=percent(peak, fullest.context_window),
    )


def _peak(figures: IterationFigures) -> int:
    """The most that an iteration sent; Ralph's own rows have `context_tokens` alone."""
    return max(figures.peak_context_tokens or 0, figures.context_tokens or 0)


SECTION, KEY = "event_loop", "context_window_tokens"

_FIELD = re.compile(r"(\s*)(['\"]?)([\w<.-]+)\2:(?:\s+(.*))?")
_EMPTY_VALUES = ("", "~", "null")


def read_window(path: Path) -> int | None:
    """The window that a Ralph configuration sets, its one key that we use, or None.

    Only Ralph's own layout is read: one key a line, indented below its section. Raises
    InvalidSettings with the line that is written differently.
    """
    for place, name, value in _section_fields(path):
        if name == "<<":
            raise InvalidSettings(
                place, SECTION, "expected plain keys: merge keys (<<) are not supported"
            )
        if name == KEY and value not in _EMPTY_VALUES:
            if not re.fullmatch(r"0*[1-9][0-9]*", value):
                reason = f"expected a whole number above 0: got {value!r}"
                raise InvalidSettings(place, f"{SECTION}.{KEY}", reason)
            return int(value)
    return None


def _section_fields(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield place, name and value of the section's direct keys."""
    inside, depth = False, ""
    for number, line in enumerate(_read_lines(path), 1):
        field = _FIELD.fullmatch(line.split(" #")[0].rstrip())
        if field is None:
            continue
        place, value = f"{path}:{number}", field[4] or ""
        if not field[1]:
            inside, depth = field[3] == SECTION, ""
            if inside and value not in _EMPTY_VALUES:
                raise InvalidSettings(place, SECTION, f"expected one key per line: got {value!r}")
        elif inside and "\t" in field[1]:
            raise InvalidSettings(place, SECTION, "expected indentation by spaces: got a tab")
        elif inside and field[1] == (depth := depth or field[1]):
            yield place, field[3], value


def _read_lines(path: Path) -> list[str]:
    try:
        return read_regular_file(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
