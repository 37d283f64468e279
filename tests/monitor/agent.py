"""A simulated Claude Code session: its transcript, hooks and status line."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from brimline.agents.observations import Observation, ObservationKind, Reply
from brimline.context.usage import Usage
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.monitor import MAX_CALLS_IN_MEMORY, Monitor
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.store.base import Store
from brimline.store.rows import SignalRow
from brimline.store.sqlite import MemoryStore

MODEL = "claude-sonnet-4-5"


class RecordingEnvironment(MonitorEnvironment):
    """Records signals; the test sets since when hooks are installed, and whether they deliver."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.is_reachable = True
        self.signals: list[SignalRow] = []

    def hooks_installed_at(self, agent: str, project: str | None) -> float | None:
        return self.since

    async def can_deliver(self, agent: str, project: str | None, is_document: bool) -> bool:
        return self.is_reachable

    def on_signal(self, signal: SignalRow, state: SessionState) -> None:
        self.signals.append(signal)


class Agent:
    """Writes a transcript as the client does, and sends observations to a monitor."""

    def __init__(
        self,
        folder: Path,
        store: Store | None = None,
        max_calls: int = MAX_CALLS_IN_MEMORY,
        **rules: Any,
    ) -> None:
        self.path = folder / "session.jsonl"
        self.store = store or MemoryStore()
        self.rules = Rules(**rules)
        self.max_calls = max_calls
        self.time = 1_000.0
        self.hour = 10
        self._numbers = count(1)
        self._ids: Iterator[int] = count(1)
        self.session = "s1"
        self.parent: str | None = None
        self.version = "2.1.325"
        self.environment = RecordingEnvironment()
        self.monitor = self.new_monitor()

    def new_monitor(self) -> Monitor:
        """Replace the monitor by one that knows only the store, as after a restart."""
        self.monitor = Monitor(
            self.store, lambda: self.time, self.rules, self.environment, self.max_calls
        )
        return self.monitor

    def write_record(self, **record: Any) -> None:
        """Append a record to the transcript."""
        whole = {"sessionId": self.session, "cwd": "/project", "version": self.version, **record}
        with self.path.open("a") as file:
            file.write(json.dumps(whole, separators=(",", ":")) + "\n")

    def call(self, sent: int, output: int = 10, model: str = MODEL) -> None:
        """Append a model call to the transcript."""
        usage = {"input_tokens": sent, "output_tokens": output}
        message = {"id": f"msg_{next(self._numbers)}", "model": model, "usage": usage}
        self.write_record(type="assistant", timestamp=self.timestamp(0), message=message)

    def boundary(self) -> None:
        """Append a compaction record to the transcript."""
        self.write_record(
            type="system",
            subtype="compact_boundary",
            timestamp=self.timestamp(next(self._numbers)),
            compactMetadata={"trigger": "auto", "preTokens": 150_000},
        )

    def timestamp(self, second: int) -> str:
        """The time of a record, in the hour of the transcript's clock."""
        return f"2026-11-15T{self.hour}:00:{second:02}Z"

    def observation(self, what: ObservationKind, **more: Any) -> Observation:
        """Build the observation of a hook, one second after the one before."""
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

    async def observe(self, what: ObservationKind, **more: Any) -> Reply:
        """Send an observation as the daemon does, and acknowledge the reply."""
        reply = await self.monitor.observe(self.observation(what, **more))
        await self.monitor.mark_delivered(reply)
        return reply

    async def status(self, sent: int | None, window: int = 200_000, model: str = MODEL) -> Reply:
        """Send a status line; `sent` is None before the first call."""
        usage = None if sent is None else Usage(sent, 0, 0, 0)
        return await self.observe("status", usage=usage, window=window, model=model)

    def reading(self) -> tuple[int | None, str, int]:
        """Return sent tokens, state and cycle."""
        reading = self.monitor.reading(self.session)
        return reading.sent, reading.state, reading.cycle
