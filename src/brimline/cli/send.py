"""`brimline send`: a message for a session, delivered by its hooks or typed into its pane."""

import argparse
from collections.abc import Mapping
from typing import Any

from brimline.api.client.request import TIMEOUT_S, session_path
from brimline.cli.arguments import add_flag, add_json, check_session, check_utf8
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.daemon_requests import SessionRef, request, resolve_session
from brimline.cli.session_choice import find_current_session
from brimline.context.inbox import MESSAGE_LIFETIME_S
from brimline.terminal.text import strip_control

WAKE_TIMEOUT_S = 30.0  # a client may be slow to show a text, and to submit it


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = (
        "the beginning of a session's id, or words of its title (default: this or the latest)"
    )
    to.add_argument("session", type=check_session, nargs="?", metavar="SESSION", help=help_text)
    to.add_argument("text", type=check_utf8, metavar="TEXT", help="the message")
    add_flag(to, "--urgent", "deliver with the next tool result, not only with the next prompt")
    add_flag(to, "--block-stop", "do not let the agent's turn end before it has read the message")
    add_flag(
        to, "--wake", "type it into the agent's tmux pane if it is idle and its input is empty"
    )
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Queue a message, or type it; the exit code is 1 if nothing will deliver it."""
    session = resolve_session(context, options.session)
    body = {
        "text": options.text,
        "urgent": options.urgent,
        "blocks_stop": options.block_stop,
        "wake": options.wake,
    }
    return send_message(context, session, body, as_json=options.json)


def send_message(
    context: CommandContext, session: SessionRef, body: Mapping[str, Any], *, as_json: bool
) -> int:
    """Queue a message and print what becomes of it; returns the exit code of the command."""
    own = find_current_session(context.places.env)
    sender = own.session if own else None
    path, wait_s = session_path(session.id, "/messages"), TIMEOUT_S
    if body.get("wake"):
        wait_s = WAKE_TIMEOUT_S
    message = request(context, "POST", path, {**body, "sender": sender or "user"}, wait_s)
    undeliverable = message.get("undeliverable")  # an older daemon does not know
    if as_json:
        emit_json(message)
        return 1 if undeliverable else 0
    if message["typed"]:
        print(f"typed into the pane of {strip_control(session.id)}")
        return 0
    if message["not_typed"]:
        print(f"not typed: {message['not_typed']}")
    arrival = "the next prompt or tool result" if body["urgent"] else "the next prompt"
    if body.get("blocks_stop"):
        arrival += ", or before the turn of an interactive session ends"
    fate = "but nothing will deliver it" if undeliverable else f"delivered with {arrival}"
    print(f"queued for {strip_control(session.id)}: {fate}")
    if undeliverable:
        print(strip_control(undeliverable))
    if note := _note(session):
        print(note)
    return 1 if undeliverable else 0


def _note(session: SessionRef) -> str | None:
    """Return a note about a session that is unknown, was cleared or has ended."""
    hours = f"{MESSAGE_LIFETIME_S / 3_600:g} hours"
    row = session.row
    if row is None:
        near = f" (did you mean {strip_control(session.near)}?)" if session.near else ""
        return f"unknown session{near}: the message is kept for {hours} in case it starts"
    if row.continued_as is not None:
        return f"it was cleared and continues as {strip_control(row.continued_as)}: delivered there"
    if not row.has_ended:
        return None
    return f"it has ended: the message is kept for {hours} in case it is resumed"
