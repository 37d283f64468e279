"""A replica of a fleet's server: any number of them share one PostgreSQL database."""

import socket
from collections.abc import Callable
from functools import partial

import msgspec

from brimline.daemon.allocator import limit_fragmentation
from brimline.daemon.retry import repeat, running
from brimline.server.fleet.app import FleetApp
from brimline.server.fleet.listen_address import ListenAddress
from brimline.server.http_server import (
    ConnectionLimits,
    HttpServer,
    raise_descriptor_limit,
    stop_on_signals,
)
from brimline.settings import Settings
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase

MAX_CONNECTIONS = 16_384
FORGET_INTERVAL_S = 3_600.0
SUM_INTERVAL_S = 20.0  # costs in the fleet view are at most this old


class FleetServer:
    """Serves all organisations of a database until it is stopped."""

    def __init__(self, settings: Settings, database: str, address: ListenAddress) -> None:
        address.check()
        self._settings, self._database, self._address = settings, database, address
        self._http = HttpServer()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Run until stopped; `ready` is called with the server's address."""
        limit_fragmentation()
        with self._address.listen() as listening:
            address = msgspec.structs.replace(self._address, port=listening.getsockname()[1])
            database = await open_database(self._database)
            try:
                await self._serve(database, address, listening, ready)
            finally:
                await database.close()

    async def _serve(
        self,
        database: PostgresDatabase,
        address: ListenAddress,
        listening: socket.socket,
        ready: Callable[[str], None],
    ) -> None:
        app = FleetApp(database, self._settings, address, self._http.is_stopping)
        limits = ConnectionLimits(None, raise_descriptor_limit(MAX_CONNECTIONS))
        stop_on_signals(self._http.stop)
        works = {
            "removal of old sessions": partial(
                repeat, FORGET_INTERVAL_S, app.organisations.forget_old
            ),
            "sums of costs": partial(repeat, SUM_INTERVAL_S, app.organisations.sum_costs),
        }
        ready(address.url)
        try:
            async with running(works):
                await self._http.serve(app, limits, [listening], address.certificate, address.key)
        finally:
            await app.organisations.close()
