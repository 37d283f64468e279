"""Where a daemon listens, and the lock that lets one of a user live."""

import fcntl
import os
import socket
from pathlib import Path
from typing import Any, cast

from brimline.errors import AlreadyRunning

HOST = "127.0.0.1"
PORT = 8420
ANY = 0
BACKLOG = 128


class Alone:
    """The lock that one daemon of a user holds while it lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise AlreadyRunning(str(self._path.parent)) from None

    def __exit__(self, *raised: object) -> None:
        os.close(self._file)


def loopback(port: int | None) -> socket.socket:
    """This machine's own address at a port; None: the usual one, or any where another has that.

    AlreadyRunning where the port that is asked for cannot be had.
    """
    if port is not None:
        return _bound(port)
    try:
        return _bound(PORT)
    except AlreadyRunning:
        return _bound(ANY)


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise AlreadyRunning(f"{HOST}:{port}", error.strerror) from error
    return made


class Listening(socket.socket):
    """A Unix socket to which many short connections come."""

    def next(self) -> socket.SocketType:
        """The next connection, which never blocks.

        As `accept`, without what that adds for people: it would take longer than the answer.
        """
        descriptor, _ = cast("Any", self)._accept()
        made = socket.SocketType(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)
        made.setblocking(False)
        return made


def unix(path: Path) -> Listening:
    """A socket for this user alone; what a dead daemon left in its place is taken away."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    made = Listening(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
        made.listen(BACKLOG)
    finally:
        os.umask(before)
    return made
