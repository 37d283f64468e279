"""`brimline fleet status`: the fleet's figures by group, from its server."""

import argparse
import http.client
from typing import Any, get_args
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from brimline.cli.context import Context, print_table
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.loopback import is_loopback
from brimline.store.fleet import FleetGrouping
from brimline.terminal.text import Cell, Column, count_of, strip_control
from brimline.uplink.token_file import read_token_file
from brimline.usage import format_percent

GROUPINGS: tuple[str, ...] = get_args(FleetGrouping)
TIMEOUT_S = 30.0
READ_TOKEN = "`brimline token create --scope read` makes a token that may see the fleet"

COLUMNS = (
    Column("group", min_width=8),
    Column("sessions", right=True),
    Column("first level", right=True, drop_order=5),
    Column("last level", right=True),
    Column("at limit", right=True, drop_order=2),
    Column("compactions/h", right=True, drop_order=3),
    Column("lost work", right=True, drop_order=1),
    Column("cost", right=True, drop_order=4),
    Column("misses", right=True, drop_order=6),
)


class GroupStatus(msgspec.Struct, frozen=True):
    """What is shown of a group; fields that are unknown here are ignored."""

    key: str | None
    sessions: int
    over_first_percent: float | None
    over_last_percent: float | None
    at_limit_percent: float | None
    compactions_per_hour: float
    lost_percent: float | None
    cost: float | None
    miss_cost: float | None


class FleetStatus(msgspec.Struct, frozen=True):
    """What is shown of `GET /v1/fleet`."""

    by: str
    total: GroupStatus
    groups: list[GroupStatus]
    needs_handoff_count: int


class ServerProblem(msgspec.Struct, frozen=True):
    """Why the server refuses a request."""

    error: str
    hint: str | None = None


class _NoRedirects(HTTPRedirectHandler):
    """Urllib would send the token to the other address too."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def add_status_arguments(to: argparse.ArgumentParser) -> None:
    help_text = f"with status: group by {', '.join(GROUPINGS)} (default team)"
    to.add_argument("--by", choices=GROUPINGS, metavar="GROUP", help=help_text)
    to.add_argument("--since", metavar="SPAN", help="with status: at most 7d (default 1h)")
    help_text = "with status: a file with a token of scope read (default: the uplink's token)"
    to.add_argument("--token-file", metavar="FILE", help=help_text)


def show_status(context: Context, options: argparse.Namespace) -> int:
    query = urlencode({"by": options.by or "team", "since": options.since or "1h"})
    body = _get(f"{_server(context, options)}/v1/fleet?{query}", _token(context, options))
    if options.json:
        print(body.decode())
        return 0
    try:
        status = msgspec.json.decode(body, type=FleetStatus)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest("the server's answer is not a fleet", "Check --url.") from error
    groups = [(_name(group, status.by), group) for group in status.groups]
    rows = [_cells(name, group) for name, group in [*groups, ("all", status.total)]]
    print_table(context, COLUMNS, rows)
    if status.needs_handoff_count:
        print(f"{count_of(status.needs_handoff_count, 'session')} without a fresh handoff at the "
              "last level or with few calls left; the server's page lists them.")  # fmt: skip
    return 0


def _server(context: Context, options: argparse.Namespace) -> str:
    address = options.url or context.settings.uplink.url
    if address is None:
        raise InvalidSettings("argument", "--url", "missing: pass it, or set uplink.url")
    parts = urlsplit(address)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        problem = "expected https: others could read the token on its way"
        raise InvalidSettings("argument", "--url", problem)
    return address.rstrip("/")


def _token(context: Context, options: argparse.Namespace) -> str:
    settings = context.settings.uplink
    path = options.token_file or (settings.token_file if settings.token is None else None)
    if path is None:
        if settings.token is None:
            raise InvalidSettings("argument", "--token-file", f"missing: {READ_TOKEN}")
        return settings.token
    try:
        return read_token_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings("argument", "--token-file", f"cannot be read: {error}") from error


def _get(url: str, token: str) -> bytes:
    """Return the body of an answer; raises InvalidRequest if the server refuses or is away."""
    try:
        request = Request(url, headers={"Authorization": f"Bearer {token}"})
        with build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as answer:
            return answer.read()
    except HTTPError as error:
        raise _refusal(error) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InvalidRequest(f"the server does not answer: {error}", "Check --url.") from error


def _refusal(error: HTTPError) -> InvalidRequest:
    try:
        problem = msgspec.json.decode(error.read(), type=ServerProblem)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return InvalidRequest(f"the server answered {error.code}", "Check --url.")
    return InvalidRequest(problem.error, problem.hint or READ_TOKEN)


def _name(group: GroupStatus, by: str) -> str:
    return f"no {by}" if group.key is None else strip_control(group.key)


def _cells(name: str, group: GroupStatus) -> list[Cell]:
    return [
        Cell(name),
        Cell(f"{group.sessions:,}"),
        Cell(_percent(group.over_first_percent)),
        Cell(_percent(group.over_last_percent)),
        Cell(_percent(group.at_limit_percent)),
        Cell(f"{group.compactions_per_hour:,.1f}"),
        Cell(_percent(group.lost_percent)),
        Cell(_dollars(group.cost)),
        Cell(_dollars(group.miss_cost)),
    ]


def _percent(percent: float | None) -> str:
    return "unknown" if percent is None else format_percent(percent)


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
