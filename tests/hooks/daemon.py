"""A daemon of a few lines on a real socket, which does with a request what a test wants."""

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

PATIENCE = 30.0
LAST = b"last\n"
"""What a test sends that wants to know what came before."""

NOBODY = 65534
"""Another user."""

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
"""What is no answer."""


@dataclass(frozen=True)
class Conversation:
    """What came of a connection."""

    request: HookRequest
    acknowledged: bool


Behaviour: TypeAlias = Callable[[socket.socket, HookRequest], bool]
"""What is done with a request; whether the client acknowledged it."""


def ran_as(request: HookRequest) -> int:
    """The process that a client ran as."""
    return int(request.id.partition("-")[2])


class Daemon:
    """Listens in a thread of its own until it is closed."""

    def __init__(self, path: Path, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._ended: queue.Queue[Conversation | None] = queue.Queue()
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

    def heard(self, pid: int | None = None) -> Conversation | None:
        """What came of the connection of a client that has ended; None where it told nothing.

        Connections are served one after the other: when our own is, all before it were.
        """
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self._path))
            last.sendall(LAST)
        ended = iter(lambda: self._ended.get(timeout=PATIENCE), None)
        found = [one for one in ended if one and pid in (None, ran_as(one.request))]
        return found[-1] if found else None

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE)
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
            request = read_request(file, line) if line not in (b"", LAST) else None
        if request is not None:
            self._ended.put(Conversation(request, self._behaved(connection, request)))
        elif line == LAST:
            self._ended.put(None)

    def _behaved(self, connection: socket.socket, request: HookRequest) -> bool:
        """Whether it was acknowledged; a client that went away did not."""
        try:
            return self._behaviour(connection, request)
        except OSError:
            return False


def read_request(file: BinaryIO, line: bytes) -> HookRequest | None:
    """The request that a client sends; None where it went away meanwhile."""
    sizes = parse_line(line)
    header, body = file.read(sizes.header), file.read(sizes.body)
    return parse_request(header, body) if len(body) == sizes.body else None


def waits(connection: socket.socket, request: HookRequest) -> bool:
    """Say nothing until the client goes away."""
    return connection.recv(1) == ACK


def dies(connection: socket.socket, request: HookRequest) -> bool:
    """Go away without a word."""
    return False


def sends(raw: bytes) -> Behaviour:
    """Send just this, and wait to hear that it arrived."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(raw)
        return connection.recv(1) == ACK

    return behave


def answers(text: bytes) -> Behaviour:
    """Answer, and wait to hear that it arrived."""
    return sends(encode_reply(text))


def answers_and_dies(text: bytes) -> Behaviour:
    """Answer, and be gone before anyone could say that it arrived."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(encode_reply(text))
        return False

    return behave


def answers_late(connection: socket.socket, request: HookRequest) -> bool:
    """Answer when the client does not wait any more."""
    connection.recv(1)
    return sends(encode_reply(b"late"))(connection, request)


def gives_receipt(text: bytes, receipt: bytes, confirms: bool) -> Behaviour:
    """Answer with a receipt; then confirm the delivery, or die before it is stored."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        connection.sendall(encode_reply(text, receipt))
        acknowledged = connection.recv(1) == ACK
        if acknowledged and confirms:
            connection.sendall(ACK)
        return acknowledged

    return behave


def never_confirms(text: bytes, receipt: bytes) -> Behaviour:
    """Answer with a receipt, and say nothing more until the client goes away."""

    def behave(connection: socket.socket, request: HookRequest) -> bool:
        acknowledged = gives_receipt(text, receipt, confirms=False)(connection, request)
        connection.recv(1)
        return acknowledged

    return behave
