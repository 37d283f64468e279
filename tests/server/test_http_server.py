"""Limits of HTTP connections: request time, size of the head, number of connections."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from brimline.daemon.sockets import listen_unix
from brimline.server.http_server import MAX_HEAD_BYTES, ConnectionLimits, create_server

MAX_WAIT_S = 60.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def hello(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@asynccontextmanager
async def serving(limits: ConnectionLimits) -> AsyncGenerator[int]:
    """Serve with these limits on a port, for a limited time."""
    app = Starlette(routes=[Route("/", hello, methods=["GET", "POST"])])
    http = create_server(app, limits)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(http.serve(sockets=[listening]))
        while not http.started:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                yield listening.getsockname()[1]
        finally:
            http.should_exit = True
            await task


async def exchange(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send pieces; return what the server sends until it disconnects, perhaps before the last."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reading = asyncio.create_task(read_all(reader))
    try:
        for piece in pieces:
            writer.write(piece)
            with suppress(ConnectionError):
                await writer.drain()
            await asyncio.sleep(pause)
        return await reading
    finally:
        writer.close()


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the end, or until the connection is reset."""
    data = b""
    with suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            data += piece
    return data


async def test_too_long_head_is_refused_at_its_limit() -> None:
    async with serving(ConnectionLimits()) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET + b"X: ")
        sent = 0
        try:
            while sent < 40 << 20:
                writer.write(b"a" * (64 << 10))
                await asyncio.wait_for(writer.drain(), MAX_WAIT_S)
                sent += 64 << 10
        except ConnectionError:
            pass
        assert sent < 20 << 20
        writer.close()
        answer = await exchange(port, GET + b"X: " + b"a" * 2 * MAX_HEAD_BYTES)
        assert answer.startswith(b"HTTP/1.1 431") or answer == b""


async def test_limit_of_the_head_does_not_apply_to_the_body() -> None:
    async with serving(ConnectionLimits()) as port:
        body = b"x" * (4 * MAX_HEAD_BYTES)
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        answer = await exchange(port, head % len(body), body)
        assert answer.endswith(b"%d" % len(body))


@pytest.mark.parametrize(
    "pieces", [(), (b"\r\n",), (b"GET / HTTP/1.1\r\n",), (GET + b"\r\n", b"GET")]
)
async def test_missing_or_partial_request_is_disconnected(pieces: tuple[bytes, ...]) -> None:
    async with serving(ConnectionLimits(request_timeout_s=0.3)) as port:
        begun = time.monotonic()
        answer = await exchange(port, *pieces, pause=0.05)
        assert b"HTTP/1.1 408" in answer
        assert time.monotonic() - begun > 0.2


async def test_request_sent_byte_by_byte_gets_no_extra_time() -> None:
    async with serving(ConnectionLimits(request_timeout_s=0.3)) as port:
        pieces = [bytes([byte]) for byte in GET + b"\r\n" * 40]
        answer = await exchange(port, *pieces, pause=0.05)
        assert b"HTTP/1.1 200" not in answer


async def test_connection_over_the_limit_gets_503_until_another_closes() -> None:
    limits = ConnectionLimits(max_tcp_connections=2)
    async with serving(limits) as port:
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        while limits.tcp_connections < 2:
            await asyncio.sleep(0.01)
        answer = await exchange(port)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"\r\nretry-after: " in answer
        for _, writer in connections:
            writer.close()
        while limits.tcp_connections:
            await asyncio.sleep(0.01)
        answer = await exchange(port, GET + b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")


async def test_unix_connections_do_not_count_towards_the_limit(tmp_path: Path) -> None:
    limits = ConnectionLimits(max_tcp_connections=0)
    http = create_server(Starlette(routes=[Route("/", hello)]), limits)
    listening = listen_unix(tmp_path / "http.sock")
    task = asyncio.create_task(http.serve(sockets=[listening]))
    while not http.started:
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_unix_connection(tmp_path / "http.sock")
    writer.write(GET + b"Connection: close\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    http.should_exit = True
    await task
