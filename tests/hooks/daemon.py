"""A small daemon on a real socket whose behaviour a test chooses."""

import queue
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client.exchange import ACK, MAX_LINE_BYTES, MAX_REPLY_BYTES
from brimline.hooks.protocol import encode_reply, parse_line, parse_request

MAX_WAIT_S = 30.0
LAST = b"last\n"  # sent by `last_exchange` to mark the end of earlier connections

NOBODY = 65534  # uid of another user

# Bytes that are no reply.
GARBAGE: dict[str, bytes] = {
    "no frame": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no line": b"x" * 1000,
    "no number": b"BRIMLINE 1 many\n{}",
    "no size": b"BRIMLINE 1 \n{}",
    "negative": b"BRIMLINE 1 -2\n{}",
    "signed": b"BRIMLINE 1 +2\n{}",
    "spaced": b"BRIMLINE 1  2\n{}",
    "two numbers": b"BRIMLINE 1 2 2\n{}",
    "another version": b"BRIMLINE 2 2\n{}",
    "too long": b"BRIMLINE 1 %d\n" % (MAX_REPLY_BYTES + 1),
    "far too long": b"BRIMLINE 1 %b\n" % (b"9" * 40),
    "no number of this world": b"BRIMLINE 1 %b\n" % (b"9" * 5000),
    "part of a line": b"BRIMLINE 1",
    "part of an answer": b"BRIMLINE 1 10\n{}",
}


@dataclass(frozen=True)
class Exchange:
    """A request and whether its reply was acknowledged."""

    request: HookRequest
    acknowledged: bool


# Handles a request; returns whether the client acknowledged the reply.
Behaviour: TypeAlias = Callable[[socket.socket, HookRequest], bool]


def client_pid(request: HookRequest) -> int:
    return int(request.id.partition("-")[2])


class Daemon:
    """Listens in a thread until it is closed."""

    def __init__(self, path: Path, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._ended: queue.Queue[Exchange | None] = queue.Queue()
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def last_exchange(self, pid: int | None = None) -> Exchange | None:
        """Return the last exchange with a client that has ended, or None.\n\n        Connections
        are served in order: when our own is served, all earlier ones were.\n"""
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self._path))
            last.sendall(LAST)
        ended = iter(lambda: self._ended.get(timeout=MAX_WAIT_S), None)
        exchanges = [one for one in ended if one and pid in (None, client_pid(one.request))]
        return exchanges[-1] if exchanges else None

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(MAX_WAIT_S)
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
            request = read_request(file, line) if line not in (b"", LAST) else None
        if request is not None:
            self._ended.put(Exchange(request, self._run_behaviour(connection, request)))
        elif line == LAST:
            self._ended.put(None)

    def _run_behaviour(self, connection: socket.socket, request: HookRequest) -> bool:
        """Return whether the client acknowledged; one that disconnected did not."""
        try:
            return self._behaviour(connection, request)
        except OSError:
            return False


def read_request(file: BinaryIO, line: bytes) -> HookRequest | None:
    """Return the request, or None if the client disconnected."""
    sizes = parse_line(line)
    header, body = file.read(sizes.header), file.read(sizes.body)
    return parse_request(header, body) if len(body) == sizes.body else None


def waits(connection: socket.socket, request: HookRequest) -> bool:
    """Send nothing until the client disconnects."""
    return connection.recv(1) == ACK


def dies(connection: socket.socket, request: HookRequest) -> bool:
    """Disconnect without a reply."""
    return False


def sends(raw: bytes) -> Behaviour:
    """Send raw bytes, then wait for the acknowledgement."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(raw)
        return connection.recv(1) == ACK

    return behave


def answers(text: bytes) -> Behaviour:
    """Send a reply, then wait for the acknowledgement."""
    return sends(encode_reply(text))


def answers_and_dies(text: bytes) -> Behaviour:
    """Send a reply and disconnect before it can be acknowledged."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(encode_reply(text))
        return False

    return behave


def answers_late(connection: socket.socket, request: HookRequest) -> bool:
    """Reply after the client has stopped waiting."""
    connection.recv(1)
    return sends(encode_reply(b"late"))(connection, request)


def gives_receipt(text: bytes, receipt: bytes, confirms: bool) -> Behaviour:
    """Reply with a receipt; then confirm the delivery, or die before it is stored."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(encode_reply(text, receipt))
        acknowledged = connection.recv(1) == ACK
        if acknowledged and confirms:
            connection.sendall(ACK)
        return acknowledged

    return behave


def never_confirms(text: bytes, receipt: bytes) -> Behaviour:
    """Reply with a receipt, then send nothing until the client disconnects."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        acknowledged = gives_receipt(text, receipt, confirms=False)(connection, request)
        connection.recv(1)
        return acknowledged

    return behave
