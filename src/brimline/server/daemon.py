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
from brimline.folder_safety import make_private_folder
from brimline.hooks.spool import take, take_dropped
from brimline.monitor.monitor import Monitor
from brimline.monitor.rules import Rules
from brimline.monitor.session_state import SessionState
from brimline.notify.policy import NoticePolicy
from brimline.server.allocator import use_one_arena
from brimline.server.api.access import AccessControl, PageLinks
from brimline.server.api.app import DaemonRoutes, HookRoutes, create_app
from brimline.server.api.broadcast import ChangeBroadcaster
from brimline.server.api.event_stream import StreamRoutes
from brimline.server.api.history import HistoryRoutes, read_history
from brimline.server.api.legacy_endpoints import LEGACY_PATHS as LEGACY_PATHS
from brimline.server.api.legacy_endpoints import LegacyRoutes
from brimline.server.api.responses import Routes
from brimline.server.api.schemas import DaemonStatus
from brimline.server.api.session_cache import SessionCache
from brimline.server.api.sessions import SessionRoutes
from brimline.server.api.static import PageRoutes
from brimline.server.api.views import Views
from brimline.server.hooks.dispatcher import HookDispatcher
from brimline.server.hooks.hook_socket import HookSocket
from brimline.server.hooks.status_line import StatusLines
from brimline.server.hooks.user_status_line import UserStatusLine
from brimline.server.http import create_server, stop_on_signals
from brimline.server.http_protocol import ConnectionLimits, raise_descriptor_limit
from brimline.server.local_environment import LocalEnvironment, parent_sessions
from brimline.server.port_file import read_port, write_port
from brimline.server.retry import Work, growing_pauses, run_forever
from brimline.server.secret import load_or_create_secret
from brimline.server.sockets import HOST, LOCK_NAME, InstanceLock, listen_tcp, listen_unix
from brimline.server.store_watch import StoreWatch
from brimline.server.tcp_peer import TcpPeers
from brimline.server.tmux_wiring import TmuxWiring
from brimline.server.transcript_watcher import TranscriptWatcher
from brimline.settings import Settings, cache_dir, seconds, socket_path, state_dir
from brimline.store.base import Store
from brimline.store.failures import StoreFailed
from brimline.store.problems import open_problems
from brimline.store.sqlite import SqliteStore
from brimline.tmux.message_delivery import MessageDelivery
from brimline.transcripts.source import Places

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
        self._places = places
        self._settings = settings
        self._port = port
        self.state = state_dir(places.env, places.home)
        self._since = time.time()
        self._dropped = 0
        self._dispatcher: HookDispatcher | None = None
        self._http: uvicorn.Server | None = None
        self._links = PageLinks()
        self._stopped = False
        self._restarting = False
        self.is_lost = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with a link to the page."""
        use_one_arena()
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
        store = await SqliteStore.open(self.state / "brimline.db")
        try:
            await self._serve(store, ready)
        finally:
            await store.close()

    async def _serve(self, store: SqliteStore, ready: Callable[[str], None]) -> None:
        last = read_port(self.state)
        tcp_socket = listen_tcp(self._port, last)  # first: it fails if the port is taken
        self._port = port = int(tcp_socket.getsockname()[1])
        write_port(self.state, port)
        access = AccessControl(load_or_create_secret(self.state), port, self._links)
        peers = TcpPeers.open()
        limits = ConnectionLimits(peers, raise_descriptor_limit())
        rules = Rules.of_settings(self._settings)
        notices = NoticePolicy(self._settings.notify, rules, self.state)
        tmux = TmuxWiring(store, self._places, self.state, notices)
        environment = LocalEnvironment(
            self._places, self.state, notices.report_signal, tmux.clearer.holds_messages
        )
        monitor = Monitor(store, time.time, rules, environment)
        views = Views(store, monitor, rules)
        status_lines = StatusLines(monitor, views, self._settings, UserStatusLine(self.state))
        self._dispatcher = desk = HookDispatcher(
            monitor, status_lines, tmux.clearer, parent_sessions(self._places)
        )
        await tmux.clearer.load()
        with suppress(StoreFailed, OSError):  # logged when `_poll_spool` tries again
            await self._process_spool(desk)
        await tmux.clearer.resume()
        hooks = HookSocket(self._socket("hook"), desk)
        hooks.open()
        application = self._application(store, monitor, views, desk, tmux, access)
        self._http = create_server(application, limits)
        stop_on_signals(self.stop)
        self._http.should_exit = self._stopped
        _warm_up()
        unix_socket = listen_unix(self._socket("http"))
        ready(access.page_link())
        background_work = self._background_work(monitor, desk, tmux.message_delivery(monitor))
        background_work["socket check"] = partial(
            self._stop_when_unreachable, hooks.is_there, unix_socket.is_reachable
        )
        watch = StoreWatch(store, self._restart)
        background_work["store file check"] = watch.watch_file
        background_work["store content check"] = watch.check_content
        tasks = [
            asyncio.create_task(run_forever(what, work)) for what, work in background_work.items()
        ]
        try:
            await self._http.serve(sockets=[tcp_socket, unix_socket])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await tmux.clearer.close()
            await notices.close()
            await hooks.close()
            await status_lines.close()
            unix_socket.unlink()
            if peers is not None:
                peers.close()

    def _application(
        self,
        store: Store,
        monitor: Monitor,
        views: Views,
        desk: HookDispatcher,
        panes: TmuxWiring,
        access: AccessControl,
    ) -> Starlette:
        cache = cache_dir(self._settings, self._places.env, self._places.home)
        encoded = SessionCache(store, views)
        parts: list[Routes] = [
            DaemonRoutes(self.status, self.stop, access),
            SessionRoutes(store, monitor, views, encoded, panes.clearer),
            HistoryRoutes(store, partial(read_history, self._places, cache)),
            StreamRoutes(encoded, ChangeBroadcaster(encoded, self._stopping)),
            LegacyRoutes(store, monitor),
            HookRoutes(desk),
        ]
        is_open = self._settings.daemon.context_usage_without_secret
        open_paths = LEGACY_PATHS if is_open else ()
        return create_app(store, parts, PageRoutes().routes(), access, open_paths)

    def _background_work(
        self, monitor: Monitor, desk: HookDispatcher, mail: MessageDelivery
    ) -> dict[str, Work]:
        """Return what runs in the background, by the name that the log gives it."""
        since = time.time() - seconds(self._settings.since)
        return {
            "spool reader": partial(self._poll_spool, desk),
            "transcript watcher": TranscriptWatcher(self._places, monitor, since).run,
            "removal of old sessions": partial(self._forget_old_sessions, monitor),
            "message delivery to tmux panes": mail.run,
        }

    def _socket(self, name: str) -> Path:
        return socket_path(self.state, os.getuid(), name)

    @property
    def address(self) -> str:
        """The URL of the page and the API."""
        return f"http://{HOST}:{self._port}"

    def status(self) -> DaemonStatus:
        """Return what `GET /v1/daemon` serves."""
        desk = self._dispatcher
        return DaemonStatus(
            version=__version__,
            pid=os.getpid(),
            since=self._since,
            address=self.address,
            heard=desk.request_count if desk else 0,
            malformed=desk.malformed if desk else 0,
            dropped=self._dropped,
            hooks=desk.last_contact if desk else {},
            problems=open_problems(self.state, time.time()),
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
        if not self.state.is_dir():
            LOGGER.warning("%s was removed, shutting down", self.state)
            self.is_lost = True
        else:
            LOGGER.warning("%s %s; restarting", self.state / "brimline.db", problem)
            self._restarting = True
        self._end_serving()

    async def _poll_spool(self, desk: HookDispatcher) -> None:
        while True:
            await asyncio.sleep(SPOOL_INTERVAL_S)
            await self._process_spool(desk)

    async def _process_spool(self, desk: HookDispatcher) -> None:
        """Process what hook clients spooled while no daemon answered, in order.

        If the store fails, the batch is processed again; observations that are stored already
        have no effect.
        """
        while (batch := await asyncio.to_thread(take, self.state)) is not None:
            for request in batch:
                await desk.handle(request, late=True)
            desk.malformed += batch.skipped
            batch.finish()
        self._dropped += take_dropped(self.state)

    async def _stop_when_unreachable(self, *found: Callable[[], bool]) -> None:
        """Stop when a socket was removed, so that another daemon can be started."""
        while all(each() for each in found):
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
    with ExitStack() as held:
        try:
            make_private_folder(state)
            held.enter_context(InstanceLock(state / LOCK_NAME))
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
