"""`brimline inbox`: the messages of a session, or of all, and what became of them."""

import argparse

from brimline.cli.ask import ask, named, of_session
from brimline.cli.context import Context, emit_json
from brimline.paint import Cell, Column, age, clean, table

COLUMNS = (
    Column("session", least=8),
    Column("state"),
    Column("kind"),
    Column("age", right=True),
    Column("message", least=20),
)


def run(context: Context, options: argparse.Namespace) -> int:
    """Show them."""
    one = named(context, options.session) if options.session else None
    ids = [one.id] if one else _sessions(context)
    told = [m for id in ids for m in ask(context, "GET", of_session(id, "/messages"))]
    if options.json:
        emit_json(told)
        return 0
    if not told:
        print("no messages" if one is None or one.known else "no messages, and no such session")
        return 0
    rows = [
        [
            Cell(clean(message["session"][:8])),
            Cell(message["state"]),
            Cell(message["urgency"]),
            Cell(age(context.now - message["at"])),
            Cell(clean(message["text"])),
        ]
        for message in told
    ]
    print("\n".join(table(COLUMNS, rows, context.width, context.colour)))
    return 0


def _sessions(context: Context) -> list[str]:
    return [view["session"]["id"] for view in ask(context, "GET", "/v1/sessions")]
