"""The daemon: one per user; it resumes where the last one stopped or was killed."""

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from brimline._version import __version__
from brimline.agents.transcripts.source import Places
from brimline.api.access import AccessControl, PageLinks
from brimline.api.app import DaemonRoutes, HookRoutes, create_app
from brimline.api.broadcast import ChangeBroadcaster
from brimline.api.event_stream import StreamRoutes
from brimline.api.history import HistoryRoutes, find_recorded, read_history
from brimline.api.legacy_endpoints import LEGACY_PATHS, LegacyRoutes
from brimline.api.metrics import IngestCounts, IngestMeter, MetricsRoutes, ingest_paths
from brimline.api.responses import Routes
from brimline.api.schemas import DaemonStatus
from brimline.api.session_cache import SessionCache
from brimline.api.sessions import SessionRoutes
from brimline.api.telemetry.endpoint import TelemetryRoutes
from brimline.api.transcripts import TranscriptRoutes
from brimline.api.views import Views
from brimline.daemon.allocator import limit_fragmentation
from brimline.daemon.hook_requests.dispatcher import HookDispatcher
from brimline.daemon.hook_requests.hook_socket import HookSocket
from brimline.daemon.hook_requests.status_line_reply import StatusLines
from brimline.daemon.hook_requests.user_status_line import UserStatusLine
from brimline.daemon.local_environment import LocalEnvironment, settings_reader
from brimline.daemon.notices.notices import NoticeSender
from brimline.daemon.notices.policy import NoticePolicy
from brimline.daemon.parent_session import parent_sessions
from brimline.daemon.retry import Work, growing_pauses, running
from brimline.daemon.secret import load_or_create_secret
from brimline.daemon.sockets import (
    HOST,
    LOCK_NAME,
    hold_instance_lock,
    listen_tcp,
    listen_unix,
    read_port,
    write_port,
)
from brimline.daemon.store_watch import StoreWatch
from brimline.daemon.tcp_peer import TcpPeers
from brimline.daemon.telemetry_export.output import TelemetryOutput
from brimline.daemon.tmux_wiring import TmuxWiring
from brimline.daemon.transcript_watcher import TranscriptWatcher
from brimline.daemon.uplink.exchange import Uplink
from brimline.daemon.uplink_wiring import create_uplink
from brimline.errors import StoreFailed
from brimline.files.folder_safety import make_private_folder
from brimline.hooks.client.autostart import STOPPED_MARK
from brimline.hooks.spool import take, take_dropped, take_late
from brimline.monitor.monitor import Monitor
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.server.http_server import (
    ConnectionLimits,
    create_server,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.settings import Settings, cache_dir, seconds, socket_path, state_dir
from brimline.store.base import Store
from brimline.store.metered import MeteredStore
from brimline.store.postgres import open_postgres
from brimline.store.problems import open_problems
from brimline.store.sqlite import SqliteStore

LOGGER = logging.getLogger("brimline.server")
SPOOL_INTERVAL_S = 1.0
FORGET_INTERVAL_S = 3_600.0
SOCKET_CHECK_INTERVAL_S = 1.0
RECENT_RESTART_S = 60.0
UNWRITABLE_HINT = (
    "The daemon keeps its state there: make it writable for your user, or set BRIMLINE_STATE_DIR."
)


class Daemon:
    """Starts and stops everything in order.

    `is_lost` is set if it stopped because its sockets or its folder were deleted.
    """

    def __init__(self, places: Places, settings: Settings, port: int | None) -> None:
        self._places, self._settings, self._port = places, settings, port
        self.state = state_dir(places.env, places.home)
        self._since = time.time()
        self._dropped = self._late = 0
        self._http: uvicorn.Server | None = None
        self._links = PageLinks()
        self._uplink: Uplink | None = None
        self._stopped = False
        self._restarting = False
        self.is_lost = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with a link to the page."""
        limit_fragmentation()
        with _lock_state_folder(self.state):
            waits = growing_pauses()
            await self._serve_store(ready)
            while self._restarting and not self._stopped and not self.is_lost:
                if time.time() - self._since > RECENT_RESTART_S:
                    waits = growing_pauses()
                await asyncio.sleep(next(waits))  # a failing disk may damage every new store
                self._restarting, self._since = False, time.time()
                self._port = None  # the same again, or another if a program has taken it meanwhile
                await self._serve_store(lambda address: None)

    async def _serve_store(self, ready: Callable[[str], None]) -> None:
        """Open the store and serve from it; nothing in memory outlives that store."""
        store = await self._open_store()
        try:
            await self._serve(store, ready)
        finally:
            await store.close()

    async def _open_store(self) -> Store:
        if self._settings.daemon.database is not None:
            return await open_postgres(self._settings.daemon.database)
        return await SqliteStore.open(self.state / "brimline.db")

    async def _serve(self, opened: Store, ready: Callable[[str], None]) -> None:
        store = MeteredStore(opened)
        # First of all, because it fails if the port is taken.
        tcp_socket = listen_tcp(self._port, read_port(self.state))
        self._port = port = int(tcp_socket.getsockname()[1])
        write_port(self.state, port)
        access = AccessControl(load_or_create_secret(self.state), port, self._links)
        peers = TcpPeers.open()
        limits = ConnectionLimits(peers, raise_descriptor_limit())
        rules = Rules.of_settings(self._settings)
        notices = NoticeSender(self._settings.notify)
        policy = NoticePolicy(self._settings.notify, rules, notices)
        tmux = TmuxWiring(store, self._places, self.state, notices)
        environment = LocalEnvironment(
            self._places, self.state, policy.report_signal, tmux.clearer.holds_messages
        )
        monitor = Monitor(store, time.time, rules, environment)
        views = Views(store, monitor, rules)
        user_line = UserStatusLine(self.state)
        status_lines = StatusLines(monitor, views.handoff_status, self._settings, user_line)
        parents = parent_sessions(self._places)
        dispatcher = HookDispatcher(monitor, status_lines, tmux.clearer, parents)
        await tmux.clearer.load()
        with suppress(StoreFailed, OSError):  # logged when `_poll_spool` tries again
            await self._process_spool(dispatcher)
        await tmux.clearer.resume()
        hooks = HookSocket(self._socket_path("hook"), dispatcher)
        hooks.open()
        delivery = tmux.message_delivery(monitor)
        encoded = SessionCache(store, views)
        self._uplink = create_uplink(
            self._settings.uplink, self._settings.stop, opened, store, self.state
        )
        output = TelemetryOutput(self._settings.telemetry, opened)
        sessions = SessionRoutes(store, monitor, views, encoded, tmux.clearer, delivery.wake)
        application = self._application(
            store, monitor, encoded, dispatcher, sessions, access, output
        )
        self._http = create_server(application, limits)
        stop_on_signals(self.stop)
        self._http.should_exit = self._stopped
        _warm_up()
        unix_socket = listen_unix(self._socket_path("http"))
        output.start()
        ready(access.page_link())
        works: dict[str, Work] = {
            **self._upkeep(opened, monitor, dispatcher),
            "message delivery to tmux panes": delivery.run,
            "socket check": partial(
                self._stop_when_unreachable, hooks.is_there, unix_socket.is_reachable
            ),
        }
        if self._uplink is not None:
            works["uplink"] = self._uplink.run
        try:
            async with running(works):
                await self._http.serve(sockets=[tcp_socket, unix_socket])
        finally:
            await output.close()
            await tmux.clearer.close()
            await notices.close()
            await hooks.close()
            await user_line.close()
            unix_socket.unlink()
            if peers is not None:
                peers.close()

    def _upkeep(
        self, store: Store, monitor: Monitor, dispatcher: HookDispatcher
    ) -> dict[str, Work]:
        """What keeps the store up to date with the files, small and whole."""
        since = time.time() - seconds(self._settings.since)
        works: dict[str, Work] = {
            "spool reader": partial(self._poll_spool, dispatcher),
            "transcript watcher": TranscriptWatcher(self._places, monitor, since).run,
            "removal of old sessions": partial(self._forget_old_sessions, monitor),
        }
        if isinstance(store, SqliteStore):
            watch = StoreWatch(store, self._restart)
            works["store file check"] = watch.watch_file
            works["store content check"] = watch.check_content
        return works

    def _application(
        self,
        store: MeteredStore,
        monitor: Monitor,
        encoded: SessionCache,
        dispatcher: HookDispatcher,
        sessions: SessionRoutes,
        access: AccessControl,
        output: TelemetryOutput,
    ) -> Starlette:
        cache = cache_dir(self._settings, self._places.env, self._places.home)
        ingest, read_settings = IngestCounts(), settings_reader(self._places)
        parts: list[Routes] = [
            DaemonRoutes(partial(self._status, dispatcher), self.stop, access),
            MetricsRoutes(store, partial(self._status, dispatcher), ingest, output),
            TranscriptRoutes(monitor, self._places),
            sessions,
            HistoryRoutes(
                store,
                partial(read_history, self._places, cache),
                partial(find_recorded, self._places),
                settings=lambda agent, project: read_settings((agent, project, None)),
            ),
            StreamRoutes(encoded, ChangeBroadcaster(encoded, self._stopping)),
            TelemetryRoutes(store, monitor, output.forwarder),
            LegacyRoutes(store, monitor),
            HookRoutes(dispatcher),
        ]
        is_open = self._settings.daemon.context_usage_without_secret
        open_paths = LEGACY_PATHS if is_open else ()
        app = create_app(store, parts, access, open_paths)
        app.add_middleware(IngestMeter, counts=ingest, paths=ingest_paths(parts))
        return app

    def _socket_path(self, name: str) -> Path:
        return socket_path(self.state, os.getuid(), name)

    def _status(self, dispatcher: HookDispatcher) -> DaemonStatus:
        return DaemonStatus(
            version=__version__,
            pid=os.getpid(),
            since=self._since,
            address=f"http://{HOST}:{self._port}",
            heard=dispatcher.request_count,
            malformed=dispatcher.malformed,
            dropped=self._dropped,
            late=self._late,
            hooks=dispatcher.last_contact,
            problems=open_problems(self.state, time.time()),
            uplink=self._uplink.status() if self._uplink else None,
        )

    def _stopping(self) -> bool:
        return self._http is not None and self._http.should_exit

    def stop(self) -> None:
        """Stop after the requests that are being answered."""
        self._stopped = True
        self._end_serving()

    def _end_serving(self) -> None:
        if self._http is not None:
            self._http.should_exit = True

    def _restart(self, problem: str) -> None:
        """Restart with a new store after a problem with its file; hook clients spool meanwhile.

        If the whole state folder is gone, stop instead.
        """
        if self._stopping():
            return
        if self.state.is_dir():
            LOGGER.warning("%s %s; restarting", self.state / "brimline.db", problem)
            self._restarting = True
        else:
            LOGGER.warning("%s was removed, shutting down", self.state)
            self.is_lost = True
        self._end_serving()

    async def _poll_spool(self, dispatcher: HookDispatcher) -> None:
        while True:
            await asyncio.sleep(SPOOL_INTERVAL_S)
            await self._process_spool(dispatcher)

    async def _process_spool(self, dispatcher: HookDispatcher) -> None:
        """Process what hook clients spooled while no daemon answered, in order.

        If the store fails, the batch is processed again; observations that are stored already
        have no effect.
        """
        while (batch := await asyncio.to_thread(take, self.state)) is not None:
            for request in batch:
                await dispatcher.handle(request, late=True)
            dispatcher.malformed += batch.skipped
            batch.finish()
        self._dropped += take_dropped(self.state)
        self._late += take_late(self.state)

    async def _stop_when_unreachable(self, *checks: Callable[[], bool]) -> None:
        """Stop when a socket was removed, so that another daemon can be started."""
        while all(is_reachable() for is_reachable in checks):
            await asyncio.sleep(SOCKET_CHECK_INTERVAL_S)
        if not self._stopping():
            LOGGER.warning("socket removed from %s, shutting down", self.state)
            self.is_lost = True
            self.stop()

    async def _forget_old_sessions(self, monitor: Monitor) -> None:
        """Remove sessions that are older than the setting `daemon.keep`."""
        while True:
            await monitor.forget(time.time() - seconds(self._settings.daemon.keep))
            monitor.release_idle()
            await asyncio.sleep(FORGET_INTERVAL_S)


@contextmanager
def _lock_state_folder(state: Path) -> Generator[None, None, None]:
    """Lock the state folder, which is created if missing; raises StoreFailed or UnsafeFolder."""
    with ExitStack() as stack:
        try:
            make_private_folder(state)
            stack.enter_context(hold_instance_lock(state / LOCK_NAME))
            (state / STOPPED_MARK).unlink(missing_ok=True)
        except OSError as error:
            raise StoreFailed(str(state), error.strerror or str(error), UNWRITABLE_HINT) from error
        yield


def _warm_up() -> None:
    """Load what the first answer needs, and exclude it from garbage collection."""
    SessionState("claude", "").readings()
    gc.freeze()


def ignore_hangup() -> None:
    """Keep running when the terminal is closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
