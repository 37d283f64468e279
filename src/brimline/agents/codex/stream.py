"""The events of `codex exec --json`."""

from collections.abc import Sequence

from brimline.agents.codex.records import QUIET_LINES, CodexTokens, Printed
from brimline.context.events import AnyEvent, SessionSeen, Spent
from brimline.context.usage import ZERO, Usage
from brimline.errors import InvalidUsage
from brimline.files.foreign_json import JsonDecoder

_printed = JsonDecoder(Printed)
_tokens = JsonDecoder(CodexTokens)


class CodexStreamParser:
    """Turns the lines of a run, or of several runs one after the other, into events.

    A turn's usage is the total of its thread: all calls since the thread began, compactions too.
    The stream does not say how many they were, so it is reported as spent, not as occupancy.
    """

    def __init__(self) -> None:
        self._thread: str | None = None
        self._total = ZERO

    def carry(self) -> bytes:
        return b""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _printed.decode(record)
        if line.type == "turn.completed":
            return self._end_turn(_tokens.decode(line.usage).usage())
        if line.type == "thread.started":
            if line.thread_id != self._thread:
                self._thread, self._total = line.thread_id, ZERO
            return (SessionSeen(session=line.thread_id, agent="codex", records_compactions=False),)
        return () if line.type in QUIET_LINES else None

    def _end_turn(self, total: Usage) -> Sequence[AnyEvent]:
        try:
            spent = total - self._total
        except InvalidUsage:  # the total fell: it began again
            spent = total
        self._total = total
        return (Spent(usage=spent),) if spent.held else ()
