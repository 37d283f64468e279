"""uvicorn with limits: who may connect, how many, and how long a request may take.

uvicorn sets none of these: a client that connects and sends nothing keeps its file descriptor for
ever, and a request's head may have any length.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from typing import cast

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from brimline.api.responses import RETRY_AFTER_S, RETRY_HINT
from brimline.api.schemas import Problem
from brimline.daemon.peer_credentials import TcpPeers, peer_uid

MAX_HEAD_BYTES = 64 << 10
REQUEST_TIMEOUT_S = 30.0
MAX_TCP_CONNECTIONS = 1_024
RESERVED_DESCRIPTORS = 256  # for hooks, commands, transcripts and the store


class ConnectionLimits:
    """Limits of HTTP connections; `peers` is None if the system does not report who connects."""

    def __init__(
        self,
        peers: TcpPeers | None = None,
        max_tcp_connections: int = MAX_TCP_CONNECTIONS,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self._peers = peers
        self.max_tcp_connections = max_tcp_connections
        self.request_timeout_s = request_timeout_s
        self.tcp_connections = 0

    def may_connect(self, connection: socket.socket) -> bool:
        """Return whether a connection comes from our user, as far as the system reports it."""
        if connection.family == socket.AF_UNIX:
            return peer_uid(connection) in (os.getuid(), None)
        return self._peers is None or self._peers.is_ours(connection)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol within limits; subclassed by `create_server`."""

    limits: ConnectionLimits

    _is_counted = False
    _head_bytes = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = cast("socket.socket", transport.get_extra_info("socket"))
        if not self.limits.may_connect(connection):
            transport.abort()
            return
        if connection.family != socket.AF_UNIX:
            self._is_counted = True
            self.limits.tcp_connections += 1
            if self.limits.tcp_connections > self.limits.max_tcp_connections:
                self._refuse(503, "too many connections")
                return
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._is_counted:
            self._is_counted = False
            self.limits.tcp_connections -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._timer is None:
            self._start_timer()
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, f"expected a request's head of at most {MAX_HEAD_BYTES:,} bytes")

    def on_message_begin(self) -> None:
        self._in_head = True
        if self._timer is None:  # the last request ended in the same data
            self._start_timer()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0  # the body has a limit of its own
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._stop_timer()  # the response has no time limit
        super().on_message_complete()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.request_timeout_s, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, "the request took too long to arrive")

    def _refuse(self, status: int, reason: str) -> None:
        """Respond and close; a request that is being answered gets no second response."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            self.transport.write(_raw_response(status, reason))
        self.transport.close()


class _UvicornServer(uvicorn.Server):
    """uvicorn without signal handlers: they would end the process before we have cleaned up."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def create_server(
    app: ASGIApp,
    limits: ConnectionLimits,
    certificate: str | None = None,
    key: str | None = None,
) -> uvicorn.Server:
    """Return a server; set `should_exit` to stop it after the current requests.

    With a certificate it speaks TLS.
    """

    class Protocol(LimitedProtocol):
        pass

    Protocol.limits = limits
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",  # its modules would be imported at the start
        log_level="error",  # a warning for each invalid request: anyone could fill the log
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        proxy_headers=False,  # else a client on this machine could claim another address
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return _UvicornServer(config)


class HttpServer:
    """Serves an application until `stop`, which may also come before it begins."""

    def __init__(self) -> None:
        self._server: uvicorn.Server | None = None
        self._stopping = False

    async def serve(
        self,
        app: ASGIApp,
        limits: ConnectionLimits,
        sockets: list[socket.socket],
        certificate: str | None = None,
        key: str | None = None,
    ) -> None:
        self._server = create_server(app, limits, certificate, key)
        self._server.should_exit = self._stopping
        await self._server.serve(sockets=sockets)

    def is_stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        """Stop after the requests that are being answered."""
        self._stopping = True
        if self._server is not None:
            self._server.should_exit = True


def stop_on_signals(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGINT (Ctrl-C) and SIGTERM (service managers)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


def raise_descriptor_limit(max_connections: int = MAX_TCP_CONNECTIONS) -> int:
    """Raise the limit of open files; return how many TCP connections fit in."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max_connections + RESERVED_DESCRIPTORS
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if 0 <= soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    if soft < 0:
        return max_connections
    return min(max_connections, max(soft // 2, soft - RESERVED_DESCRIPTORS))


def _raw_response(status: int, reason: str) -> bytes:
    body = msgspec.json.encode(Problem(reason, RETRY_HINT))
    head = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    if status == 503:
        head.append(f"retry-after: {RETRY_AFTER_S}")
    return "\r\n".join([*head, "", ""]).encode() + body
