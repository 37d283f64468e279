"""What the daemon and a fleet's server build alike: the sessions of a store, and their routes."""

import time
from collections.abc import Callable, Sequence

from starlette.applications import Starlette

from brimline.api.broadcast import ChangeBroadcaster
from brimline.api.event_stream import StreamRoutes
from brimline.api.metrics import (
    EndingTokens,
    IngestCounts,
    IngestMeter,
    MachineCounts,
    MetricsRoutes,
    ingest_paths,
)
from brimline.api.responses import Routes
from brimline.api.schemas import DaemonStatus
from brimline.api.session_cache import SessionCache
from brimline.api.telemetry.endpoint import TelemetryRoutes
from brimline.api.views import KeptReader, Views
from brimline.daemon.telemetry_export.exporter import TelemetryOutput
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.settings import Settings, seconds
from brimline.store.base import Store
from brimline.store.metered import MeteredStore


class SessionService:
    """The sessions of one store: what monitors, shows and exports them.

    Replicas share the store of an `organisation`; a daemon has none.
    """

    def __init__(
        self,
        opened: Store,
        rules: Rules,
        settings: Settings,
        is_stopping: Callable[[], bool],
        environment: MonitorEnvironment | None = None,
        organisation: str | None = None,
        read_kept: KeptReader | None = None,
    ) -> None:
        is_shared = organisation is not None
        self.store = MeteredStore(opened)
        self.monitor = Monitor(self.store, time.time, rules, environment, shared=is_shared)
        self.views = Views(self.store, self.monitor, rules, is_shared, read_kept)
        # A fleet has too many: 100,000 sessions took 250 MB when a page was opened.
        self.cache = SessionCache(self.store, self.views, recent_only=is_shared)
        self.output = TelemetryOutput(settings.telemetry, opened, organisation)
        self.stream = StreamRoutes(self.cache, ChangeBroadcaster(self.cache, is_stopping))
        self.telemetry = TelemetryRoutes(self.store, self.monitor, self.output.forwarder)
        self._ingest = IngestCounts()
        self._rules = rules
        self._keep_s = seconds(settings.daemon.keep)

    def metrics(
        self,
        status: Callable[[], DaemonStatus],
        machines: MachineCounts | None = None,
        ending_tokens: EndingTokens | None = None,
    ) -> MetricsRoutes:
        return MetricsRoutes(
            self.store,
            status,
            self._ingest,
            self.output,
            self._rules,
            machines=machines,
            ending_tokens=ending_tokens,
        )

    def count_ingest(self, app: Starlette, parts: Sequence[Routes]) -> None:
        """Have an application's requests with events counted for the metrics."""
        app.add_middleware(IngestMeter, counts=self._ingest, paths=ingest_paths(parts))

    async def forget_old_sessions(self, now: float | None = None) -> None:
        """Remove sessions that are older than the setting `daemon.keep`."""
        await self.monitor.forget((time.time() if now is None else now) - self._keep_s)
        self.monitor.release_idle()
