"""Asking the daemon: HTTP over the user's own socket."""

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any

from brimline.cli.context import Context
from brimline.errors import BrimlineError, NotRunning
from brimline.settings import socket_path, state_dir

PATIENCE = 5.0


class Refused(BrimlineError):
    """What the daemon did not do, and why."""

    def __init__(self, error: str, hint: str | None) -> None:
        self.error, self.hint = error, hint
        super().__init__(error)


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("brimline", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(context: Context, method: str, path: str, body: object = None) -> Any:
    """The daemon's answer; NotRunning where there is none, Refused where it says no."""
    place = socket_path(state_dir(context.places.env, context.places.home), os.getuid(), "http")
    connection = _OverSocket(place)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        told = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotRunning(str(place)) from error
    finally:
        connection.close()
    if answer.status >= 400:
        raise Refused(told.get("error", f"HTTP {answer.status}"), told.get("hint"))
    return told
