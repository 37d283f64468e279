"""Where a daemon listens."""

import socket
from contextlib import closing

import pytest

from brimline.errors import AlreadyRunning
from brimline.server.sockets import HOST, PORT, loopback


def test_port_that_is_asked_for() -> None:
    """A port that another has is refused where that very one was asked for."""
    with closing(socket.create_server((HOST, 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(AlreadyRunning, match=str(port)):
            loopback(port)


def test_any_port() -> None:
    """Two that ask for none get one each, whoever has the usual one."""
    with closing(loopback(None)) as one, closing(loopback(None)) as other:
        ports = [made.getsockname()[1] for made in (one, other)]
    assert len(set(ports)) == 2
    assert all(port == PORT or port > 1_023 for port in ports)
