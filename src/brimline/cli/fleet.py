"""`brimline fleet`: settings that point telemetry at a server; its figures and its audit log.

The server is asked with the token of a person, or of the machine's uplink.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import fill
from typing import get_args
from urllib.parse import urlencode

import msgspec

from brimline.agents import managed_clients, managed_settings_for
from brimline.agents.telemetry import TOKEN_MARK, ManagedSettings, ManagedSettingsFile
from brimline.cli.arguments import parse_agent
from brimline.cli.context import CommandContext, emit_json, print_table
from brimline.cli.fleet_database import DATABASE_HELP
from brimline.cli.fleet_forget import forget
from brimline.cli.fleet_server import decode_answer, format_end, get_from_server
from brimline.context.usage import format_percent, format_tokens
from brimline.errors import InvalidSettings
from brimline.sessions.files import shorten_ids
from brimline.store.fleet import DEFAULT_ORGANISATION, FleetGrouping, UsagePeriod
from brimline.terminal.text import (
    Cell,
    Column,
    count_of,
    escape_control,
    format_age,
    format_dollars,
    strip_control,
)

USAGE = """brimline fleet snippet [CLIENT] [--url URL] [--json]
       brimline fleet status [--by GROUP] [--since SPAN] [--url URL] [--token-file FILE] [--json]
       brimline fleet usage [--per PERIOD] [--by GROUP] [--since SPAN | --from DAY [--to DAY]]
           [--csv | --json] [--url URL] [--token-file FILE]
       brimline fleet machines [--silent SPAN] [--url URL] [--token-file FILE] [--json]
       brimline fleet forget (--user NAME | --machine ID) [--dry-run] [--organisation NAME]
           [--database URL] [--json]
       brimline fleet audit [--limit N] [--url URL] [--token-file FILE] [--json]"""
ACTIONS = ("snippet", "status", "usage", "machines", "audit", "forget")
EXAMPLE_URL = "https://fleet.example.com"
ADDRESS = re.compile(r"https?://([\w.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?(/[\w.~/-]*)?", re.ASCII)
HOW = (
    f"Replace {TOKEN_MARK} with a token with the scope `ingest`:\n"
    "  brimline token create --name TEAM --scope ingest --organisation NAME --database URL\n"
    "Whoever can read a file can use its token: give each team its own, and let it expire."
)

GROUPINGS: tuple[str, ...] = get_args(FleetGrouping)
PERIODS: tuple[str, ...] = get_args(UsagePeriod)
STATUS_COLUMNS = (
    Column("sessions", right=True),
    Column("first level", right=True, drop_order=5),
    Column("last level", right=True),
    Column("at limit", right=True, drop_order=2),
    Column("compactions/h", right=True, drop_order=3),
    Column("lost work", right=True, drop_order=1),
    Column("cost", right=True, drop_order=4),
    Column("misses", right=True, drop_order=6),
)

USAGE_COLUMNS = (
    Column("sessions", right=True, drop_order=2),
    Column("calls", right=True, drop_order=3),
    Column("sent", right=True),
    Column("output", right=True, drop_order=4),
    Column("cost", right=True),
    Column("misses", right=True, drop_order=1),
)

DEFAULT_ENTRIES = 20
MAX_ENTRIES = 1_000  # of one answer of the server
NO_ENTRIES = "the audit log is empty"
AUDIT_COLUMNS = (
    Column("time (UTC)", min_width=19),
    Column("by", min_width=8),
    Column("action", min_width=7),
    Column("session", min_width=12),
    Column("what", min_width=12, drop_order=1),
)

NO_MACHINES = "no machine reports to this server"
MACHINE_COLUMNS = (
    Column("id"),
    Column("host", min_width=8),
    Column("user", drop_order=7),
    Column("team", drop_order=6),
    Column("last report", right=True),
    Column("brimline", drop_order=4),
    Column("clients", min_width=10, drop_order=3),
    Column("accepts", drop_order=5),
    Column("token", drop_order=8),
    Column("behind", right=True, drop_order=1),
    Column("refused", min_width=7, drop_order=2),
)


class Snippet(msgspec.Struct, frozen=True):
    """The managed settings of one client; `note` is what an administrator must know about them."""

    client: str
    name: str
    files: list[ManagedSettingsFile]
    note: str


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


class GroupUsage(msgspec.Struct, frozen=True):
    """What is shown of the usage of a group."""

    key: str | None
    sessions: int
    calls: int
    sent: int
    output: int
    cost: float | None
    miss_cost: float | None


class PeriodUsage(msgspec.Struct, frozen=True):
    key: str
    groups: list[GroupUsage]


class UsageShown(msgspec.Struct, frozen=True):
    """What is shown of `GET /v1/fleet/usage`."""

    by: str
    per: str
    first: str
    last: str
    total: GroupUsage
    groups: list[GroupUsage]
    more_groups: int
    periods: list[PeriodUsage]


class ReportingMachine(msgspec.Struct, frozen=True):
    """What is shown of a machine of `GET /v1/machines`."""

    id: str
    host: str | None
    user: str | None
    team: str | None
    version: str | None
    clients: dict[str, str]
    receive: str
    behind: int
    refused: int
    refusal: str | None
    last_at: float
    token_ends_at: float | None = None


class SentEntry(msgspec.Struct, frozen=True):
    """What is shown of an entry of `GET /v1/audit`."""

    at: float
    actor: str
    action: str
    session: str | None
    subject: str | None


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = (
        "snippet: print managed settings for OpenTelemetry, and where each file goes; "
        "status: show the fleet's figures by group; "
        "usage: show what was used by day, week or month, and by group; "
        "machines: list who reports to the server, and when last; "
        "audit: list who sent what to which agent through the server, and what became of tokens; "
        "forget: remove what a person or a machine has reported"
    )
    to.add_argument("action", choices=ACTIONS, metavar="ACTION", help=help_text)
    help_text = f"with snippet: only this client: {', '.join(managed_clients())}"
    to.add_argument("client", nargs="?", type=parse_agent, metavar="CLIENT", help=help_text)
    help_text = "the server's address (default: uplink.url; with snippet, an example)"
    to.add_argument("--url", type=_parse_url, help=help_text)
    help_text = "a file with a token of scope read (default: the uplink's)"
    to.add_argument("--token-file", metavar="FILE", help=help_text)
    help_text = f"with status and usage: group by {', '.join(GROUPINGS)} (default team)"
    to.add_argument("--by", choices=GROUPINGS, metavar="GROUP", help=help_text)
    help_text = "with status: at most 7d (default 1h); with usage: such as 90d (default 30d)"
    to.add_argument("--since", metavar="SPAN", help=help_text)
    help_text = f"with usage: a line for each {', '.join(PERIODS)} and group (default: all days)"
    to.add_argument("--per", choices=PERIODS, metavar="PERIOD", help=help_text)
    help_text = "with usage: the first day in UTC, such as 2026-11-01"
    to.add_argument("--from", dest="first", metavar="DAY", help=help_text)
    help_text = "with usage: the last day (default today)"
    to.add_argument("--to", dest="last", metavar="DAY", help=help_text)
    help_text = "with machines: only those without a report for this time, such as 1d"
    to.add_argument("--silent", metavar="SPAN", help=help_text)
    help_text = f"with audit: the last N, at most {MAX_ENTRIES:,} (default {DEFAULT_ENTRIES})"
    to.add_argument("--limit", type=_parse_limit, metavar="N", help=help_text)
    to.add_argument("--user", metavar="NAME", help="with forget: whose sessions")
    to.add_argument("--machine", metavar="ID", help="with forget: the id of an installation")
    help_text = "with forget: only say how much it is"
    to.add_argument("--dry-run", action="store_true", help=help_text)
    help_text = f"with forget: the organisation (default {DEFAULT_ORGANISATION!r})"
    to.add_argument("--organisation", metavar="NAME", default=DEFAULT_ORGANISATION, help=help_text)
    to.add_argument("--database", metavar="URL", help=f"with forget: {DATABASE_HELP}")
    form = to.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="with usage: print CSV")


def _parse_url(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected an address such as {EXAMPLE_URL}: got {text!r}")
    return text.rstrip("/")


def _parse_limit(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_ENTRIES:
        reason = f"expected a number from 1 to {MAX_ENTRIES:,}: got {text!r}"
        raise argparse.ArgumentTypeError(reason)
    return int(text)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.action != "snippet":
        if options.client:
            raise InvalidSettings("argument", "CLIENT", f"not allowed with {options.action}")
        return _SHOW[options.action](context, options)
    clients = [options.client] if options.client else managed_clients()
    url = options.url or EXAMPLE_URL
    settings = {client: managed_settings_for(client, url) for client in clients}
    if options.json:
        rows = settings.items()
        emit_json([Snippet(client, one.client, one.files, one.note) for client, one in rows])
        return 0
    lines = [line for one in settings.values() for line in _snippet_lines(one, context.width)]
    print("\n".join([HOW, *lines]))
    return 0


def _snippet_lines(settings: ManagedSettings, width: int) -> list[str]:
    lines = ["", f"== {settings.client}", fill(settings.note, width, break_on_hyphens=False)]
    for file in settings.files:
        places = f"Linux and macOS: {file.linux}"
        if file.macos != file.linux:
            places = f"Linux: {file.linux}\nmacOS: {file.macos}"
        lines += ["", places, "", file.text.rstrip("\n")]
    return lines


def _show_status(context: CommandContext, options: argparse.Namespace) -> int:
    query = urlencode({"by": options.by or "team", "since": options.since or "1h"})
    body = get_from_server(context, options, f"/v1/fleet?{query}")
    if options.json:
        print(escape_control(body.decode("utf-8", "replace")))
        return 0
    status = decode_answer(body, FleetStatus)
    groups = [(_group_name(group, status.by), group) for group in status.groups]
    rows = [_status_cells(name, group) for name, group in [*groups, ("all", status.total)]]
    is_branch = status.by == "branch"  # with its project before it
    group = Column("group", min_width=32 if is_branch else 8, keep_end=is_branch)
    _print_uncut(context, [group, *STATUS_COLUMNS], rows)
    if status.needs_handoff_count:
        print(f"{count_of(status.needs_handoff_count, 'session')} without a fresh handoff at the "
              "last level or with few calls left; the server's page lists them.")  # fmt: skip
    return 0


def _print_uncut(
    context: CommandContext, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> None:
    """Print a table; without a terminal all of it, because scripts read its keys."""
    if not sys.stdout.isatty():
        context = msgspec.structs.replace(context, width=sys.maxsize)
    print_table(context, columns, rows)


def _group_name(group: GroupStatus, by: str) -> str:
    return f"no {by}" if group.key is None else strip_control(group.key)


def _status_cells(name: str, group: GroupStatus) -> list[Cell]:
    return [
        Cell(name),
        Cell(f"{group.sessions:,}"),
        Cell(_percent(group.over_first_percent)),
        Cell(_percent(group.over_last_percent)),
        Cell(_percent(group.at_limit_percent)),
        Cell(f"{group.compactions_per_hour:,.1f}"),
        Cell(_percent(group.lost_percent)),
        Cell(format_dollars(group.cost)),
        Cell(format_dollars(group.miss_cost)),
    ]


def _percent(percent: float | None) -> str:
    return "unknown" if percent is None else format_percent(percent)


def _show_audit(context: CommandContext, options: argparse.Namespace) -> int:
    """Print the last entries, the newest first."""
    body = get_from_server(context, options, f"/v1/audit?limit={options.limit or DEFAULT_ENTRIES}")
    if options.json:
        print(escape_control(body.decode("utf-8", "replace")))
        return 0
    entries = decode_answer(body, list[SentEntry])
    if entries:
        _print_uncut(context, AUDIT_COLUMNS, [_audit_cells(each) for each in entries])
    else:
        print(NO_ENTRIES)
    return 0


def _audit_cells(entry: SentEntry) -> list[Cell]:
    texts = (entry.actor, entry.action, entry.session or "", entry.subject or "")
    time = datetime.fromtimestamp(entry.at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    return [Cell(time), *(Cell(strip_control(text)) for text in texts)]


def _show_usage(context: CommandContext, options: argparse.Namespace) -> int:
    """Print what each group used, the most expensive first; with --per in each period."""
    chosen = {"by": options.by or "team", "per": options.per or "month", "since": options.since,
              "from": options.first, "to": options.last}  # fmt: skip
    query = urlencode({name: value for name, value in chosen.items() if value is not None})
    name = "usage.csv" if options.csv else "usage"
    body = get_from_server(context, options, f"/v1/fleet/{name}?{query}")
    text = body.decode("utf-8", "replace")
    if options.csv:
        print("\n".join(map(strip_control, text.splitlines())))
        return 0
    if options.json:
        print(escape_control(text))
        return 0
    usage = decode_answer(body, UsageShown)
    print(f"{usage.first} to {usage.last}, in UTC")
    rows = [_usage_cells("", each, usage.by) for each in usage.groups]
    if options.per is not None:
        parts = [(each.key, part) for each in usage.periods for part in each.groups]
        rows = [_usage_cells(period, each, usage.by) for period, each in parts]
    rows.append(_usage_cells("", msgspec.structs.replace(usage.total, key="all"), usage.by))
    first = 0 if options.per is not None else 1
    columns = [Column(usage.per), Column("group", min_width=8), *USAGE_COLUMNS]
    _print_uncut(context, columns[first:], [row[first:] for row in rows])
    if usage.more_groups:
        print(f"{count_of(usage.more_groups, 'group')} of less cost not shown; --csv has all.")
    return 0


def _usage_cells(period: str, group: GroupUsage, by: str) -> list[Cell]:
    return [
        Cell(period),
        Cell(f"no {by}" if group.key is None else strip_control(group.key)),
        Cell(f"{group.sessions:,}"),
        Cell(f"{group.calls:,}"),
        Cell(format_tokens(group.sent)),
        Cell(format_tokens(group.output)),
        Cell(format_dollars(group.cost)),
        Cell(format_dollars(group.miss_cost)),
    ]


def _show_machines(context: CommandContext, options: argparse.Namespace) -> int:
    """Print the machines, the longest silent first."""
    query = "" if options.silent is None else f"?{urlencode({'silent': options.silent})}"
    body = get_from_server(context, options, f"/v1/machines{query}")
    if options.json:
        print(escape_control(body.decode("utf-8", "replace")))
        return 0
    machines = decode_answer(body, list[ReportingMachine])
    if machines:
        short_ids = shorten_ids(each.id for each in machines)
        rows = [_machine_cells(each, short_ids[each.id], context.now) for each in machines]
        _print_uncut(context, MACHINE_COLUMNS, rows)
    elif options.silent is None:
        print(NO_MACHINES)
    else:
        print(f"no machine has been silent for {strip_control(options.silent)}")
    return 0


def _machine_cells(machine: ReportingMachine, short_id: str, now: float) -> list[Cell]:
    clients = ", ".join(f"{agent} {version}" for agent, version in sorted(machine.clients.items()))
    refused = f"{machine.refused:,}" if machine.refused else ""
    texts = [
        short_id,
        machine.host or "unknown",
        machine.user or "",
        machine.team or "",
        format_age(now - machine.last_at),
        machine.version or "unknown",
        clients,
        machine.receive,
        format_end(machine.token_ends_at, now),
        f"{machine.behind:,}" if machine.behind else "",
        f"{refused}: {machine.refusal}" if refused and machine.refusal else refused,
    ]
    return [Cell(strip_control(text)) for text in texts]


_SHOW: Mapping[str, Callable[[CommandContext, argparse.Namespace], int]] = {
    "status": _show_status,
    "usage": _show_usage,
    "machines": _show_machines,
    "audit": _show_audit,
    "forget": forget,
}
