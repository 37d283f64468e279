"""Asking the daemon: HTTP over the user's own socket."""

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from brimline.cli.context import Context
from brimline.errors import BrimlineError, NotRunning
from brimline.server.peer_credentials import check_own_peer
from brimline.server.sockets import LOCK_NAME, find_unresponsive
from brimline.settings import socket_path, state_dir
from brimline.store.rows import SessionRow

PATIENCE = 5.0

ANOTHER = (
    "It may be a different version: restart it with `brimline serve --stop`, then `--background`."
)


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
        check_own_peer(self.sock)


def of_session(id: str, part: str = "") -> str:
    """Where the daemon tells of a session, or a part of that."""
    return f"/v1/sessions/{quote(id, safe='')}{part}"


class SessionRef(NamedTuple):
    """A session by its id, whether it was heard of, and what the daemon knows of it."""

    id: str
    known: bool
    row: SessionRow | None = None


def resolve_session(context: Context, name: str) -> SessionRef:
    """The session of this id, or the only one whose id begins so; else one that is to come."""
    every = ask(context, "GET", "/v1/sessions?since=all")
    rows = {view["session"]["id"]: view["session"] for view in every}
    fitting = [name] if name in rows else sorted(id for id in rows if id.startswith(name))
    if len(fitting) > 1:
        some = ", ".join(fitting[:5])
        raise Refused(
            f"more than one session starts with {name!r}: {some}", "Give a longer prefix."
        )
    if not fitting:
        return SessionRef(name, known=False)
    return SessionRef(fitting[0], known=True, row=msgspec.convert(rows[fitting[0]], SessionRow))


def ask(context: Context, method: str, path: str, body: object = None) -> Any:
    """The daemon's answer; Refused where it says no, NotRunning where there is none.

    Silent, which is one too, where a process has its lock and answers nothing.
    """
    state = state_dir(context.places.env, context.places.home)
    place = socket_path(state, os.getuid(), "http")
    connection = _OverSocket(place)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        status, data = answer.status, answer.read()
    except PermissionError as error:
        raise NotRunning(str(place), error.strerror) from error
    except (OSError, http.client.HTTPException) as error:
        raise find_unresponsive(state / LOCK_NAME) or NotRunning(str(place)) from error
    finally:
        connection.close()
    try:
        told = json.loads(data)
    except ValueError as error:
        raise Refused(f"the daemon answered {method} {path} with {status}", ANOTHER) from error
    if status >= 400:
        raise Refused(told.get("error", f"HTTP {status}"), told.get("hint"))
    return told
