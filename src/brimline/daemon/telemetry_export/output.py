"""What is sent to OpenTelemetry collectors, by the settings."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, runtime_checkable

from brimline.daemon.retry import Work, run_forever
from brimline.daemon.telemetry_export.collector import Collector
from brimline.daemon.telemetry_export.exporter import TelemetryExporter, always
from brimline.daemon.telemetry_export.forwarder import DRAIN_TIMEOUT_S, Forwarder
from brimline.settings import TelemetrySettings
from brimline.store.base import Store

LOGGER = logging.getLogger("brimline.server")
EXPORT_TASK = "telemetry export"


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
