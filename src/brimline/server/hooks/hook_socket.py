"""The hook socket: one request, one reply, and where it matters a byte that it was passed on,
which is sent back when that is stored.

Sockets are read as they are: a transport for each connection would cost more than the answer.
"""

import asyncio
import logging
import os
import socket
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from brimline.hooks.asking import ANSWER
from brimline.hooks.frame import InvalidFrame, Request, encode_reply, request_in
from brimline.hooks.receipt import encode_receipt
from brimline.server.eager import begin
from brimline.server.hooks.dispatcher import SILENCE, Answer, HookDispatcher
from brimline.server.peer_credentials import user_of
from brimline.server.retry import RateLimitedLog, retry_until_stored
from brimline.server.sockets import ListeningSocket, unix
from brimline.store.failures import StoreFailed

LOGGER = logging.getLogger("brimline.server")

ACK = b"\x06"
QUIET = encode_reply(b"")
PIECE, LARGER = 16 << 10, 256 << 10
"""How much is read at first, which is nearly always all, and then."""

AT_ONCE = socket.MSG_DONTWAIT
"""For each call on a connection: cheaper than to say once that it never waits."""

MAX_ACCEPTS = 8
"""Connections that are taken in one round of the loop; others have their turn then."""

PATIENCE = 4.0
"""So many seconds a client may take for its request and its word that it passed the answer on."""

CLIENT_GIVES_UP_S = ANSWER
"""After this time without an answer a client hangs up and spools its event."""

SWEEP = 1.0
"""Seconds between two looks for clients that took longer, and until it listens anew where no more
connections could be had."""


class HookSocket:
    """The user's own socket in the user's own folder; nobody else is listened to."""

    def __init__(self, path: Path, desk: HookDispatcher) -> None:
        self._path = path
        self.desk = desk
        self._loop = asyncio.get_running_loop()
        self._users = (os.getuid(), None)
        self._socket: ListeningSocket | None = None
        self._waited_for: dict[_Talk, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._troubles = RateLimitedLog()

    def open(self) -> None:
        """Listen. A socket that a dead daemon left is replaced."""
        self._socket = unix(self._path)
        self._socket.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def is_there(self) -> bool:
        """Whether an agent's hooks find it."""
        return self._socket is not None and self._socket.is_there()

    async def close(self) -> None:
        """Stop listening, end what is under way, and take the socket away."""
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.unlink()
            self._socket.close()
            self._socket = None
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=PATIENCE)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for talk in list(self._waited_for):
            talk.end(False)
        await self.desk.close()

    def _accept(self) -> None:
        """Take the connections that wait, not one in each round of the loop.

        A busy loop may need some milliseconds for a round: then hooks would come faster than they
        are taken, and the queue of the socket would grow.
        """
        for _ in range(MAX_ACCEPTS):
            if not self._accept_one():
                return

    def _accept_one(self) -> bool:
        """Take one connection; whether another may wait."""
        if self._socket is None:
            return False
        try:
            connection = self._socket.next_connection()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:  # no more files can be open: some that are have to end first
            LOGGER.warning("no hook is heard for a while: %s", error)
            self._loop.remove_reader(self._socket)
            self._loop.call_later(SWEEP, self._listen)
            return False
        if user_of(connection) in self._users:
            _Talk(self, connection).read()
        else:
            connection.close()
        return True

    def wait_for(self, talk: "_Talk", to_write: bool = False) -> None:
        """Go on with a connection when there is more to read, or room to write."""
        if to_write:
            self._loop.add_writer(talk, talk.send)
        else:
            self._loop.add_reader(talk, talk.read)
        self._waited_for.setdefault(talk, time.monotonic())
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    def forget(self, talk: "_Talk") -> None:
        """Wait for a connection no more."""
        if self._waited_for.pop(talk, None) is not None:
            self._loop.remove_reader(talk)
            self._loop.remove_writer(talk)

    def _sweep(self) -> None:
        """Hang up on those that were waited for too long; look again while there are others."""
        late = time.monotonic() - PATIENCE
        for talk in [talk for talk, since in self._waited_for.items() if since < late]:
            talk.read()  # timers run before what came while this process was stopped is read
            talk.end(False)
        waits = bool(self._waited_for)
        self._sweeper = self._loop.call_later(SWEEP, self._sweep) if waits else None

    def answer(self, talk: "_Talk", request: Request) -> None:
        """Answer a request: at once, or beside the others where something has to be waited for."""
        task = begin(self._answer(talk, request))
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, talk: "_Talk", request: Request) -> None:
        try:
            answer = await self.desk.handle(request)
        except StoreFailed as error:  # without a reply the client goes on alone, and spools it
            self._troubles.warn("hooks are left to themselves", error)
            talk.end(False)
            return
        try:
            talk.reply(answer, with_receipt=request.wants_receipt)
        except InvalidFrame as error:
            self._troubles.warn(f"a {request.kind} of {request.agent} is not answered", error)
            talk.end(False)
        if answer.matters:
            passed_on = await talk.passed_on()
            await settle(self.desk, answer, passed_on, self._troubles)
            talk.close(confirmed=passed_on)


