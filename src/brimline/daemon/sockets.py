"""The sockets that the daemon listens on, and the lock that allows one daemon per user."""

import os
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from brimline.errors import AlreadyRunning, NotRunning
from brimline.files.atomic_file import replace_file
from brimline.files.file_lock import lock_file, locked_file
from brimline.files.folder_safety import make_private_folder
from brimline.files.regular_file import read_regular_file
from brimline.files.socket_path import short_socket_folder

HOST = "127.0.0.1"
DEFAULT_PORT = 8420
MAX_USUAL_PORTS = 20  # tried one after the other if none is given
ANY_PORT = 0
BACKLOG = 128

LOCK_NAME = "lock"  # in the state folder
LOCK_WAIT_S = 0.2  # `find_unresponsive` in another process holds it for a moment
MAX_PID_BYTES = 20

PORT_FILE = "port"  # in the state folder: the port that this user's daemon had last
MAX_PORT_BYTES = 16

FileIdentity: TypeAlias = tuple[int, int, int]


class DaemonUnresponsive(NotRunning):
    """A process holds the daemon's lock but does not answer; `pid` is from the lock file."""

    def __init__(self, lock: Path, pid: int | None) -> None:
        super().__init__(str(lock))
        self.pid = pid
        who = f"process {pid}" if pid else "an unknown process"
        self.args = (f"{who} holds {lock}, but the daemon does not answer",)
        kill = f"kill -9 {pid}" if pid else f"fuser -k {lock}"
        self.hint = f"If it just started or is busy, wait a moment; else stop it: `{kill}`."


@contextmanager
def hold_instance_lock(path: Path) -> Generator[None]:
    """Hold the lock of a running daemon, with our process id in it; raises AlreadyRunning."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(locked_file(path, LOCK_WAIT_S))
        except TimeoutError:
            raise AlreadyRunning(str(path.parent)) from None
        os.ftruncate(file, 0)
        os.write(file, b"%d\n" % os.getpid())
        yield


def find_unresponsive(path: Path) -> DaemonUnresponsive | None:
    """Return the error to raise if a process holds this lock, else None."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if lock_file(file, wait_s=0):
            return None
        pid = os.pread(file, MAX_PID_BYTES, 0).strip()
        return DaemonUnresponsive(path, int(pid) if pid.isdigit() else None)
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(file)


def read_port(state: Path) -> int | None:
    """Return the port of the last daemon; None if there was none. The next one uses it again.

    HTTP hooks in an agent's settings name it. On a machine with several users the default port may
    belong to another user's daemon, which must not get these prompts.
    """
    try:
        text = read_regular_file(state / PORT_FILE, MAX_PORT_BYTES, follow_links=False).strip()
    except OSError:
        return None
    port = int(text) if text.isdigit() else 0
    return port if 0 < port < 1 << 16 else None


def write_port(state: Path, port: int) -> None:
    """Save the port if possible; without the file the default port is tried first."""
    with suppress(OSError):
        replace_file(state / PORT_FILE, b"%d\n" % port)


def listen_tcp(port: int | None, last: int | None = None) -> socket.socket:
    """Listen on 127.0.0.1 at a port; None: the last, else the first free from 8420 on, else any.

    Raises AlreadyRunning if the given port is taken.
    """
    if port is not None:
        return _bind_tcp(port)
    usual = range(DEFAULT_PORT, DEFAULT_PORT + MAX_USUAL_PORTS)
    for candidate in usual if last is None else (last, *usual):
        with suppress(AlreadyRunning):
            return _bind_tcp(candidate)
    return _bind_tcp(ANY_PORT)


def _bind_tcp(port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((HOST, port))
        server.listen(BACKLOG)
    except OSError as error:
        server.close()
        raise AlreadyRunning(f"{HOST}:{port}", error.strerror) from error
    return server


class ListeningSocket(socket.socket):
    """A Unix socket for this user alone, which knows whether its path still leads to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self.bind(str(path))
            self.listen(BACKLOG)
        finally:
            os.umask(before)
        self.path, self._file = path, _file_identity(path)

    def is_reachable(self) -> bool:
        """Whether its path still leads to it."""
        current = _file_identity(self.path)
        return self._file is not None and current is not None and self._file[:2] == current[:2]

    def unlink(self) -> None:
        """Remove its path, unless another socket has taken it."""
        if self._file is not None and self._file == _file_identity(self.path):
            self.path.unlink(missing_ok=True)


def listen_unix(path: Path) -> ListeningSocket:
    """Listen on a Unix socket for this user; a dead daemon's socket is replaced.

    Raises UnsafeFolder if another user could replace it.
    """
    make_private_folder(path.parent, strict=path.parent == short_socket_folder(os.getuid()))
    path.unlink(missing_ok=True)
    return ListeningSocket(path)


def _file_identity(path: Path) -> FileIdentity | None:
    """Return what identifies a file; the time is part of it because inode numbers are reused."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns
