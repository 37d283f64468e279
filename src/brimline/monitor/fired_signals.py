"""Which signals of a session have fired: each fires once per cycle, until it is re-armed."""

from collections.abc import Iterable, Sequence

import msgspec

from brimline.context.events import MAIN
from brimline.context.policy.levels import calls_figure, rearm_threshold
from brimline.context.policy.signals import THRASH_WINDOW_S, Signal
from brimline.store.rows import HandoffRow, SignalRow

NONE: frozenset[float] = frozenset()
COMPACTED = (MAIN, "compacted")

# The cycles of a thread whose signals are held in memory. A cycle goes back only if its file is
# replaced; a signal that fires again has no effect in the store.
MAX_CYCLES = 16


class SignalHistory:
    """The signals of one session. A handoff re-arms the levels of its cycle.

    A level fires again only after the figure drops below it and rises again. `handoff` is the last
    document, without its text. `handoff_pending`: the session has not received it since the last
    compaction.
    """

    def __init__(
        self, signals: Iterable[SignalRow] = (), handoffs: Iterable[HandoffRow] = ()
    ) -> None:
        self._levels: dict[tuple[str, int, int], frozenset[float]] = {}
        self._fired_kinds: set[tuple[str, int, str]] = set()
        # By cycle, and whether it is of calls left: re-armed levels up to this may not fire.
        self._thresholds: dict[tuple[int, bool], float] = {}
        rows = list(handoffs)
        self.handoff = _without_text(rows[0]) if rows else None
        self._handoff_cycles = [row.cycle for row in rows if not row.draft]
        self.compactions: list[float] = []
        for row in signals:
            self._record(row.thread, Signal(row.kind, row.cycle, row.level), row.at, row.arm)
            if row.kind == "level" and row.arm < self.rearm_count(row.thread, row.cycle):
                self._raise_thresholds(row.cycle, [row.level])
        ended = max(
            (cycle for of, cycle, kind in self._fired_kinds if (of, kind) == COMPACTED), default=-1
        )
        written = [row for row in rows if row.cycle <= ended or row.at <= self.compacted_at]
        self.handoff_pending = any((row.used_at or 0.0) < self.compacted_at for row in written[:1])

    @property
    def compacted_at(self) -> float:
        """When the main thread was last compacted; 0: never."""
        return max(self.compactions, default=0.0)

    def record(self, thread: str, signals: Iterable[Signal], at: float) -> None:
        for each in signals:
            self._record(thread, each, at, self.rearm_count(thread, each.cycle))

    def _record(self, thread: str, signal: Signal, at: float, arm: int) -> None:
        self._fired_kinds.add((thread, signal.cycle, signal.kind))
        if signal.kind == "level":
            key = (thread, signal.cycle, arm)
            self._levels[key] = self._levels.get(key, NONE) | {signal.level}
        elif signal.kind == "compacted" and thread == MAIN:
            self.compactions.append(at)
        if signal.kind in ("compacted", "cleared"):
            self._drop_cycles(thread, signal.cycle - MAX_CYCLES)

    def _drop_cycles(self, thread: str, before: int) -> None:
        if before <= 0:
            return
        self._fired_kinds = {
            key for key in self._fired_kinds if key[0] != thread or key[1] >= before
        }
        self._levels = {
            key: levels
            for key, levels in self._levels.items()
            if key[0] != thread or key[1] >= before
        }
        if thread == MAIN:
            since = self.compacted_at - 2 * THRASH_WINDOW_S
            self.compactions = [at for at in self.compactions if at >= since]
            self._thresholds = {key: at for key, at in self._thresholds.items() if key[0] >= before}
            self._handoff_cycles = [cycle for cycle in self._handoff_cycles if cycle >= before]

    def rearm_count(self, thread: str, cycle: int) -> int:
        return self._handoff_cycles.count(cycle) if thread == MAIN else 0

    def fired_levels(self, thread: str, cycle: int) -> list[tuple[float, int]]:
        """Return the levels that fired in a cycle, each with the re-arm count of then."""
        return [
            (level, arm)
            for (of, at, arm), levels in self._levels.items()
            if (of, at) == (thread, cycle)
            for level in sorted(levels)
        ]

    def rearm(self, handoff: HandoffRow) -> None:
        """Re-arm the levels of a cycle: a document was handed over."""
        self.handoff = _without_text(handoff)
        self._raise_thresholds(handoff.cycle, self.fired(MAIN, handoff.cycle, None))
        self._handoff_cycles.append(handoff.cycle)

    def _raise_thresholds(self, cycle: int, levels: Iterable[float]) -> None:
        for level in levels:
            key = cycle, level < 0
            self._thresholds[key] = max(self._thresholds.get(key, level), level)

    def note_figure(self, cycle: int, figure: float | None, calls_left: int | None = None) -> None:
        """Note the main thread's figures: re-armed levels above them may fire again."""
        for key, now in (((cycle, False), figure), ((cycle, True), calls_figure(calls_left))):
            if key in self._thresholds:
                self._thresholds[key] = rearm_threshold(self._thresholds[key], now)

    def fired(
        self, thread: str, cycle: int, figure: float | None, calls_left: int | None = None
    ) -> frozenset[float]:
        """Return the levels that have fired; none up to the highest of its kind may fire."""
        levels = self._levels.get((thread, cycle, self.rearm_count(thread, cycle)), NONE)
        if thread != MAIN:
            return levels
        self.note_figure(cycle, figure, calls_left)
        return levels.union(at for (of, _), at in self._thresholds.items() if of == cycle)

    def unfired(self, thread: str, signals: Sequence[Signal]) -> list[Signal]:
        """Return the signals that have not fired yet; levels were checked by `fired`."""
        return [
            each
            for each in signals
            if each.kind == "level" or (thread, each.cycle, each.kind) not in self._fired_kinds
        ]


def _without_text(row: HandoffRow) -> HandoffRow:
    return msgspec.structs.replace(row, text="")
