"""The daemon: one for each user, by a lock; it begins where another was killed."""

import asyncio
import fcntl
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import uvicorn

from brimline._version import __version__
from brimline.errors import AlreadyRunning
from brimline.hooks.spool import take, take_dropped
from brimline.monitor.monitor import Monitor
from brimline.monitor.rules import Rules
from brimline.monitor.watched import Watched
from brimline.server.app import Api
from brimline.server.desk import Desk
from brimline.server.hooksocket import HookSocket
from brimline.server.ownline import OwnLine
from brimline.server.views import Status
from brimline.settings import Settings, socket_path, state_dir
from brimline.sources import source
from brimline.sources.base import Places
from brimline.store.sqlite import SqliteStore
from brimline.windows import ClientSettings

LOGGER = logging.getLogger("brimline.server")
SPOOL_EVERY = 1.0
HOST = "127.0.0.1"
PORT = 8420
BACKLOG = 128


class Daemon:
    """Everything that runs, and the order in which it begins and ends."""

    def __init__(self, places: Places, settings: Settings, port: int = PORT) -> None:
        self._places = places
        self._settings = settings
        self._port = port
        self.state = state_dir(places.env, places.home)
        self._since = time.time()
        self._dropped = 0
        self._desk: Desk | None = None
        self._http: uvicorn.Server | None = None

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until it is told to stop; `ready` is told the address."""
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _Alone(self.state / "lock"):
            store = await SqliteStore.open(self.state / "brimline.db")
            try:
                await self._serve(store, ready)
            finally:
                await store.close()

    async def _serve(self, store: SqliteStore, ready: Callable[[str], None]) -> None:
        loopback = _loopback(self._port)  # before anything is there that others would find
        monitor = Monitor(
            store, time.time, Rules.of_settings(self._settings), _client_settings(self._places)
        )
        self._desk = desk = Desk(monitor, time.time, OwnLine(self.state))
        await self._take_spool(desk)
        hooks = HookSocket(socket_path(self.state, os.getuid()), desk)
        await hooks.open()
        api = Api(store, monitor, desk, self.status, self.stop)
        sockets = [loopback, _unix(socket_path(self.state, os.getuid(), "http"))]
        self._http = server = _server(api)
        spooling = asyncio.create_task(self._keep_taking(desk))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        _warm_up()
        ready(self.address)
        try:
            await server.serve(sockets=sockets)
        finally:
            spooling.cancel()
            await hooks.close()
            socket_path(self.state, os.getuid(), "http").unlink(missing_ok=True)

    @property
    def address(self) -> str:
        """Where the page and the API are."""
        return f"http://{HOST}:{self._port}"

    def status(self) -> Status:
        """What it says of itself."""
        desk = self._desk
        return Status(
            version=__version__,
            pid=os.getpid(),
            since=self._since,
            address=self.address,
            heard=desk.heard if desk else 0,
            malformed=desk.malformed if desk else 0,
            dropped=self._dropped,
        )

    def stop(self) -> None:
        """End, after what is under way."""
        if self._http is not None:
            self._http.should_exit = True

    async def _keep_taking(self, desk: Desk) -> None:
        while True:
            await asyncio.sleep(SPOOL_EVERY)
            await self._take_spool(desk)

    async def _take_spool(self, desk: Desk) -> None:
        """What was told while nobody listened, in order, once."""
        while (batch := await asyncio.to_thread(take, self.state)) is not None:
            for request in batch:
                await desk.take(request, late=True)
            batch.finish()
        self._dropped += take_dropped(self.state)


class _Alone:
    """The lock that one daemon of a user holds while it lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise AlreadyRunning(str(self._path.parent)) from None

    def __exit__(self, *raised: object) -> None:
        os.close(self._file)


class _Server(uvicorn.Server):
    """uvicorn would end the process by the signal that stopped it; we have more to put away."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the daemon's."""
        yield


def _server(api: Api) -> uvicorn.Server:
    return _Server(
        uvicorn.Config(
            api.app(),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )


def _loopback(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise AlreadyRunning(f"{HOST}:{port}", error.strerror) from error
    return made


def _unix(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
        made.listen(BACKLOG)
    finally:
        os.umask(before)
    return made


def _client_settings(places: Places) -> Callable[[str, str | None], ClientSettings]:
    """What the user told the client; read again when a minute has passed."""

    @lru_cache(maxsize=256)
    def read(agent: str, project: str | None, minute: int) -> ClientSettings:
        return source(agent).settings(places, project)

    return lambda agent, project: read(agent, project, int(time.time() // 60))


def _warm_up() -> None:
    """Load what the first answer needs: an agent waits for it no longer than for any other."""
    Watched("claude", "").reading()


def quiet_signals() -> None:
    """A terminal that is closed does not end the daemon."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
