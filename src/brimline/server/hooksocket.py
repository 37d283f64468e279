"""The hook socket: one request, one reply, one byte that says it was passed on."""

import asyncio
import os
import socket
from pathlib import Path

from brimline.hooks.asking import LINE_LONGEST
from brimline.hooks.frame import InvalidFrame, Request, encode_reply, parse_line, parse_request
from brimline.server.desk import Desk
from brimline.server.peer import user_of

ACK = b"\x06"
LIMIT = 256 << 10
BACKLOG = 256
PATIENCE = 2.0
"""So many seconds a client may take for its request, and for its word that it passed it on."""


class HookSocket:
    """The user's own socket in the user's own folder; nobody else is listened to."""

    def __init__(self, path: Path, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._server: asyncio.Server | None = None
        self.refused = 0

    async def open(self) -> None:
        """Listen. A socket that a dead daemon left is replaced."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(
                self._serve, str(self._path), limit=LIMIT, backlog=BACKLOG
            )
        finally:
            os.umask(before)

    async def close(self) -> None:
        """Stop listening, and take the socket away."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection: socket.socket = writer.get_extra_info("socket")
            if user_of(connection) in (None, os.getuid()):
                await self._talk(reader, writer)
        except (OSError, TimeoutError, InvalidFrame, EOFError, asyncio.LimitOverrunError):
            self.refused += 1
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE):
            request = await _request(reader)
        answer = await self._desk.take(request)
        passed_on = False
        try:
            writer.write(encode_reply(answer.text))
            await writer.drain()
            async with asyncio.timeout(PATIENCE):
                passed_on = await reader.read(1) == ACK
        finally:
            await self._desk.done(answer, passed_on)


async def _request(reader: asyncio.StreamReader) -> Request:
    line = await reader.readuntil(b"\n")
    sizes = parse_line(line[:LINE_LONGEST])
    header = await reader.readexactly(sizes.header)
    return parse_request(header, await reader.readexactly(sizes.body))