async def settle(
    desk: HookDispatcher, answer: Answer, passed_on: bool, troubles: RateLimitedLog
) -> None:
    """Have the store keep whether a client passed an answer on, as soon as it can.

    If it did not and that cannot be kept now, it is left: later that might be said of what the next
    hook was given. The messages are handed out again after their lease all the same.
    """
    done = partial(desk.done, answer, passed_on)
    if passed_on:
        await retry_until_stored("what an agent was told is not marked yet", done, troubles)
        return
    try:
        await done()
    except StoreFailed as error:
        troubles.warn("what a hook did not pass on is not marked", error)


class _Talk:
    """One connection."""

    __slots__ = (
        "_asked", "_confirms", "_data", "_matters", "_passed_on", "_server", "_socket", "_unsent",
        "_waiting",
    )  # fmt: skip

    def __init__(self, server: HookSocket, connection: socket.SocketType) -> None:
        self._server = server
        self._socket = connection
        self._data: bytes | bytearray = b""
        self._asked = self._matters = self._confirms = False
        self._unsent = b""
        self._passed_on: bool | None = None
        self._waiting: asyncio.Future[bool] | None = None

    def fileno(self) -> int:
        """Its descriptor, by which the loop knows it."""
        return self._socket.fileno()

    def read(self) -> None:
        """A part of the request, mostly all of it; or the word that the answer was passed on."""
        try:
            data = self._socket.recv(LARGER if self._data else PIECE, AT_ONCE)
        except (BlockingIOError, InterruptedError):
            self._server.wait_for(self)
            return
        except OSError:
            data = b""
        if not data or self._asked:
            self.end(data == ACK)
            return
        try:
            request = request_in(self._joined(data))
        except InvalidFrame:
            self.end(False)
            return
        if request is None:
            self._server.wait_for(self)
        elif time.time() - request.at > CLIENT_GIVES_UP_S and self._has_gone():
            self.end(False)
        elif self._server.desk.has_none(request):
            self.reply(SILENCE)
        else:
            self._asked, self._data = True, b""
            self._server.answer(self, request)

    def _has_gone(self) -> bool:
        """Return whether the client has hung up: it has spooled its event, which comes from there.

        To process it here too would only make a daemon later that is late already.
        """
        try:
            return self._socket.recv(1, AT_ONCE | socket.MSG_PEEK) == b""
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def _joined(self, data: bytes) -> bytes | bytearray:
        """All of the request so far."""
        if not self._data:
            self._data = data
        elif isinstance(self._data, bytearray):
            self._data += data
        else:
            self._data = bytearray(self._data + data)
        return self._data

    def reply(self, answer: Answer, with_receipt: bool = False) -> None:
        """Tell the client what to print; its word that it did is waited for where it matters."""
        receipt = encode_receipt(answer.reply) if answer.matters and with_receipt else b""
        self._unsent = encode_reply(answer.text, receipt) if answer.text or receipt else QUIET
        self._matters, self._confirms = answer.matters, bool(receipt)
        if self._passed_on is None:
            self.send()

    def send(self) -> None:
        """Send the reply, or what is left of it."""
        try:
            sent = self._socket.send(self._unsent, AT_ONCE)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.end(False)
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._server.wait_for(self, to_write=True)
        elif self._matters:
            self._server.forget(self)
            self._server.wait_for(self)
        else:
            self.end(True)

    async def passed_on(self) -> bool:
        """Whether the client said that it printed the answer; waits until that is known."""
        if self._passed_on is None:
            self._waiting = asyncio.get_running_loop().create_future()
            return await self._waiting
        return self._passed_on

    def end(self, passed_on: bool) -> None:
        """Wait for this client no more; one that waits for a confirmation stays connected."""
        if self._passed_on is not None:
            return
        self._passed_on = passed_on
        self._server.forget(self)
        if not (passed_on and self._confirms):
            self._socket.close()
        if self._waiting is not None:
            self._waiting.set_result(passed_on)

    def close(self, confirmed: bool) -> None:
        """Hang up; before that tell a client that waits for it that its delivery is stored."""
        if confirmed and self._confirms:
            with suppress(OSError):  # it may not wait any more
                self._socket.send(ACK, AT_ONCE)
        self._socket.close()
