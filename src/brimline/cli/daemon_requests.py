"""Requests of commands to the daemon, and sessions by id or prefix."""

from typing import Any, NamedTuple

import msgspec

from brimline.cli.context import Context
from brimline.daemon_client import request as daemon
from brimline.errors import InvalidRequest
from brimline.store.rows import SessionRow


class SessionRef(NamedTuple):
    """A session id, whether the daemon knows it, and its row."""

    id: str
    known: bool
    row: SessionRow | None = None


def request(
    context: Context,
    method: str,
    path: str,
    body: object = None,
    timeout_s: float = daemon.TIMEOUT_S,
) -> Any:
    """Send a request to the user's daemon; raises InvalidRequest, NotRunning."""
    return daemon.request(context.state, method, path, body, timeout_s)


def resolve_session(context: Context, name: str) -> SessionRef:
    """Return the session with this id, or the only one whose id starts with it.

    A name that matches none may be the id of a session to come.
    """
    views = request(context, "GET", "/v1/sessions?since=all")
    rows = {view["session"]["id"]: view["session"] for view in views}
    matches = [name] if name in rows else sorted(id for id in rows if id.startswith(name))
    if len(matches) > 1:
        some = ", ".join(matches[:5])
        problem = f"more than one session starts with {name!r}: {some}"
        raise InvalidRequest(problem, "Give a longer prefix.")
    if not matches:
        return SessionRef(name, known=False)
    return SessionRef(matches[0], known=True, row=msgspec.convert(rows[matches[0]], SessionRow))
