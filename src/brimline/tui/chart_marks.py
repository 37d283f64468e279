"""What happened beside the calls of a thread, and after which call: the marks of its chart."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from brimline.events import MAIN
from brimline.store.rows import CallRow, SignalRow
from brimline.terminal.text import strip_control
from brimline.tui.api_types import Timeline
from brimline.usage import format_tokens

SIGNS = {
    "compaction": "▲",
    "level": "l",
    "message": "m",
    "handoff": "h",
    "clear": "c",
    "model": "s",
    "signal": "!",
}
"""How each kind is marked below the chart; a compaction is marked on its axis."""

SEVERAL = "*"


class Mark(msgspec.Struct, frozen=True):
    """Something that happened after so many calls; `at` is None where that is not told."""

    after: int
    kind: str
    text: str
    at: float | None = None


def marks(told: Timeline, thread: str) -> list[Mark]:
    """The marks of a thread, in their order; messages and documents are the session's own."""
    calls = [call for call in told.calls if call.thread == thread]
    found = [*_compactions(told, thread, calls), *_switches(calls), *_signals(told, thread, calls)]
    if thread == MAIN:
        found += [*_messages(told, calls), *_handoffs(told, calls)]
    return sorted(found, key=lambda mark: mark.after)


def line(found: Sequence[Mark], calls: int, columns: int) -> str:
    """One line with a sign for each mark at its column of the chart; compactions stand above it."""
    signs = [" "] * columns
    for mark in found:
        if mark.kind != "compaction" and calls:
            column = min(columns - 1, mark.after * columns // calls)
            signs[column] = SIGNS[mark.kind] if signs[column] == " " else SEVERAL
    return "".join(signs)


def _compactions(told: Timeline, thread: str, calls: Sequence[CallRow]) -> Iterator[Mark]:
    for made in told.compactions:
        if made.thread != thread:
            continue
        after = sum(call.cycle <= made.cycle for call in calls)
        notes = [made.trigger, "inferred" if made.inferred else None]
        told_so = "".join(f" ({strip_control(note)})" for note in notes if note)
        text = f"compaction {_tokens(made.before)} -> {_tokens(made.after)}{told_so}"
        yield Mark(after, "compaction", text, made.at)


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else format_tokens(count)


def _switches(calls: Sequence[CallRow]) -> Iterator[Mark]:
    before: str | None = None
    for number, call in enumerate(calls):
        if call.model is not None and before not in (None, call.model):
            yield Mark(number, "model", f"switched to {strip_control(call.model)}", call.at)
        before = call.model or before


def _signals(told: Timeline, thread: str, calls: Sequence[CallRow]) -> Iterator[Mark]:
    for signal in told.signals:
        if signal.thread == thread and signal.kind not in ("compacting", "compacted"):
            kind = {"level": "level", "cleared": "clear"}.get(signal.kind, "signal")
            yield Mark(_after(calls, signal.at), kind, _said(signal), signal.at)


def _said(signal: SignalRow) -> str:
    if signal.kind == "level":
        reached = "" if signal.percent is None else f" at {signal.percent:.1f}%"
        return f"level {signal.level:g} reached{reached}"
    return signal.kind


def _messages(told: Timeline, calls: Sequence[CallRow]) -> Iterator[Mark]:
    for message in told.messages or ():
        if message.state == "delivered" and message.handed_at is not None:
            text = f"message delivered, from {strip_control(message.sender)}"
            yield Mark(_after(calls, message.handed_at), "message", text, message.handed_at)


def _handoffs(told: Timeline, calls: Sequence[CallRow]) -> Iterator[Mark]:
    for document in told.handoffs:
        what = "draft of a handoff" if document.draft else "handoff"
        text = f"{what} {strip_control(PurePath(document.path).name)}"
        yield Mark(_after(calls, document.at), "handoff", text, document.at)


def _after(calls: Sequence[CallRow], at: float) -> int:
    """How many calls there were by then, by the producer's own times."""
    return bisect_right([call.at for call in calls if call.at is not None], at)
