"""`brimline inbox`: what waits for every session, or a session's messages and their fates."""

import argparse

from brimline.cli.ask import Named, ask, named, of_session
from brimline.cli.context import Context, emit_json
from brimline.terminal.text import Cell, Column, age, clean, table

WAITING = "/v1/messages"

COLUMNS = (
    Column("session", least=8),
    Column("state", drop=1),
    Column("kind", drop=3),
    Column("age", right=True, drop=2),
    Column("message", least=10),
)


def run(context: Context, options: argparse.Namespace) -> int:
    """Show them."""
    one = None if options.session is None else named(context, options.session)
    told = ask(context, "GET", of_session(one.id, "/messages") if one else WAITING)
    if options.json:
        emit_json(told)
        return 0
    if not told:
        print(_none(one))
        return 0
    rows = [
        [
            Cell(clean(message["session"][:8])),
            Cell(message["state"]),
            Cell(message["urgency"]),
            Cell(age(context.now - message["at"])),
            Cell(clean(" ".join(message["text"].split()))),
        ]
        for message in told
    ]
    print("\n".join(table(COLUMNS, rows, context.width, context.colour)))
    return 0


def _none(one: Named | None) -> str:
    if one is None:
        return "no messages wait"
    return "no messages" if one.known else "no messages, and no such session"
