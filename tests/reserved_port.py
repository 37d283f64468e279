"""A port of loopback for one test, also between two runs of its server."""

import os
import socket
import sys
from weakref import finalize


class ReservedPort:
    """A port that no other process is given while this object exists.

    It is bound and does not listen, so connections are refused. A server that sets SO_REUSEADDR can
    listen on it on Linux; elsewhere the port is only likely to stay free.
    """

    def __init__(self) -> None:
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        self.number: int = holder.getsockname()[1]
        if sys.platform == "linux":
            finalize(self, os.close, holder.detach())
        else:
            holder.close()
