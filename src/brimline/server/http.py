"""uvicorn on sockets that are open already, without its signal handlers."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from brimline.server.http_protocol import ConnectionLimits, limited_protocol


class _Server(uvicorn.Server):
    """uvicorn without signal handlers: they would end the process before we have cleaned up."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def create_server(app: Starlette, limits: ConnectionLimits) -> uvicorn.Server:
    """Return a server; set `should_exit` to stop it after the current requests."""
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        ws="none",
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGINT (Ctrl-C) and SIGTERM (service managers)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
