"""`brimline fleet status`: the fleet's figures by group, from its server."""

import argparse
from typing import get_args
from urllib.parse import urlencode

import msgspec

from brimline.cli.context import Context, print_table
from brimline.cli.fleet_server import decode_answer, get_from_server
from brimline.context.usage import format_percent
from brimline.store.fleet import FleetGrouping
from brimline.terminal.text import Cell, Column, count_of, escape_control, strip_control

GROUPINGS: tuple[str, ...] = get_args(FleetGrouping)

COLUMNS = (
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


def add_status_arguments(to: argparse.ArgumentParser) -> None:
    help_text = f"with status: group by {', '.join(GROUPINGS)} (default team)"
    to.add_argument("--by", choices=GROUPINGS, metavar="GROUP", help=help_text)
    to.add_argument("--since", metavar="SPAN", help="with status: at most 7d (default 1h)")


def show_status(context: Context, options: argparse.Namespace) -> int:
    query = urlencode({"by": options.by or "team", "since": options.since or "1h"})
    body = get_from_server(context, options, f"/v1/fleet?{query}")
    if options.json:
        print(escape_control(body.decode("utf-8", "replace")))
        return 0
    status = decode_answer(body, FleetStatus)
    groups = [(_name(group, status.by), group) for group in status.groups]
    rows = [_cells(name, group) for name, group in [*groups, ("all", status.total)]]
    is_branch = status.by == "branch"  # with its project before it
    group = Column("group", min_width=32 if is_branch else 8, keep_end=is_branch)
    print_table(context, [group, *COLUMNS], rows)
    if status.needs_handoff_count:
        print(f"{count_of(status.needs_handoff_count, 'session')} without a fresh handoff at the "
              "last level or with few calls left; the server's page lists them.")  # fmt: skip
    return 0


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
