"""The events of `codex exec --json`."""

from collections.abc import Sequence

import msgspec

from brimline.agents.codex.records import QUIET_LINES, CodexTokens, Printed
from brimline.errors import InvalidUsage
from brimline.events import AnyEvent, SessionSeen, Spent
from brimline.usage import ZERO, Usage

_printed = msgspec.json.Decoder(Printed)
_tokens = msgspec.json.Decoder(CodexTokens)


class _Memory(msgspec.Struct):
    thread: str | None = None
    total: Usage = ZERO


class CodexStreamParser:
    """Turns the lines of a run, or of several runs one after the other, into events.

    A turn's usage is the total of its thread, over every call since the thread began, compactions
    too, and nothing in the stream tells how many they were: it is spent, and no occupancy.
    """

    def __init__(self, carry: bytes = b"") -> None:
        self._memory = msgspec.json.decode(carry, type=_Memory) if carry else _Memory()

    def carry(self) -> bytes:
        return msgspec.json.encode(self._memory)

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _printed.decode(record)
        if line.type == "turn.completed":
            return self._turn(_tokens.decode(line.usage).usage())
        if line.type == "thread.started":
            return self._thread(line.thread_id)
        return () if line.type in QUIET_LINES else None

    def _thread(self, thread: str | None) -> Sequence[AnyEvent]:
        if thread != self._memory.thread:
            self._memory = _Memory(thread)
        return (SessionSeen(session=thread, agent="codex", records_compactions=False),)

    def _turn(self, total: Usage) -> Sequence[AnyEvent]:
        spent = grown(self._memory.total, total)
        self._memory.total = total
        return (Spent(usage=spent),) if spent.held else ()


def grown(before: Usage, total: Usage) -> Usage:
    """By how much a running total grew; all of it where it fell, for then it began anew."""
    try:
        return total - before
    except InvalidUsage:
        return total
