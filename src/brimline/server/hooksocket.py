"""The hook socket: one request, one reply, one byte that says it was passed on."""

import asyncio
import os
from pathlib import Path
from typing import cast

from brimline.hooks.asking import LINE_LONGEST
from brimline.hooks.frame import InvalidFrame, Sizes, encode_reply, parse_line, parse_request
from brimline.server.desk import Answer, Desk
from brimline.server.peer import user_of
from brimline.server.sockets import unix

ACK = b"\x06"
BACKLOG = 256
PATIENCE = 4.0
"""So many seconds a client may take for its request and its word that it passed the answer on."""


class HookSocket:
    """The user's own socket in the user's own folder; nobody else is listened to."""

    def __init__(self, path: Path, desk: Desk) -> None:
        self._path = path
        self._desk = desk
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.refused = 0

    async def open(self) -> None:
        """Listen. A socket that a dead daemon left is replaced."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: _Talk(self), sock=unix(self._path), backlog=BACKLOG
        )

    async def close(self) -> None:
        """Stop listening, end what is under way, and take the socket away."""
        if self._server is not None:
            self._server.close()
        self._path.unlink(missing_ok=True)
        if self._talks:
            await asyncio.wait(self._talks, timeout=PATIENCE)

    def answer(self, talk: "_Talk", data: bytes, sizes: Sizes) -> None:
        """Answer a whole request, beside the others."""
        task = asyncio.ensure_future(self._answer(talk, data, sizes))
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _answer(self, talk: "_Talk", data: bytes, sizes: Sizes) -> None:
        try:
            request = parse_request(data[: sizes.header], data[sizes.header :])
        except InvalidFrame:
            talk.refuse()
            return
        answer = await self._desk.take(request)
        talk.reply(answer)
        if answer.matters:
            await self._desk.done(answer, await talk.passed_on())


class _Talk(asyncio.Protocol):
    """One connection. A stream and a task for each would cost more than the answer itself."""

    def __init__(self, server: HookSocket) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None
        self._data = bytearray()
        self._sizes: Sizes | None = None
        self._asked = False
        self._passed_on: bool | None = None
        self._waiting: asyncio.Future[bool] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody asks; another user is not listened to."""
        self._transport = cast("asyncio.Transport", transport)
        self._late = self._loop.call_later(PATIENCE, self.refuse)
        if user_of(transport.get_extra_info("socket")) not in (None, os.getuid()):
            self.refuse()

    def data_received(self, data: bytes) -> None:
        """A part of the request, or the word that the answer was passed on."""
        if self._asked:
            self._end(data == ACK)
            return
        self._data += data
        try:
            self._read()
        except InvalidFrame:
            self.refuse()

    def _read(self) -> None:
        if self._sizes is None:
            end = self._data.find(b"\n") + 1
            if not end and len(self._data) < LINE_LONGEST:
                return
            self._sizes = parse_line(bytes(self._data[: end or LINE_LONGEST]))
            del self._data[:end]
        whole = self._sizes.header + self._sizes.body
        if len(self._data) >= whole:
            self._asked = True
            self._server.answer(self, bytes(self._data[:whole]), self._sizes)

    def reply(self, answer: Answer) -> None:
        """Tell the client what to print; it says when it did."""
        if self._transport is None or self._transport.is_closing():
            self._end(False)
            return
        self._transport.write(encode_reply(answer.text))

    async def passed_on(self) -> bool:
        """Whether the client said that it printed the answer; waits until that is known."""
        if self._passed_on is None:
            self._waiting = self._loop.create_future()
            return await self._waiting
        return self._passed_on

    def refuse(self) -> None:
        """Hang up on who asks wrongly, or not in time."""
        self._server.refused += 1
        self._end(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; one that got its answer has said so before."""
        self._end(False)

    def _end(self, passed_on: bool) -> None:
        if self._late is not None:
            self._late.cancel()
        if self._passed_on is None:
            self._passed_on = passed_on
            if self._waiting is not None:
                self._waiting.set_result(passed_on)
        if self._transport is not None:
            self._transport.close()
