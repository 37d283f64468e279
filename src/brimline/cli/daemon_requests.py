"""Requests of commands to the daemon, and the sessions that it knows."""

from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from brimline.api.client import request as daemon
from brimline.cli.context import CommandContext
from brimline.cli.session_choice import choose_session, list_files
from brimline.context.client_report import ReportedMiss
from brimline.errors import InvalidRequest, NotRunning, UnknownSession
from brimline.store.rows import SessionRow

REPORT_TIMEOUT_S = 0.25  # for figures that only add to an output


class _Miss(msgspec.Struct, frozen=True):
    at: float | None
    reported: str | None = None


class _Misses(msgspec.Struct, frozen=True):
    misses: tuple[_Miss, ...] = ()


class SessionRef(NamedTuple):
    """A session id, whether the daemon knows it, its row, and else the session most like it."""

    id: str
    known: bool
    row: SessionRow | None = None
    near: str | None = None


def request(
    context: CommandContext,
    method: str,
    path: str,
    body: object = None,
    timeout_s: float = daemon.TIMEOUT_S,
) -> Any:
    """Send a request to the user's daemon; raises InvalidRequest, NotRunning."""
    return daemon.request(context.state, method, path, body, timeout_s)


def request_reported_misses(context: CommandContext, session: str) -> list[ReportedMiss]:
    """Return the cache misses of a session whose causes its client reported."""
    with suppress(NotRunning, InvalidRequest, msgspec.ValidationError):
        path = daemon.session_path(session, "/timeline")
        answer = request(context, "GET", path, timeout_s=REPORT_TIMEOUT_S)
        timeline = msgspec.convert(answer, _Misses)
        return [
            ReportedMiss(miss.at, tuple(miss.reported.split(", ")))
            for miss in timeline.misses
            if miss.at is not None and miss.reported
        ]
    return []


def describe_losses(status: dict[str, Any]) -> str:
    """Return how many hooks the daemon could not use; an older daemon has no `late`."""
    late = status.get("late", 0)
    return f"{status['malformed']:,} malformed, {status['dropped']:,} dropped, {late:,} came late"


def resolve_session(context: CommandContext, name: str | None) -> SessionRef:
    """Return the session that is meant, by `choose_session`.

    A name that matches none may be the id of a session to come.
    """
    views = request(context, "GET", "/v1/sessions?since=all")
    rows = [msgspec.convert(view["session"], SessionRow) for view in views]
    try:
        chosen = choose_session(context, name, list_files(context), rows)
    except UnknownSession as error:
        if error.candidates:
            raise
        return SessionRef(error.name, known=False, near=error.near)
    row = next((row for row in rows if (row.agent, row.id) == (chosen.agent, chosen.id)), None)
    return SessionRef(chosen.id, row is not None, row)
