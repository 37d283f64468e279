"""`brimline watch`: every session in a terminal, as it changes; `--once` prints one frame."""

import argparse
import os
import sys

import msgspec

from brimline.cli.ask import ask
from brimline.cli.context import Context, emit_json
from brimline.cli.store_problems import print_store_problems
from brimline.errors import NotRunning
from brimline.settings import seconds, socket_path, state_dir
from brimline.sources import AGENTS, known
from brimline.terminal.text import count_of
from brimline.tui.api_types import View, views
from brimline.tui.files import Files
from brimline.tui.filter import Look, shown
from brimline.tui.rows import LEAST, Rows
from brimline.tui.styled_text import Line, Piece, ansi


def run(context: Context, options: argparse.Namespace) -> int:
    """Watch until the user quits, or print one frame."""
    agents = (known(options.agent),) if options.agent else tuple(AGENTS)
    files = Files(context.places, context.settings, context.cache, agents, bool(options.all))
    look = Look(context.places.home, agents=agents if options.agent else ())
    if options.once or options.json or not _on_terminal(context):
        code = _frame(context, options, files, look)
    else:
        code = _watch(context, options, files, look)
    print_store_problems(context)  # now: before, the full screen would hide it
    return code


def _on_terminal(context: Context) -> bool:
    """Whether there is a screen: Textual reads keys from the first, and draws on the last."""
    files = (sys.stdin, sys.stdout, sys.stderr)
    return all(file.isatty() for file in files) and context.places.env.get("TERM") != "dumb"


def _watch(context: Context, options: argparse.Namespace, files: Files, look: Look) -> int:
    from brimline.tui.app import Watch
    from brimline.tui.daemon_client import Daemon
    from brimline.tui.provider import Origin
    from brimline.tui.session_list import Board

    # Textual goes by the environment; here our own setting and option count.
    os.environ.pop("NO_COLOR", None)
    if not context.colour:
        os.environ["NO_COLOR"] = "1"
    state = state_dir(context.places.env, context.places.home)
    daemon = None if options.files else Daemon(socket_path(state, os.getuid(), "http"))
    span = None if options.all else seconds(context.settings.since)
    app = Watch(Origin(daemon, files), Board(look, span, context.colour))
    app.run()
    return app.return_code or 0


def _frame(context: Context, options: argparse.Namespace, files: Files, look: Look) -> int:
    every, live = _views(context, options, files)
    since = None if options.all else context.now - seconds(context.settings.since)
    found = shown(every, Look(look.home, agents=look.agents, since=since))
    if options.json:
        emit_json(found)
        return 0
    rows = Rows(max(LEAST, context.width), context.now, look.home)
    where = "live" if live else "no daemon: read from the files"
    print(f"{where}  {count_of(len(found), 'session')}")
    table = [rows.head(), *(line for view in found for line in rows.lines(view))]
    lines = table if found else _nothing(bool(every), look, live)
    print("\n".join(ansi(line, context.colour) for line in lines))
    return 0


def _nothing(hidden: bool, look: Look, live: bool) -> list[Line]:
    """What to do where no session is shown."""
    from brimline.tui.texts import nothing

    if hidden:
        return [[Piece("  No session is live; --all shows the older ones.")]]
    return nothing("live" if live else "files", hidden, look)


def _views(context: Context, options: argparse.Namespace, files: Files) -> tuple[list[View], bool]:
    if not options.files:
        try:
            return views(msgspec.json.encode(ask(context, "GET", "/v1/sessions"))), True
        except NotRunning:
            pass
    return files.views(context.now), False
