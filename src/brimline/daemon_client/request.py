"""Blocking requests to the daemon, over the user's own socket.

Apart from `stream`, so that commands do not import asyncio.
"""

import http.client
import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from brimline.errors import InvalidRequest, MalformedJson, NotRunning
from brimline.foreign_json import decode_json
from brimline.server.peer_credentials import check_own_peer
from brimline.server.sockets import LOCK_NAME, find_unresponsive
from brimline.settings import socket_path

TIMEOUT_S = 5.0
MAX_RESPONSE_BYTES = 256 << 20
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
    data = send_request(state, method, path, body, timeout_s).read()
    try:
        return decode_json(data, Any)
    except MalformedJson as error:
        raise _unexpected(f"{method} {path}", 200) from error


def send_request(
    state: Path, method: str, path: str, body: object = None, timeout_s: float = TIMEOUT_S
) -> "PendingResponse":
    """Send a request as `request` does, and do not wait for its response."""
    connection = _UnixConnection(socket_path(state, os.getuid(), "http"), timeout_s)
    pending = PendingResponse(connection, state, f"{method} {path}")
    with pending.translated_errors():
        connection.request(method, path, None if body is None else json.dumps(body))
    return pending


class PendingResponse:
    """The response to a request that was sent."""

    def __init__(self, connection: "_UnixConnection", state: Path, what: str) -> None:
        self._connection, self._state, self._what = connection, state, what

    def read(self) -> bytes:
        """Wait for the response; raises as `request`."""
        with self.translated_errors():
            response = self._connection.getresponse()
            status, data = response.status, response.read(MAX_RESPONSE_BYTES)
        self._connection.close()
        if status < 400:
            return data
        try:
            problem = decode_json(data, _Problem)
        except MalformedJson as error:
            raise _unexpected(self._what, status) from error
        reason = problem.error or f"HTTP {status}"
        raise InvalidRequest(reason, problem.hint, is_temporary=status == 503)

    @contextmanager
    def translated_errors(self) -> Generator[None]:
        """If the connection fails, close it and raise NotRunning."""
        place = str(self._connection.path)
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            if isinstance(error, PermissionError):
                raise NotRunning(place, error.strerror) from error
            raise find_unresponsive(self._state / LOCK_NAME) or NotRunning(place) from error


def _unexpected(what: str, status: int) -> InvalidRequest:
    return InvalidRequest(f"the daemon answered {what} with {status}", OTHER_VERSION)


class _Problem(msgspec.Struct, frozen=True):
    error: str = ""
    hint: str | None = None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("brimline", timeout=timeout_s)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))
        check_own_peer(self.sock)
