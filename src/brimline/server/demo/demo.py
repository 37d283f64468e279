"""`brimline serve --demo`: the page and the API with sample sessions, independent of the daemon."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.applications import Starlette

from brimline._version import __version__
from brimline.api.access import AccessControl
from brimline.api.app import DaemonRoutes, create_app
from brimline.api.broadcast import ChangeBroadcaster
from brimline.api.event_stream import StreamRoutes
from brimline.api.history import HistoryRoutes
from brimline.api.responses import Routes
from brimline.api.schemas import DaemonStatus
from brimline.api.session_cache import SessionCache
from brimline.api.sessions import SessionRoutes
from brimline.api.views import Views
from brimline.daemon.peer_credentials import TcpPeers
from brimline.daemon.sockets import HOST, listen_tcp
from brimline.server.demo.contents import DemoTranscripts
from brimline.server.demo.player import DEMO_SPEED, RULES, Player
from brimline.server.http_server import (
    ConnectionLimits,
    HttpServer,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.store.sqlite import MemoryStore


class Demo:
    """A daemon with sample sessions, all in memory; with `at` it stops at a second of the story."""

    def __init__(
        self,
        port: int | None = None,
        speed: float = DEMO_SPEED,
        at: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._port = port
        self._at = at
        self._clock = clock
        self._since = clock()
        self._store = MemoryStore()
        self._player = Player(self._store, clock, speed)
        self._http = HttpServer()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with a link to the page."""
        with listen_tcp(self._port) as listening:
            self._port = int(listening.getsockname()[1])
            await self._player.begin(self._at or 0.0)
            access = AccessControl(secrets.token_hex(), self._port)
            limits = ConnectionLimits(TcpPeers.open(), raise_descriptor_limit())
            stop_on_signals(self.stop)
            ready(access.page_link())
            await self._serve(self._application(access), limits, listening)

    async def _serve(
        self, app: Starlette, limits: ConnectionLimits, listening: socket.socket
    ) -> None:
        playing = asyncio.create_task(self._play())
        playing.add_done_callback(lambda _: self.stop())  # stop when the player fails
        try:
            await self._http.serve(app, limits, [listening])
        finally:
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing

    async def _play(self) -> None:
        if self._at is not None:
            await asyncio.Event().wait()
        await self._player.run()

    def _application(self, access: AccessControl) -> Starlette:
        store, player, clock = self._store, self._player, self._clock
        views = Views(store, player.monitor, RULES)
        cache = SessionCache(store, views, clock)
        parts: list[Routes] = [
            DaemonRoutes(self.status, self.stop, access),
            DemoTranscripts(store, player.save_draft),
            SessionRoutes(store, player.monitor, views, cache, None, clock=clock),
            HistoryRoutes(store, player.items, player.session_ids, clock),
            StreamRoutes(cache, ChangeBroadcaster(cache, self._http.is_stopping, clock)),
        ]
        return create_app(store, parts, access)

    @property
    def address(self) -> str:
        """The URL of the page and the API."""
        return f"http://{HOST}:{self._port}"

    def status(self) -> DaemonStatus:
        """Return what `GET /v1/daemon` serves."""
        return DaemonStatus(
            version=__version__,
            pid=os.getpid(),
            since=self._since,
            address=self.address,
            heard=self._player.observed,
            malformed=0,
            dropped=0,
            demo=True,
        )

    def stop(self) -> None:
        """Stop after the requests that are being answered."""
        self._http.stop()
