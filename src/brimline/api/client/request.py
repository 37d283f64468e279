"""Blocking requests to the daemon, over the user's own socket.

Apart from `stream`, so that commands do not import asyncio. They do not import http.client either:
that takes 20 ms, a tenth of the time of `status`.
"""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from brimline.daemon.peer_credentials import check_own_peer
from brimline.daemon.sockets import LOCK_NAME, find_unresponsive
from brimline.errors import InvalidRequest, MalformedJson, NotRunning
from brimline.files.foreign_json import decode_json
from brimline.files.socket_path import socket_path

TIMEOUT_S = 5.0
MAX_RESPONSE_BYTES = 256 << 20
PIECE_BYTES = 1 << 20
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
    data = DaemonRequest(state, method, path, body, timeout_s).read()
    try:
        return decode_json(data, Any)
    except MalformedJson as error:
        raise _unexpected(f"{method} {path}", 200) from error


class DaemonRequest:
    """A request to the daemon, sent when it is created; raises as `request`."""

    def __init__(
        self,
        state: Path,
        method: str,
        path: str,
        body: object = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._state, self._what = state, f"{method} {path}"
        self._path = str(socket_path(state, os.getuid(), "http"))
        content = b""
        if body is not None:
            import json  # it escapes half a character, which msgspec refuses

            content = json.dumps(body).encode()
        # The response to a request of HTTP/1.0 ends with the connection, and is in one piece.
        lines = (f"{self._what} HTTP/1.0", "Host: brimline", f"Content-Length: {len(content)}")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._translated_errors():
            self._socket.settimeout(timeout_s)
            self._socket.connect(self._path)
            check_own_peer(self._socket)
            self._socket.sendall("\r\n".join((*lines, "", "")).encode() + content)

    def read(self) -> bytes:
        """Wait for the response, and return its body; raises as `request`."""
        with self._translated_errors(), self._socket:
            status, content = _parse_response(self._receive())
        if status < 400:
            return content
        try:
            refusal = decode_json(content, Refusal)
        except MalformedJson as error:
            raise _unexpected(self._what, status) from error
        reason = refusal.error or f"HTTP {status}"
        raise InvalidRequest(reason, refusal.hint, is_temporary=status == 503)

    def _receive(self) -> bytes:
        data = bytearray()
        while len(data) < MAX_RESPONSE_BYTES and (piece := self._socket.recv(PIECE_BYTES)):
            data += piece
        return bytes(data)

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        """If the connection fails, close it and raise NotRunning."""
        try:
            yield
        except OSError as error:
            self._socket.close()
            if isinstance(error, PermissionError):
                raise NotRunning(self._path, error.strerror) from error
            raise find_unresponsive(self._state / LOCK_NAME) or NotRunning(self._path) from error


def _parse_response(data: bytes) -> tuple[int, bytes]:
    """Return status and content of an HTTP response; raises ConnectionError if it is not whole."""
    head, _, content = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    fields = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    is_whole = fields.get("content-length", str(len(content))) == str(len(content))
    if not (version.startswith("HTTP/1.") and rest[:3].isdecimal() and is_whole):
        raise ConnectionError("not an HTTP response, or not the whole")
    return int(rest[:3]), content


def _unexpected(what: str, status: int) -> InvalidRequest:
    return InvalidRequest(f"the daemon answered {what} with {status}", OTHER_VERSION)


class Refusal(msgspec.Struct, frozen=True):
    """An error response, as `api.schemas.Problem`, whose import takes some milliseconds."""

    error: str = ""
    hint: str | None = None
