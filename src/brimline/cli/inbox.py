"""`brimline inbox`: what waits for every session, or a session's messages and their fates."""

import argparse

from brimline.api.client.request import session_path
from brimline.cli.arguments import add_flag, add_json, check_session
from brimline.cli.context import CommandContext, emit_json, print_table
from brimline.cli.daemon_requests import SessionRef, request, resolve_session
from brimline.terminal.text import Cell, Column, format_age, strip_control

WAITING = "/v1/messages"

COLUMNS = (
    Column("session", min_width=8),
    Column("state", drop_order=1),
    Column("kind", drop_order=3),
    Column("age", right=True, drop_order=2),
    Column("message", min_width=10),
)


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "the beginning of a session's id, or words of its title (default: what is pending)"
    to.add_argument("session", type=check_session, nargs="?", metavar="SESSION", help=help_text)
    add_flag(to, "--ended", "include sessions that have ended")
    add_json(to, "a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    session = None if options.session is None else resolve_session(context, options.session)
    waiting = f"{WAITING}?ended=1" if options.ended else WAITING
    messages = request(
        context, "GET", session_path(session.id, "/messages") if session else waiting
    )
    if options.json:
        emit_json(messages)
        return 0
    if not messages:
        print(_none(session))
        return 0
    rows = [
        [
            Cell(strip_control(message["session"][:8])),
            Cell(message["state"]),
            Cell(message["urgency"]),
            Cell(format_age(context.now - message["at"])),
            Cell(strip_control(" ".join(message["text"].split()))),
        ]
        for message in messages
    ]
    print_table(context, COLUMNS, rows)
    return 0


def _none(one: SessionRef | None) -> str:
    if one is None:
        return "no pending messages"
    if one.known:
        return "no messages"
    near = f"; did you mean {strip_control(one.near)}?" if one.near else ""
    return f"no messages: unknown session{near}"
