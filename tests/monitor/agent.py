"""A made-up Claude Code session: its transcript, its hooks, its status line."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from brimline.monitor.environment import MonitorEnvironment
from brimline.monitor.monitor import MAX_CALLS_IN_MEMORY, Monitor
from brimline.monitor.rules import Rules
from brimline.monitor.session_state import SessionState
from brimline.observations import Observation, ObservationKind, Reply
from brimline.store.base import Store
from brimline.store.memory import MemoryStore
from brimline.store.rows import SignalRow
from brimline.usage import Usage

MODEL = "claude-sonnet-4-5"


class Around(MonitorEnvironment):
    """A machine on which hooks may be installed; keeps what was signalled."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.signals: list[SignalRow] = []

    def hooks_installed_at(self, agent: str, project: str | None) -> float | None:
        """Since when, as the test has it."""
        return self.since

    def on_signal(self, signal: SignalRow, state: SessionState) -> None:
        """A signal is new."""
        self.signals.append(signal)


class Agent:
    """One session: writes its transcript as the client does, and tells the monitor."""

    def __init__(
        self,
        folder: Path,
        store: Store | None = None,
        kept_calls: int = MAX_CALLS_IN_MEMORY,
        **rules: Any,
    ) -> None:
        self.path = folder / "session.jsonl"
        self.store = store or MemoryStore()
        self.rules = Rules(**rules)
        self.kept_calls = kept_calls
        self.time = 1_000.0
        self._numbers = count(1)
        self._ids: Iterator[int] = count(1)
        self.session = "s1"
        self.parent: str | None = None
        self.around = Around()
        self.monitor = self.new_monitor()

    def new_monitor(self) -> Monitor:
        """A monitor that knows only the store, as after a restart."""
        self.monitor = Monitor(
            self.store, lambda: self.time, self.rules, self.around, self.kept_calls
        )
        return self.monitor

    def line(self, **record: Any) -> None:
        """A record of the transcript."""
        whole = {"sessionId": self.session, "cwd": "/project", "version": "2.1.325", **record}
        with self.path.open("a") as file:
            file.write(json.dumps(whole, separators=(",", ":")) + "\n")

    def call(self, sent: int, output: int = 10) -> None:
        """A call, as the transcript tells it."""
        usage = {"input_tokens": sent, "output_tokens": output}
        message = {"id": f"msg_{next(self._numbers)}", "model": MODEL, "usage": usage}
        self.line(type="assistant", timestamp="2026-11-15T10:00:00.000Z", message=message)

    def boundary(self) -> None:
        """A compaction, as the transcript tells it."""
        self.line(
            type="system",
            subtype="compact_boundary",
            timestamp=f"2026-11-15T10:00:{next(self._numbers):02}Z",
            compactMetadata={"trigger": "auto", "preTokens": 150_000},
        )

    def heard(self, what: ObservationKind, **more: Any) -> Observation:
        """What a hook tells."""
        self.time += 1
        return Observation(
            id=f"event-{next(self._ids)}",
            agent="claude",
            session=self.session,
            kind=what,
            at=self.time,
            transcript=str(self.path),
            project="/project",
            parent=self.parent,
            **more,
        )

    async def tell(self, what: ObservationKind, **more: Any) -> Reply:
        """Tell the monitor as the daemon does, and say that its answer was passed on."""
        reply = await self.monitor.observe(self.heard(what, **more))
        await self.monitor.mark_delivered(reply)
        return reply

    async def status(self, sent: int | None, window: int = 200_000) -> Reply:
        """What the status line tells; None before the first call."""
        usage = None if sent is None else Usage(sent, 0, 0, 0)
        return await self.tell("status", usage=usage, window=window, model=MODEL)

    def reading(self) -> tuple[int | None, str, int]:
        """What the monitor reads: sent, state, cycle."""
        reading = self.monitor.reading(self.session)
        return reading.sent, reading.state, reading.cycle
