"""The daemon at the user's own socket: HTTP by hand, and its stream of events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.errors import NotRunning
from brimline.server.peer_credentials import check_own_peer

LONGEST = 64 << 20
"""No line or part of an answer is longer; what is longer comes from no daemon of ours."""

GONE = (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError)
"""How it shows that the daemon is not there, went away, or is something else."""


class Answer(msgspec.Struct, frozen=True):
    """An answer of the daemon."""

    status: int
    body: bytes

    @property
    def refusal(self) -> str | None:
        """Why it was refused; None where it was not."""
        if self.status < 400:
            return None
        try:
            return msgspec.json.decode(self.body, type=_Problem).error
        except msgspec.DecodeError:
            return f"HTTP {self.status}"


class _Problem(msgspec.Struct, frozen=True):
    error: str


class Event(NamedTuple):
    """A server-sent event; its kind is `message` if the server does not name it."""

    kind: str
    data: bytes


class Daemon:
    """Asks the daemon; NotRunning is raised whenever it does not answer, or not in time."""

    def __init__(self, socket: Path, patience: float = 10.0) -> None:
        self._socket = socket
        self._patience = patience

    async def ask(self, method: str, target: str, body: bytes = b"") -> Answer:
        """One question, one answer."""
        try:
            async with asyncio.timeout(self._patience), self._asked(method, target, body) as answer:
                status, parts = answer
                return Answer(status, b"".join([part async for part in parts]))
        except GONE as error:
            raise NotRunning(str(self._socket)) from error

    async def stream(self, target: str, silence: float) -> AsyncGenerator[Event, None]:
        """Each event; raises NotRunning when the stream ends, or is silent for so long."""
        try:
            async with self._asked("GET", target) as (status, parts):
                if status != 200:
                    raise EOFError(f"HTTP {status}")
                async for event in _events(parts, silence):
                    yield event
        except GONE as error:
            raise NotRunning(str(self._socket)) from error
        raise NotRunning(str(self._socket))

    @contextlib.asynccontextmanager
    async def _asked(
        self, method: str, target: str, body: bytes = b""
    ) -> AsyncGenerator[tuple[int, AsyncIterator[bytes]], None]:
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=LONGEST)
        try:
            check_own_peer(writer.get_extra_info("socket"))
            head = f"{method} {target} HTTP/1.1\r\nHost: brimline\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            status, headers = await _head(reader)
            chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
            yield status, _chunks(reader) if chunked else _rest(reader, headers)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    _, status, *_ = first.split()
    told = [line.partition(b":") for line in lines if line]
    return int(status), {name.lower(): value.strip() for name, _, value in told}


async def _rest(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> AsyncIterator[bytes]:
    length = headers.get(b"content-length")
    yield await (reader.read() if length is None else reader.readexactly(int(length)))


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def _events(parts: AsyncIterator[bytes], silence: float) -> AsyncIterator[Event]:
    """Each event; a comment is none, but a sign of life."""
    rest = b""
    while True:
        async with asyncio.timeout(silence):
            part = await anext(parts, b"")
        if not part:
            return
        *whole, rest = (rest + part).split(b"\n\n")
        if len(rest) > LONGEST:
            raise ValueError("an event without an end")
        for text in whole:
            lines = text.split(b"\n")
            kinds, data = _field(lines, b"event:"), _field(lines, b"data:")
            if data:
                yield Event(kinds[-1].decode() if kinds else "message", b"\n".join(data))


def _field(lines: Sequence[bytes], name: bytes) -> list[bytes]:
    return [line.removeprefix(name).lstrip() for line in lines if line.startswith(name)]
