"""What was said of a session already: each thing is said once in its cycle."""

from collections.abc import Iterable, Sequence

from brimline.events import MAIN
from brimline.policy.levels import rearm_threshold
from brimline.policy.signals import THRASH_WINDOW_S, Signal
from brimline.store.rows import HandoffRow, SignalRow

NONE: frozenset[float] = frozenset()
COMPACTED = (MAIN, "compacted")

KEPT_CYCLES = 16
"""Of so many last cycles of a thread it is held in memory what was said.

A thread's cycle goes back only if its file is replaced. What would then be said again has no effect
in the store, which knows the signals of all cycles.
"""


class SignalHistory:
    """The signals of one session. A handoff arms the levels of its cycle anew.

    A level that was told before that is told again only when the figure comes up to it again: who
    has just written a document is not asked for one at once. `owed`: after the last compaction the
    session has not got its document yet.
    """

    def __init__(
        self, signals: Iterable[SignalRow] = (), handoffs: Iterable[HandoffRow] = ()
    ) -> None:
        self._levels: dict[tuple[str, int, int], frozenset[float]] = {}
        self._once: set[tuple[str, int, str]] = set()
        self._passed: dict[int, float] = {}
        rows = list(handoffs)
        self._handed = [row.cycle for row in rows if not row.draft]
        self.compactions: list[float] = []
        for row in signals:
            self._take(row.thread, Signal(row.kind, row.cycle, row.level), row.at, row.arm)
            if row.kind == "level" and row.arm < self.arm(row.thread, row.cycle):
                self._passed[row.cycle] = max(self._passed.get(row.cycle, 0.0), row.level)
        ended = max(
            (cycle for of, cycle, kind in self._once if (of, kind) == COMPACTED), default=-1
        )
        written = [row for row in rows if row.cycle <= ended or row.at <= self.compacted_at]
        self.owed = any((row.used_at or 0.0) < self.compacted_at for row in written[:1])

    @property
    def compacted_at(self) -> float:
        """When the main thread was last compacted, as far as that was said; 0: never."""
        return max(self.compactions, default=0.0)

    def take(self, thread: str, said: Iterable[Signal], at: float) -> None:
        """These were said now."""
        for each in said:
            self._take(thread, each, at, self.arm(thread, each.cycle))

    def _take(self, thread: str, said: Signal, at: float, arm: int) -> None:
        self._once.add((thread, said.cycle, said.kind))
        if said.kind == "level":
            key = (thread, said.cycle, arm)
            self._levels[key] = self._levels.get(key, NONE) | {said.level}
        elif said.kind == "compacted" and thread == MAIN:
            self.compactions.append(at)
        if said.kind in ("compacted", "cleared"):
            self._drop_cycles(thread, said.cycle - KEPT_CYCLES)

    def _drop_cycles(self, thread: str, before: int) -> None:
        """Hold nothing of the cycles of a thread before this one."""
        if before <= 0:
            return
        self._once = {key for key in self._once if key[0] != thread or key[1] >= before}
        self._levels = {
            key: levels
            for key, levels in self._levels.items()
            if key[0] != thread or key[1] >= before
        }
        if thread == MAIN:
            since = self.compacted_at - 2 * THRASH_WINDOW_S
            self.compactions = [at for at in self.compactions if at >= since]
            self._passed = {cycle: at for cycle, at in self._passed.items() if cycle >= before}
            self._handed = [cycle for cycle in self._handed if cycle >= before]

    def arm(self, thread: str, cycle: int) -> int:
        """How often the levels of a cycle were armed anew."""
        return self._handed.count(cycle) if thread == MAIN else 0

    def told(self, thread: str, cycle: int) -> list[tuple[float, int]]:
        """The levels that were told in a cycle, each with how often they were armed anew before."""
        return [
            (level, arm)
            for (of, at, arm), levels in self._levels.items()
            if (of, at) == (thread, cycle)
            for level in sorted(levels)
        ]

    def arm_anew(self, cycle: int) -> None:
        """A document was handed over."""
        self._passed[cycle] = max(self.fired(MAIN, cycle, None), default=0.0)
        self._handed.append(cycle)

    def seen(self, cycle: int, figure: float | None) -> None:
        """The main thread is at a figure: levels above it that were armed anew are told again."""
        if cycle in self._passed:
            self._passed[cycle] = rearm_threshold(self._passed[cycle], figure)

    def fired(self, thread: str, cycle: int, figure: float | None) -> frozenset[float]:
        """The figures up to the highest of which no level is to be told."""
        told = self._levels.get((thread, cycle, self.arm(thread, cycle)), NONE)
        if thread != MAIN or cycle not in self._passed:
            return told
        self.seen(cycle, figure)
        return told | {self._passed[cycle]}

    def new(self, thread: str, said: Sequence[Signal]) -> list[Signal]:
        """Those that were not said yet; of levels `fired` tells."""
        return [
            each
            for each in said
            if each.kind == "level" or (thread, each.cycle, each.kind) not in self._once
        ]
