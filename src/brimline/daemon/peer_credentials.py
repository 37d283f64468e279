"""The user at the other end of a Unix socket."""

import errno
import os
import socket
import struct
import sys

_UCRED = struct.Struct("3i")
_XUCRED_SIZE = 76
_LOCAL_PEERCRED = 1


def check_own_peer(connection: socket.SocketType) -> None:
    """Raise PermissionError if the listening process belongs to another user."""
    user = peer_uid(connection)
    if user not in (os.getuid(), None):
        raise PermissionError(errno.EACCES, f"user {user} listens there")


def peer_uid(connection: socket.SocketType) -> int | None:
    """Return the user id of the peer; None if the system does not report it."""
    if sys.platform == "linux":
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        return _UCRED.unpack(data)[1]
    try:
        data = connection.getsockopt(0, _LOCAL_PEERCRED, _XUCRED_SIZE)
    except OSError:
        return None
    return struct.unpack_from("=2I", data)[1]
