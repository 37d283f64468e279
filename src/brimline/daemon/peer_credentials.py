"""The user at the other end of a Unix socket, or of a loopback TCP connection.

Of TCP, the kernel reports it by sock_diag(7), to an unprivileged process only on Linux. Elsewhere
only the secret is checked.
"""

import errno
import os
import socket
import struct
import sys
from typing import NamedTuple

_UCRED = struct.Struct("3i")
_XUCRED_SIZE = 76
_LOCAL_PEERCRED = 1

ROOT = 0
TCP_ESTABLISHED = 1

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = 0xFFFFFFFF
_REPLY_BYTES = 4 << 10

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_REQUEST = struct.Struct("=BBBxI")  # struct inet_diag_req_v2, up to its socket id
_SOCKET_ID = struct.Struct("!HH4s12x4s12x")  # struct inet_diag_sockid: ports and addresses
_INTERFACE_COOKIE = struct.Struct("=III")
_MESSAGE = struct.Struct("=BBBB")  # struct inet_diag_msg: family, state, timer, retransmissions
_COUNTERS = struct.Struct("=IIIII")  # expires, read queue, write queue, uid, inode


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


class Peer(NamedTuple):
    """The owner of the other end, and the state of its socket."""

    uid: int
    state: int


class TcpPeers:
    """Looks up peers; created by `open`, which returns None if the system does not report them."""

    def __init__(self, netlink: socket.socket) -> None:
        self._netlink = netlink

    @classmethod
    def open(cls) -> "TcpPeers | None":
        """Return a lookup after testing it on a connection of our own."""
        if sys.platform != "linux":
            return None
        try:
            netlink = socket.socket(
                socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
            )
        except OSError:
            return None
        netlink.settimeout(1.0)
        peers = cls(netlink)
        if peers._works():
            return peers
        netlink.close()
        return None

    def close(self) -> None:
        self._netlink.close()

    def is_ours(self, connection: socket.socket) -> bool:
        """Return whether the peer is a process of our user, or of root."""
        return is_trusted(self.peer_of(connection), os.getuid())

    def peer_of(self, connection: socket.socket) -> Peer | None:
        """Return the other end of an IPv4 connection; None if it is gone."""
        try:
            peer, own = connection.getpeername(), connection.getsockname()
            socket_id = _SOCKET_ID.pack(
                peer[1], own[1], socket.inet_aton(peer[0]), socket.inet_aton(own[0])
            )
            self._netlink.send(_question(socket_id))
            return _answer(self._netlink.recv(_REPLY_BYTES), socket_id)
        except OSError as error:
            if error.errno == errno.ENOBUFS:  # a reply was lost
                self._drain()
            return None

    def _drain(self) -> None:
        self._netlink.setblocking(False)
        try:
            while self._netlink.recv(_REPLY_BYTES):
                pass
        except OSError:
            pass
        self._netlink.settimeout(1.0)

    def _works(self) -> bool:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()),
            server.accept()[0] as connection,
        ):
            peer = self.peer_of(connection)
        return peer is not None and peer.uid == os.getuid()


def is_trusted(peer: Peer | None, user: int) -> bool:
    """Return whether a peer is this user's, or root's.

    The kernel reports root as the owner of a socket that its process has closed, and another user
    may close one on purpose after a request: root counts only while it is connected.
    """
    if peer is None:
        return False
    return peer.uid == user or (peer.uid == ROOT and peer.state == TCP_ESTABLISHED)


def _question(socket_id: bytes) -> bytes:
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, _ALL_STATES)
    body = request + socket_id + _INTERFACE_COOKIE.pack(0, _NO_COOKIE, _NO_COOKIE)
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + body


def _answer(data: bytes, socket_id: bytes) -> Peer | None:
    """Return the peer of a reply; None if it is an error, or about another socket."""
    message_at = _HEADER.size
    id_at = message_at + _MESSAGE.size
    counters_at = id_at + _SOCKET_ID.size + _INTERFACE_COOKIE.size
    _, kind, *_ = _HEADER.unpack_from(data)
    if kind != _SOCK_DIAG_BY_FAMILY or len(data) < counters_at + _COUNTERS.size:
        return None
    if data[id_at : id_at + _SOCKET_ID.size] != socket_id:
        return None
    _, state, *_ = _MESSAGE.unpack_from(data, message_at)
    *_, uid, _ = _COUNTERS.unpack_from(data, counters_at)
    return Peer(uid, state)
