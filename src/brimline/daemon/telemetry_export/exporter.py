"""Exports readings and signals to an OpenTelemetry collector.

The store is the queue: a cursor in it is the last exported signal, and readings are those of now.
So nothing is kept for a collector that is down, and a restart repeats no signal.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from brimline._version import __version__
from brimline.context.events import MAIN
from brimline.daemon.retry import Work, growing_pauses, run_forever
from brimline.daemon.telemetry_export.collector import (
    DRAIN_TIMEOUT_S,
    Collector,
    CollectorBusy,
    Forwarder,
)
from brimline.daemon.telemetry_export.otlp_messages import (
    JSON_HEADERS,
    Plain,
    build_gauges,
    build_records,
    encode_metrics,
    encode_records,
)
from brimline.settings import TelemetrySettings
from brimline.store.base import PutCursor, Store
from brimline.store.rows import SessionRow, SignalRow, ThreadRow

CURSOR = "telemetry export"
EXPORT_INTERVAL_S = 5.0
REPEAT_INTERVAL_S = 60.0  # of unchanged readings: backends drop a series after some minutes
LIVE_S = 3_600.0  # a session that was seen within this time is live
MAX_SIGNAL_AGE_S = 86_400.0  # backends refuse older records
MAX_SIGNALS, MAX_READINGS = 500, 200  # in one request
MAX_SINGLE_READS = 200  # for more sessions, reading all live ones at once is faster

ExportedKind: TypeAlias = Literal["reading", "signal"]

LOGGER = logging.getLogger("brimline.server")
EXPORT_TASK = "telemetry export"


def is_live(row: SessionRow, now: float) -> bool:
    """Return whether a session was seen lately, has not ended and did not become another."""
    return not row.has_ended and row.continued_as is None and now - row.seen_at <= LIVE_S


async def always() -> bool:
    return True


class TelemetryExporter:
    """Exports what is in a store; `exported` and `dropped` count since the start.

    `is_elected` returns whether this process exports now, of all that share the store.
    """

    def __init__(
        self,
        store: Store,
        collector: Collector,
        organisation: str | None = None,
        is_elected: Callable[[], Awaitable[bool]] = always,
        clock: Callable[[], float] = time.time,
        interval_s: float = EXPORT_INTERVAL_S,
    ) -> None:
        self._store, self._collector = store, collector
        self._is_elected, self._clock, self._interval_s = is_elected, clock, interval_s
        self._resource: dict[str, Plain | None] = {
            "service.name": "brimline",
            "service.version": __version__,
            "brimline.organisation": organisation,
        }
        self._mark = 0  # of the last change that is in `_live`
        self._live: dict[str, tuple[SessionRow, ThreadRow]] = {}
        self._changed: set[str] = set()  # since they were exported
        self._repeated_at = 0.0
        self.exported = Counter[ExportedKind]()
        self.dropped = Counter[ExportedKind]()
        self.retries = 0

    async def run(self) -> None:
        """Export for ever; after a failure the next try waits longer."""
        pauses = growing_pauses()
        try:
            while True:
                try:
                    if await self._is_elected():
                        await self.export()
                except CollectorBusy as busy:
                    self.retries += 1
                    await asyncio.sleep(max(next(pauses), busy.retry_after_s))
                else:
                    pauses = growing_pauses()
                    await asyncio.sleep(self._interval_s)
        finally:
            self._collector.close()

    async def export(self) -> None:
        """Export the signals since the last export, and the readings; raises CollectorBusy."""
        await self._export_signals()
        await self._export_readings()

    async def _export_signals(self) -> None:
        position = await self._store.cursor(CURSOR)
        has_exported = position > 0  # else old signals are not missed: they are from before
        while batch := await self._store.signals_after(position, MAX_SIGNALS):
            oldest = self._clock() - MAX_SIGNAL_AGE_S
            recent = [row for _, row in batch if row.at >= oldest]
            if has_exported:
                self.dropped["signal"] += len(batch) - len(recent)
            if recent:
                records = build_records(await self._with_sessions(recent), self._clock())
                body = encode_records(self._resource, records)
                await self._send("signal", "/v1/logs", body, len(recent))
            position = batch[-1][0]
            await self._store.write([PutCursor(CURSOR, position)])

    async def _with_sessions(
        self, signals: Sequence[SignalRow]
    ) -> list[tuple[SignalRow, SessionRow | None]]:
        ids = {signal.session for signal in signals}
        rows = {id: await self._store.session(id) for id in ids}
        return [(signal, rows[signal.session]) for signal in signals]

    async def _export_readings(self) -> None:
        """Export the readings that changed, and all that are live once a minute."""
        now = self._clock()
        await self._update_live(now)
        is_repeating = now - self._repeated_at >= REPEAT_INTERVAL_S
        ids = list(self._live if is_repeating else self._changed)
        for start in range(0, len(ids), MAX_READINGS):
            batch = ids[start : start + MAX_READINGS]
            gauges = build_gauges([self._live[id] for id in batch], now)
            if gauges:
                body = encode_metrics(self._resource, gauges)
                await self._send("reading", "/v1/metrics", body, len(batch))
            self._changed.difference_update(batch)
        if is_repeating:
            self._repeated_at = now

    async def _update_live(self, now: float) -> None:
        """Read the sessions that changed since the last time, and drop those that are over."""
        changes = await self._store.changes(self._mark)
        for session, main in await self._read([id for _, id in changes], now):
            before = self._live.get(session.id)
            self._live[session.id] = session, main
            if before is None or before[1] != main:
                self._changed.add(session.id)
        if changes:
            self._mark = changes[-1][0]
        over = [id for id, (row, _) in self._live.items() if not is_live(row, now)]
        for id in over:
            del self._live[id]
            self._changed.discard(id)

    async def _read(self, ids: Sequence[str], now: float) -> list[tuple[SessionRow, ThreadRow]]:
        """Return these sessions with their main threads, or all that are live if they are many."""
        if len(ids) > MAX_SINGLE_READS:
            return await self._store.main_threads(now - LIVE_S)
        sessions = [await self._store.session(id) for id in ids]
        threads = [row for id in ids for row in await self._store.threads(id)]
        mains = {row.session: row for row in threads if row.thread == MAIN}
        return [(row, mains[row.id]) for row in sessions if row is not None and row.id in mains]

    async def _send(self, kind: ExportedKind, path: str, body: bytes, count: int) -> None:
        if await self._collector.try_to_send(path, JSON_HEADERS, body):
            self.exported[kind] += count
        else:
            self.dropped[kind] += count


@runtime_checkable
class SharedStore(Protocol):
    """A store that several processes share; of these, one is elected for a task."""

    async def is_elected(self, task: str) -> bool: ...


class TelemetryOutput:
    """The exporter and the forwarder of a store's owner; None if they are not configured."""

    def __init__(
        self, settings: TelemetrySettings, store: Store, organisation: str | None = None
    ) -> None:
        self.exporter: TelemetryExporter | None = None
        self.forwarder: Forwarder | None = None
        self._tasks: list[asyncio.Task[None]] = []
        if settings.export is not None:
            collector = Collector("telemetry export", settings.export, settings.headers)
            self.exporter = TelemetryExporter(store, collector, organisation, _election(store))
        if settings.forward is not None:
            self.forwarder = Forwarder(
                Collector("telemetry forwarding", settings.forward, settings.forward_headers)
            )

    def start(self) -> None:
        """Start to export and to forward in the background."""
        works: dict[str, Work] = {}
        if self.exporter is not None:
            works["telemetry export"] = self.exporter.run
        if self.forwarder is not None:
            works["telemetry forwarding"] = self.forwarder.run
        self._tasks = [asyncio.create_task(run_forever(*each)) for each in works.items()]

    async def close(self, drain_timeout_s: float = DRAIN_TIMEOUT_S) -> None:
        """Forward what was received, if that is quick, and stop."""
        if self.forwarder is not None and self._tasks:
            await self.forwarder.drain(drain_timeout_s)
            if lost := self.forwarder.waiting:
                LOGGER.warning("telemetry forwarding: %d requests were not sent", lost)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _election(store: Store) -> Callable[[], Awaitable[bool]]:
    """Return how the processes that share a store agree; a file has one daemon only."""
    return partial(store.is_elected, EXPORT_TASK) if isinstance(store, SharedStore) else always
