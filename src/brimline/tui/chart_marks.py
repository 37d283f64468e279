"""The marks of a thread's chart: compactions, levels, messages, handoffs, model switches."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from brimline.context.events import MAIN
from brimline.context.policy.levels import describe_level
from brimline.context.usage import format_percent, format_tokens
from brimline.store.rows import CallRow, SignalRow
from brimline.terminal.text import strip_control
from brimline.tui.api_types import WatchedTimeline

# The line below the chart shows these; a compaction is marked on the axis.
SYMBOLS = {
    "compaction": "▲",
    "level": "l",
    "message": "m",
    "handoff": "h",
    "clear": "c",
    "model": "s",
    "signal": "!",
}
SEVERAL_SYMBOL = "*"


class ChartMark(msgspec.Struct, frozen=True):
    """Something that happened after `calls_before` calls; `at` is None if the time is unknown."""

    calls_before: int
    kind: str
    text: str
    at: float | None = None


def find_marks(timeline: WatchedTimeline, thread: str) -> list[ChartMark]:
    """The marks of a thread in order; messages and handoffs belong to the main thread."""
    calls = [call for call in timeline.calls if call.thread == thread]
    marks = [
        *_compaction_marks(timeline, thread, calls),
        *_model_marks(calls),
        *_signal_marks(timeline, thread, calls),
    ]
    if thread == MAIN:
        marks += [*_message_marks(timeline, calls), *_handoff_marks(timeline, calls)]
    return sorted(marks, key=lambda mark: mark.calls_before)


def symbol_line(marks: Sequence[ChartMark], calls: int, columns: int) -> str:
    """A line with the symbol of each mark, except compactions, at its column of the chart."""
    symbols = [" "] * columns
    for mark in marks:
        if mark.kind != "compaction" and calls:
            column = min(columns - 1, mark.calls_before * columns // calls)
            symbols[column] = SYMBOLS[mark.kind] if symbols[column] == " " else SEVERAL_SYMBOL
    return "".join(symbols)


def _compaction_marks(
    timeline: WatchedTimeline, thread: str, calls: Sequence[CallRow]
) -> Iterator[ChartMark]:
    for compaction in timeline.compactions:
        if compaction.thread != thread:
            continue
        after = sum(call.cycle <= compaction.cycle for call in calls)
        notes = [compaction.trigger, "inferred" if compaction.inferred else None]
        suffix = "".join(f" ({strip_control(note)})" for note in notes if note)
        text = f"compaction {_tokens(compaction.before)} -> {_tokens(compaction.after)}{suffix}"
        yield ChartMark(after, "compaction", text, compaction.at)


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else format_tokens(count)


def _model_marks(calls: Sequence[CallRow]) -> Iterator[ChartMark]:
    before: str | None = None
    for number, call in enumerate(calls):
        if call.model is not None and before not in (None, call.model):
            yield ChartMark(number, "model", f"switched to {strip_control(call.model)}", call.at)
        before = call.model or before


def _signal_marks(
    timeline: WatchedTimeline, thread: str, calls: Sequence[CallRow]
) -> Iterator[ChartMark]:
    for signal in timeline.signals:
        if signal.thread == thread and signal.kind not in ("compacting", "compacted"):
            kind = {"level": "level", "cleared": "clear"}.get(signal.kind, "signal")
            yield ChartMark(_calls_before(calls, signal.at), kind, _signal_text(signal), signal.at)


def _signal_text(signal: SignalRow) -> str:
    if signal.kind == "level":
        reached = "" if signal.percent is None else f" at {format_percent(signal.percent)}"
        verb = "expected" if signal.text else "reached"
        return f"{describe_level(signal.level)} {verb}{reached}"
    return signal.kind


def _message_marks(timeline: WatchedTimeline, calls: Sequence[CallRow]) -> Iterator[ChartMark]:
    for message in timeline.messages or ():
        if message.state == "delivered" and message.handed_at is not None:
            text = f"message delivered, from {strip_control(message.sender)}"
            yield ChartMark(
                _calls_before(calls, message.handed_at), "message", text, message.handed_at
            )


def _handoff_marks(timeline: WatchedTimeline, calls: Sequence[CallRow]) -> Iterator[ChartMark]:
    for handoff in timeline.handoffs:
        kind = "handoff draft" if handoff.draft else "handoff"
        text = f"{kind} {strip_control(PurePath(handoff.path).name)}"
        yield ChartMark(_calls_before(calls, handoff.at), "handoff", text, handoff.at)


def _calls_before(calls: Sequence[CallRow], at: float) -> int:
    """The number of calls up to a time, by the client's timestamps."""
    return bisect_right([call.at for call in calls if call.at is not None], at)
