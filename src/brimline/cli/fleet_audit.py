"""`brimline fleet audit`: who sent what to which agent, from the fleet's server."""

import argparse
from datetime import UTC, datetime

import msgspec

from brimline.cli.context import Context, print_table
from brimline.cli.fleet_server import decode_answer, get_from_server
from brimline.terminal.text import Cell, Column, escape_control, strip_control

DEFAULT_ENTRIES = 20
MAX_ENTRIES = 1_000  # of one answer of the server
NO_ENTRIES = "no messages or handoffs were sent through the server"

COLUMNS = (
    Column("time (UTC)", min_width=19),
    Column("by", min_width=8),
    Column("sent", min_width=7),
    Column("to session", min_width=12),
    Column("message or SHA-256", min_width=12, drop_order=1),
)


class SentEntry(msgspec.Struct, frozen=True):
    """What is shown of an entry of `GET /v1/audit`."""

    at: float
    actor: str
    action: str
    session: str | None
    subject: str | None


def add_audit_arguments(to: argparse.ArgumentParser) -> None:
    help_text = f"with audit: the last N, at most {MAX_ENTRIES:,} (default {DEFAULT_ENTRIES})"
    to.add_argument("--limit", type=_parse_limit, metavar="N", help=help_text)


def _parse_limit(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_ENTRIES:
        problem = f"expected a number from 1 to {MAX_ENTRIES:,}: got {text!r}"
        raise argparse.ArgumentTypeError(problem)
    return int(text)


def show_audit(context: Context, options: argparse.Namespace) -> int:
    """Print the last entries, the newest first."""
    body = get_from_server(context, options, f"/v1/audit?limit={options.limit or DEFAULT_ENTRIES}")
    if options.json:
        print(escape_control(body.decode("utf-8", "replace")))
        return 0
    entries = decode_answer(body, list[SentEntry])
    if entries:
        print_table(context, COLUMNS, [_cells(each) for each in entries])
    else:
        print(NO_ENTRIES)
    return 0


def _cells(entry: SentEntry) -> list[Cell]:
    texts = (entry.actor, entry.action, entry.session or "", entry.subject or "")
    time = datetime.fromtimestamp(entry.at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    return [Cell(time), *(Cell(strip_control(text)) for text in texts)]
