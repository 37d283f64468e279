"""The Unix socket of the hook protocol: one request and one reply per connection.

If the reply contains messages or a document, the client acknowledges it with one byte, which is
sent back when the delivery is stored.
"""

import asyncio
import logging
import os
import socket
import time
from functools import partial
from pathlib import Path

from brimline.agents.hook_adapter import HookRequest
from brimline.daemon.hook_requests.dispatcher import Answer, HookDispatcher
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.peer_credentials import peer_uid
from brimline.daemon.retry import retry_until_stored
from brimline.daemon.sockets import ListeningSocket, listen_unix
from brimline.errors import StoreFailed
from brimline.hooks.client.exchange import ANSWER_DEADLINE_S
from brimline.hooks.protocol import InvalidFrame, encode_receipt, encode_reply, read_request

LOGGER = logging.getLogger("brimline.server")

ACK = b"\x06"
READ_BYTES = 64 << 10
CLIENT_WAIT_S = 4.0  # for a request, and for the acknowledgement of a reply
CLIENT_GIVES_UP_S = ANSWER_DEADLINE_S  # after this time without an answer a client spools its event
ACCEPT_RETRY_S = 1.0  # pause after an accept that failed, e.g. for want of file descriptors
MAX_ACCEPTS = 16  # connections that are accepted in one round of the event loop


class HookSocket:
    """Answers the hook clients of this user; connections of other users are closed."""

    def __init__(
        self,
        path: Path,
        dispatcher: HookDispatcher,
        client_wait_s: float = CLIENT_WAIT_S,
        accept_retry_s: float = ACCEPT_RETRY_S,
    ) -> None:
        self._path = path
        self._dispatcher = dispatcher
        self._client_wait_s = client_wait_s
        self._accept_retry_s = accept_retry_s
        self._loop = asyncio.get_running_loop()
        self._socket: ListeningSocket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: set[asyncio.StreamWriter] = set()
        self._log = RateLimitedLog()

    def open(self) -> None:
        """Listen. A socket that a dead daemon left is replaced."""
        self._socket = listen_unix(self._path)
        self._socket.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._accept)

    def is_there(self) -> bool:
        """Return whether hook clients can find the socket."""
        return self._socket is not None and self._socket.is_reachable()

    async def close(self) -> None:
        """Stop listening, finish the requests under way, and remove the socket."""
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.unlink()
            self._socket.close()
            self._socket = None
        await asyncio.sleep(0)  # connections that were just accepted begin to read
        for writer in self._reading:
            writer.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._client_wait_s)
            for task in late:
                task.cancel()

    def _accept(self) -> None:
        """Accept the connections that wait.

        Not one in each round of the event loop: a busy loop may need some milliseconds for a round,
        and hooks would come faster than they are accepted.
        """
        for _ in range(MAX_ACCEPTS):
            if self._socket is None or not self._accept_one(self._socket):
                return

    def _accept_one(self, listening: ListeningSocket) -> bool:
        """Accept one connection; return whether another one may wait."""
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:  # EMFILE: some connections have to end first
            retry_s = self._accept_retry_s
            LOGGER.warning("cannot accept hook connections, retrying in %g s: %s", retry_s, error)
            self._loop.remove_reader(listening)
            self._loop.call_later(retry_s, self._listen)
            return False
        if peer_uid(connection) in (os.getuid(), None):
            task = self._loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            connection.close()
        return True

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        try:
            request = await self._read_request(reader, writer)
            if request is not None and not _has_given_up(request, connection):
                await self._answer(request, reader, writer)
        except OSError:  # the client hung up
            pass
        finally:
            writer.close()

    async def _read_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HookRequest | None:
        """Read a request; None if the client is too slow, hangs up, or sends no request."""
        data = b""
        self._reading.add(writer)
        try:
            async with asyncio.timeout(self._client_wait_s):
                while (request := read_request(data)) is None:
                    piece = await reader.read(READ_BYTES)
                    if not piece:
                        return None
                    data += piece
        except (TimeoutError, InvalidFrame):
            return None
        finally:
            self._reading.discard(writer)
        return request

    async def _answer(
        self, request: HookRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            answer = await self._dispatcher.handle(request)
        except StoreFailed as error:  # without a reply the client spools the event
            self._log.warn("cannot store hook events, clients will spool them", error)
            return
        wants_receipt = answer.wants_ack and request.wants_receipt
        try:
            reply = encode_reply(
                answer.text, encode_receipt(answer.reply) if wants_receipt else b""
            )
        except InvalidFrame as error:
            self._log.warn(f"cannot answer a {request.kind} of {request.agent}", error)
            reply = b""
        is_printed: bool | None = False
        if reply and not reader.at_eof():  # else the client has given up
            is_printed = await self._send(reply, answer.wants_ack, reader, writer)
        if not (is_printed and wants_receipt):
            writer.close()
        if answer.wants_ack:
            await record_delivery(self._dispatcher, answer, is_printed, self._log)
        if is_printed and wants_receipt:
            writer.write(ACK)

    async def _send(
        self,
        reply: bytes,
        wants_ack: bool,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool | None:
        """Send a reply; return True if the client acknowledged that it printed it.

        None if that is unknown: a client that was killed may have printed it.
        """
        try:
            async with asyncio.timeout(self._client_wait_s):
                writer.write(reply)
                await writer.drain()
                return (wants_ack and await reader.read(READ_BYTES) == ACK) or None
        except (OSError, TimeoutError):
            return None


def _has_given_up(request: HookRequest, connection: socket.socket) -> bool:
    """Return whether the client has hung up: it has spooled its event, which comes from there.

    To process it here too would only make a daemon later that is late already.
    """
    if time.time() - request.at <= CLIENT_GIVES_UP_S:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True


async def record_delivery(
    dispatcher: HookDispatcher, answer: Answer, acknowledged: bool | None, log: RateLimitedLog
) -> None:
    """Store whether a client passed an answer on, as soon as the store can.

    That it did not is tried once: later that might be recorded of what the next hook was given.
    The messages are handed out again after their lease in any case.
    """
    record = partial(dispatcher.acknowledge, answer, acknowledged)
    if acknowledged:
        await retry_until_stored("cannot store deliveries, will retry", record, log)
        return
    try:
        await record()
    except StoreFailed as error:
        log.warn("cannot store that messages were not delivered", error)
