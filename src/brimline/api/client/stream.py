"""Asynchronous client of the daemon: requests, and the stream of server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.daemon.peer_credentials import check_own_peer
from brimline.errors import NotRunning
from brimline.files.foreign_json import JsonDecoder

TIMEOUT_S = 10.0
MAX_PART_BYTES = 64 << 20  # our daemon sends no longer line, chunk or event

# The daemon is not there, went away, or something else answered.
CONNECTION_ERRORS = (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError)


class DaemonResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes

    @property
    def refusal(self) -> str | None:
        """The error if the request was refused, else None."""
        if self.status < 400:
            return None
        problem = JsonDecoder(_Problem).decode_or_none(self.body)
        return problem.error if problem else f"HTTP {self.status}"


class _Problem(msgspec.Struct, frozen=True):
    error: str


class ServerEvent(NamedTuple):
    """A server-sent event; its kind is `message` if the server does not name it."""

    kind: str
    data: bytes


class DaemonClient:
    """Talks to the daemon; raises NotRunning if it does not answer, or not in time."""

    def __init__(self, socket: Path, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket
        self._timeout_s = timeout_s

    async def request(self, method: str, target: str, body: bytes = b"") -> DaemonResponse:
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._send(method, target, body) as (status, parts),
            ):
                return DaemonResponse(status, b"".join([part async for part in parts]))
        except CONNECTION_ERRORS as error:
            raise NotRunning(str(self._socket)) from error

    async def stream(self, target: str, silence_s: float) -> AsyncGenerator[ServerEvent, None]:
        """Yield each event; raises NotRunning if the stream ends, or is silent for too long."""
        try:
            async with self._send("GET", target) as (status, parts):
                if status != 200:
                    raise EOFError(f"HTTP {status}")
                async for event in _parse_events(parts, silence_s):
                    yield event
        except CONNECTION_ERRORS as error:
            raise NotRunning(str(self._socket)) from error
        raise NotRunning(str(self._socket))

    @contextlib.asynccontextmanager
    async def _send(
        self, method: str, target: str, body: bytes = b""
    ) -> AsyncGenerator[tuple[int, AsyncIterator[bytes]], None]:
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=MAX_PART_BYTES)
        try:
            check_own_peer(writer.get_extra_info("socket"))
            head = f"{method} {target} HTTP/1.1\r\nHost: brimline\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            status, headers = await _read_head(reader)
            chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
            yield status, _read_chunks(reader) if chunked else _read_body(reader, headers)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    _, status, *_ = first.split()
    fields = [line.partition(b":") for line in lines if line]
    return int(status), {name.lower(): value.strip() for name, _, value in fields}


async def _read_body(
    reader: asyncio.StreamReader, headers: dict[bytes, bytes]
) -> AsyncIterator[bytes]:
    length = headers.get(b"content-length")
    yield await (reader.read() if length is None else reader.readexactly(int(length)))


async def _read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def _parse_events(
    parts: AsyncIterator[bytes], silence_s: float
) -> AsyncIterator[ServerEvent]:
    """Yield each event; a comment is no event, but ends the silence."""
    rest = b""
    while True:
        async with asyncio.timeout(silence_s):
            part = await anext(parts, b"")
        if not part:
            return
        *complete, rest = (rest + part).split(b"\n\n")
        if len(rest) > MAX_PART_BYTES:
            raise ValueError("an event without an end")
        for text in complete:
            lines = text.split(b"\n")
            kinds, data = _field_values(lines, b"event:"), _field_values(lines, b"data:")
            if data:
                yield ServerEvent(
                    kinds[-1].decode("utf-8", "replace") if kinds else "message", b"\n".join(data)
                )


def _field_values(lines: Sequence[bytes], name: bytes) -> list[bytes]:
    return [line.removeprefix(name).lstrip() for line in lines if line.startswith(name)]
