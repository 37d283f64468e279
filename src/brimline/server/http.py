"""HTTP on sockets that are open already: uvicorn, and nothing that it would do beside."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from brimline.server.http_protocol import ConnectionLimits, limited_protocol


class _Server(uvicorn.Server):
    """uvicorn would end the process by the signal that stopped it; we have more to put away."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the daemon's."""
        yield


def create_server(app: Starlette, limits: ConnectionLimits) -> uvicorn.Server:
    """What serves an application; `should_exit` ends it after what is under way."""
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
    """Let Ctrl-C, and a service manager's word, end what runs in this loop."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
