"""The daemon: one per user; it resumes where the last one stopped or was killed."""

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from starlette.applications import Starlette

from brimline._version import __version__
from brimline.agents.transcripts.source import Places
from brimline.api.access import AccessControl, PageLinks
from brimline.api.app import DaemonRoutes, HookRoutes, create_app
from brimline.api.calling_session import CallingSessions, HereRoutes
from brimline.api.compactions import CompactionRoutes
from brimline.api.history import HistoryRoutes, find_recorded, read_history
from brimline.api.kept_part import KeptPartReader
from brimline.api.legacy_endpoints import LEGACY_PATHS, LegacyRoutes
from brimline.api.recall import RecallRoutes
from brimline.api.responses import Routes
from brimline.api.schemas import DaemonStatus
from brimline.api.sessions import SessionRoutes
from brimline.api.tools import ToolRoutes
from brimline.api.transcripts import TranscriptRoutes
from brimline.daemon.allocator import limit_fragmentation
from brimline.daemon.hook_requests.contacts import CONTACTS_NAME
from brimline.daemon.hook_requests.dispatcher import HookDispatcher
from brimline.daemon.hook_requests.hook_socket import HookSocket
from brimline.daemon.hook_requests.status_line_reply import StatusLines, UserStatusLine
from brimline.daemon.local_environment import LocalEnvironment, settings_reader
from brimline.daemon.notices import NoticePolicy, NoticeSender, clear_failure_notice
from brimline.daemon.parent_session import parent_sessions
from brimline.daemon.peer_credentials import TcpPeers
from brimline.daemon.retry import Work, growing_pauses, repeat, running
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
from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.daemon.tmux.message_delivery import create_delivery
from brimline.daemon.tmux.rotator import SessionRotator
from brimline.daemon.tmux.typist import Typist
from brimline.daemon.transcript_watcher import TranscriptWatcher
from brimline.daemon.uplink.exchange import Uplink, create_uplink
from brimline.errors import StoreFailed
from brimline.files.atomic_file import replace_file
from brimline.files.folder_safety import make_private_folder
from brimline.files.socket_path import socket_path
from brimline.hooks.client.autostart import STOPPED_MARK
from brimline.hooks.spool import take, take_dropped, take_late
from brimline.install.setting_check import check_settings
from brimline.monitor.handoffs import record_continuation
from brimline.monitor.session_state import SessionState
from brimline.monitor.user_rules import Rules
from brimline.server.http_server import (
    ConnectionLimits,
    HttpServer,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.server.session_service import SessionService
from brimline.sessions.rotation_report import RotationEntry, append_rotation
from brimline.settings import Settings, cache_dir, seconds, state_dir
from brimline.store.base import Store
from brimline.store.postgres import open_postgres
from brimline.store.problems import open_problems
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite.store import StoreWatch

LOGGER = logging.getLogger("brimline.server")
SAVE_INTERVAL_S = 5.0
SPOOL_INTERVAL_S = 1.0
FORGET_INTERVAL_S = 3_600.0
SOCKET_CHECK_INTERVAL_S = 1.0
RECENT_RESTART_S = 60.0
UNWRITABLE_HINT = (
    "The daemon keeps its state there: make it writable for your user, or set BRIMLINE_STATE_DIR."
)


class DaemonProcess:
    """Runs the daemon of a user, and starts it again if the file of its store is damaged.

    `is_lost` is set if it stopped because its sockets or its folder were deleted.
    """

    def __init__(self, places: Places, settings: Settings, port: int | None) -> None:
        self._places, self._settings, self._port = places, settings, port
        self._state = state_dir(places.env, places.home)
        self._links = PageLinks()
        self._run: DaemonRun | None = None
        self._stopped = False
        self.is_lost = False

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with a link to the page."""
        limit_fragmentation()
        with _lock_state_folder(self._state):
            waits = growing_pauses()
            run = await self._serve_store(self._port, ready)
            while run.wants_restart and not self._stopped:
                if time.time() - run.since > RECENT_RESTART_S:
                    waits = growing_pauses()
                await asyncio.sleep(next(waits))  # a failing disk may damage every new store
                # The same port again, or another if a program has taken it meanwhile.
                run = await self._serve_store(None, lambda address: None)
            self.is_lost = run.is_lost

    async def _serve_store(self, port: int | None, ready: Callable[[str], None]) -> "DaemonRun":
        """Open the store and serve from it; nothing in memory outlives that store."""
        store = await self._open_store()
        try:
            run = self._run = DaemonRun(
                store, self._places, self._settings, self._state, self._links, self.stop
            )
            if self._stopped:
                run.http.stop()
            await run.serve(port, ready)
        finally:
            await store.close()
        return run

    async def _open_store(self) -> Store:
        if self._settings.daemon.database is not None:
            return await open_postgres(self._settings.daemon.database)
        return await SqliteStore.open(self._state / "brimline.db")

    def stop(self) -> None:
        """Stop after the requests that are being answered."""
        self._stopped = True
        if self._run is not None:
            self._run.http.stop()


class DaemonRun:
    """The daemon on one open store. Its parts are started in order, and stopped in reverse.

    When it has ended, `wants_restart` is set if its store was damaged, `is_lost` if its sockets or
    its folder were deleted.
    """

    def __init__(
        self,
        opened: Store,
        places: Places,
        settings: Settings,
        state: Path,
        links: PageLinks,
        stop: Callable[[], None],
    ) -> None:
        self._opened, self._places, self._settings, self._state = opened, places, settings, state
        self._links, self._stop = links, stop
        self.http = HttpServer()
        self.since = time.time()
        self.wants_restart = self.is_lost = False
        self._port = self._dropped = self._late = 0
        rules = Rules.of_settings(settings)
        self._notices = NoticeSender(settings.notify)
        policy = NoticePolicy(settings.notify, rules, self._notices)
        typist = Typist(state)
        self._clearer = SessionClearer(state, typist, time.time, self._on_clear_end)
        environment = LocalEnvironment(
            places, state, policy.report_signal, self._clearer.holds_messages
        )
        self._sessions = SessionService(
            opened,
            rules,
            settings,
            self.http.is_stopping,
            environment,
            read_kept=KeptPartReader(places).read,
        )
        monitor, store = self._sessions.monitor, self._sessions.store
        self._user_line = UserStatusLine(state)
        views = self._sessions.views
        lines = StatusLines(monitor, views.handoff_status, views.cost, settings, self._user_line)
        self._dispatcher = HookDispatcher(monitor, lines, self._clearer, parent_sessions(places))
        self._rotator = SessionRotator(
            settings.handoff,
            places.home,
            state,
            store,
            monitor,
            self._clearer,
            lambda request: self._notices.send(clear_failure_notice(request)),
        )
        self._dispatcher.after_hook = self._rotator.observe
        self._calling = CallingSessions(store, monitor, views, self._dispatcher.contacts)
        self._dispatcher.answer_here = self._calling.answer
        self._hooks = HookSocket(self._socket_path("hook"), self._dispatcher)
        self._delivery = create_delivery(store, monitor, typist, places, state)
        self._uplink: Uplink | None = None

    async def serve(self, port: int | None, ready: Callable[[str], None]) -> None:
        """Serve until stopped; `ready` is called with a link to the page."""
        async with AsyncExitStack() as stack:
            # First of all, because it fails if the port is taken.
            tcp_socket = stack.enter_context(listen_tcp(port, read_port(self._state)))
            self._port = int(tcp_socket.getsockname()[1])
            write_port(self._state, self._port)
            access = AccessControl(load_or_create_secret(self._state), self._port, self._links)
            peers = TcpPeers.open()
            if peers is not None:
                stack.callback(peers.close)
            limits = ConnectionLimits(peers, raise_descriptor_limit())
            # Closed after the hooks and the clearer, whose last requests may still need them.
            stack.push_async_callback(self._user_line.close)
            stack.push_async_callback(self._notices.close)
            stack.push_async_callback(self._clearer.close)
            stack.push_async_callback(self._rotator.close)
            self._dispatcher.contacts.load(self._state)
            stack.push_async_callback(self._save_contacts)
            # Spooled hooks come before new ones, and may belong to a clear that was under way.
            await self._clearer.load()
            with suppress(StoreFailed, OSError):  # logged when the spool reader tries again
                await self._process_spool()
            await self._clearer.resume()
            stack.push_async_callback(self._hooks.close)
            self._hooks.open()
            self._uplink = create_uplink(
                self._settings.uplink,
                self._settings.stop,
                self._opened,
                self._sessions.store,
                self._state,
            )
            application = self._application(access)
            stop_on_signals(self._stop)
            _warm_up()
            unix_socket = listen_unix(self._socket_path("http"))
            stack.callback(unix_socket.unlink)
            stack.push_async_callback(self._sessions.output.close)
            self._sessions.output.start()
            works = self._works(self._hooks.is_there, unix_socket.is_reachable)
            await stack.enter_async_context(running(works))
            ready(access.page_link())
            await self.http.serve(application, limits, [tcp_socket, unix_socket])

    def _works(self, *checks: Callable[[], bool]) -> dict[str, Work]:
        """What runs in the background while the daemon serves."""
        span_s = seconds(self._settings.since)
        if self._uplink is not None:  # it reports what was done while no daemon ran, too
            span_s = max(span_s, seconds(self._settings.uplink.history))
        since = time.time() - span_s
        monitor = self._sessions.monitor
        works: dict[str, Work] = {
            "spool reader": partial(repeat, SPOOL_INTERVAL_S, self._process_spool),
            "transcript watcher": TranscriptWatcher(self._places, monitor, since).run,
            "removal of old sessions": partial(
                repeat, FORGET_INTERVAL_S, self._sessions.forget_old_sessions
            ),
            "message delivery to tmux panes": self._delivery.run,
            "record of clients' processes": partial(repeat, SAVE_INTERVAL_S, self._save_contacts),
            "socket check": partial(self._stop_when_unreachable, *checks),
        }
        if isinstance(self._opened, SqliteStore):
            watch = StoreWatch(self._opened, self._restart)
            works["store file check"] = watch.watch_file
            works["store content check"] = watch.check_content
        if self._uplink is not None:
            works["uplink"] = self._uplink.run
        return works

    def _application(self, access: AccessControl) -> Starlette:
        sessions, store, monitor = self._sessions, self._sessions.store, self._sessions.monitor
        cache = cache_dir(self._settings, self._places.env, self._places.home)
        read_settings = settings_reader(self._places)
        parts: list[Routes] = [
            DaemonRoutes(self._status, self._stop, access),
            sessions.metrics(self._status),
            TranscriptRoutes(monitor, self._places, cache=cache),
            RecallRoutes(store, self._places, cache),
            CompactionRoutes(self._places),
            ToolRoutes(partial(read_history, self._places, cache), self._places, cache),
            SessionRoutes(
                store, monitor, sessions.views, sessions.cache, self._clearer, self._delivery.wake
            ),
            HistoryRoutes(
                store,
                partial(read_history, self._places, cache),
                partial(find_recorded, self._places),
                settings=lambda agent, project: read_settings((agent, project, None)),
                check_settings=partial(check_settings, self._state, self._places, cache),
            ),
            sessions.stream,
            sessions.telemetry,
            LegacyRoutes(store, monitor),
            HookRoutes(self._dispatcher),
            HereRoutes(self._calling),
        ]
        is_open = self._settings.daemon.context_usage_without_secret
        app = create_app(store, parts, access, LEGACY_PATHS if is_open else ())
        sessions.count_ingest(app, parts)
        return app

    def _socket_path(self, name: str) -> Path:
        return socket_path(self._state, os.getuid(), name)

    def _status(self) -> DaemonStatus:
        return DaemonStatus(
            version=__version__,
            pid=os.getpid(),
            since=self.since,
            address=f"http://{HOST}:{self._port}",
            heard=self._dispatcher.request_count,
            malformed=self._dispatcher.malformed,
            dropped=self._dropped,
            late=self._late,
            hooks=self._dispatcher.last_contact,
            problems=open_problems(self._state, time.time()),
            uplink=self._uplink.status() if self._uplink else None,
        )

    def _restart(self, reason: str) -> None:
        """Restart with a new store after damage to its file; hook clients spool meanwhile.

        If the whole state folder is gone, stop instead.
        """
        if self.http.is_stopping():
            return
        if self._state.is_dir():
            LOGGER.warning("%s %s; restarting", self._state / "brimline.db", reason)
            self.wants_restart = True
        else:
            LOGGER.warning("%s was removed, shutting down", self._state)
            self.is_lost = True
        self.http.stop()

    async def _stop_when_unreachable(self, *checks: Callable[[], bool]) -> None:
        """Stop when a socket was removed, so that another daemon can be started."""
        while all(is_reachable() for is_reachable in checks):
            await asyncio.sleep(SOCKET_CHECK_INTERVAL_S)
        if not self.http.is_stopping():
            LOGGER.warning("socket removed from %s, shutting down", self._state)
            self.is_lost = True
            self.http.stop()

    async def _save_contacts(self) -> None:
        """Save which process runs which session: after a restart agents ask before a hook comes."""
        contacts = self._dispatcher.contacts
        encoded = contacts.encode_changed()  # here: hooks change them while the file is written
        if encoded is None:
            return
        try:
            await asyncio.to_thread(replace_file, self._state / CONTACTS_NAME, encoded)
        except OSError:
            contacts.is_saved = False

    async def _process_spool(self) -> None:
        """Process what hook clients spooled while no daemon answered, in order.

        If the store fails, the batch is processed again; observations that are stored already
        have no effect.
        """
        while (batch := await asyncio.to_thread(take, self._state)) is not None:
            for request in batch:
                await self._dispatcher.handle(request, late=True)
            self._dispatcher.malformed += batch.skipped
            batch.finish()
        self._dropped += take_dropped(self._state)
        self._late += take_late(self._state)

    async def _on_clear_end(self, request: ClearRequest) -> None:
        """Notify the user of a failure; move messages to the new session after a success."""
        if request.step == "failed":
            self._notices.send(clear_failure_notice(request))
        elif request.after is not None:
            store, now = self._sessions.store, time.time()
            await record_continuation(store, request.session, request.after, now, now)
            entry = RotationEntry(now, request.agent, request.session, request.after, "clear")
            with suppress(OSError):  # a report without it
                await asyncio.to_thread(append_rotation, self._state, entry)


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
