"""Asynchronous client of the daemon: requests, and the stream of server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.api.client.request import MAX_RESPONSE_BYTES, Refusal
from brimline.daemon.http_client import HttpFailed, ReplyReader, encode_head
from brimline.daemon.peer_credentials import check_own_peer
from brimline.errors import NotRunning
from brimline.files.foreign_json import JsonDecoder

TIMEOUT_S = 10.0
MAX_EVENT_BYTES = 64 << 20  # our daemon sends no longer one

# The daemon is not there, went away, or something else answered; a TimeoutError is an OSError.
CONNECTION_ERRORS = (OSError, HttpFailed)


class DaemonResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes

    @property
    def refusal(self) -> str | None:
        """The error if the request was refused, else None."""
        if self.status < 400:
            return None
        refusal = JsonDecoder(Refusal).decode_or_none(self.body)
        return (refusal and refusal.error) or f"HTTP {self.status}"


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
                self._send(method, target, body) as reply,
            ):
                content = await reply.read_all(MAX_RESPONSE_BYTES)
                return DaemonResponse(reply.status, content)
        except CONNECTION_ERRORS as error:
            raise NotRunning(str(self._socket)) from error

    async def stream(self, target: str, silence_s: float) -> AsyncGenerator[ServerEvent, None]:
        """Yield each event; raises NotRunning if the stream ends, or is silent for too long."""
        try:
            async with self._send("GET", target) as reply:
                async for event in _read_events(reply, silence_s):
                    yield event
        except CONNECTION_ERRORS as error:
            raise NotRunning(str(self._socket)) from error
        raise NotRunning(str(self._socket))

    @contextlib.asynccontextmanager
    async def _send(
        self, method: str, target: str, body: bytes = b""
    ) -> AsyncGenerator[ReplyReader, None]:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            check_own_peer(writer.get_extra_info("socket"))
            headers = {"Host": "brimline", "Connection": "close", "Content-Length": str(len(body))}
            writer.write(encode_head(method, target, headers) + body)
            await writer.drain()
            yield ReplyReader(reader)
        finally:
            writer.transport.abort()


async def _read_events(reply: ReplyReader, silence_s: float) -> AsyncIterator[ServerEvent]:
    """Yield each event; a comment is no event, but ends the silence."""
    rest = b""
    while True:
        async with asyncio.timeout(silence_s):
            part = await reply.read()
        if not part or reply.status != 200:
            return
        *complete, rest = (rest + part).split(b"\n\n")
        if len(rest) > MAX_EVENT_BYTES:
            raise HttpFailed("an event without an end")
        for text in complete:
            lines = text.split(b"\n")
            kinds, data = _field_values(lines, b"event:"), _field_values(lines, b"data:")
            if data:
                yield ServerEvent(
                    kinds[-1].decode("utf-8", "replace") if kinds else "message", b"\n".join(data)
                )


def _field_values(lines: Sequence[bytes], name: bytes) -> list[bytes]:
    return [line.removeprefix(name).lstrip() for line in lines if line.startswith(name)]
