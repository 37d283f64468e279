"""Blocking requests to the daemon, over the user's own socket.

Apart from `stream`, so that commands do not import asyncio.
"""

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

from brimline.errors import InvalidRequest, MalformedJson, NotRunning
from brimline.foreign_json import decode_json
from brimline.server.peer_credentials import check_own_peer
from brimline.server.sockets import LOCK_NAME, find_unresponsive
from brimline.settings import socket_path

TIMEOUT_S = 5.0
OTHER_VERSION = (
    "It may be a different version: restart it with `brimline serve --stop`, then `--background`."
)


def session_path(id: str, part: str = "") -> str:
    """Return the path of a session in the API, or of a part of it."""
    return f"/v1/sessions/{quote(id, safe='')}{part}"


def request(
    state: Path, method: str, path: str, body: object = None, timeout_s: float = TIMEOUT_S
) -> Any:
    """Send a request to the daemon of a state folder, and return the decoded response.

    Raises InvalidRequest if it is refused; NotRunning if there is no daemon, or DaemonUnresponsive,
    its subclass, if a process holds its lock but does not answer.
    """
    place = socket_path(state, os.getuid(), "http")
    connection = _UnixConnection(place, timeout_s)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        status, data = response.status, response.read()
    except PermissionError as error:
        raise NotRunning(str(place), error.strerror) from error
    except (OSError, http.client.HTTPException) as error:
        raise find_unresponsive(state / LOCK_NAME) or NotRunning(str(place)) from error
    finally:
        connection.close()
    try:
        value = decode_json(data, Any)
    except MalformedJson as error:
        problem = f"the daemon answered {method} {path} with {status}"
        raise InvalidRequest(problem, OTHER_VERSION) from error
    if status >= 400:
        error = value.get("error", f"HTTP {status}")
        raise InvalidRequest(error, value.get("hint"), is_temporary=status == 503)
    return value


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("brimline", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
        check_own_peer(self.sock)
