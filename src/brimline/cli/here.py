"""`brimline here`: the status of the session that it runs in, for agents, prompts and tmux."""

import argparse

from brimline.cli.arguments import add_json, check_session
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.own_session import find_own_status, find_status
from brimline.context.short_status import FIELDS, SHORT_FORMAT
from brimline.terminal.text import strip_control


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "the beginning of another session's id, or words of its title (default: this one)"
    to.add_argument("session", type=check_session, nargs="?", metavar="SESSION", help=help_text)
    help_text = f"print {SHORT_FORMAT.replace('{', '').replace('}', '')} alone"
    to.add_argument(
        "--short", action="store_const", dest="format", const=SHORT_FORMAT, help=help_text
    )
    help_text = f"print a text with fields in braces: {', '.join(FIELDS)}"
    to.add_argument("--format", metavar="TEXT", help=help_text)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.session is None:
        status = find_own_status(context)
    else:
        status = find_status(context, options.session)
    if options.json:
        emit_json(status)
    else:
        line = status.text if options.format is None else status.format(options.format)
        print(strip_control(line))
    return 0
