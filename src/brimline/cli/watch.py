"""`brimline watch`: every session in a terminal, as it changes; `--once` prints one frame."""

import argparse
import os
import signal
import sys

import msgspec

from brimline.cli.arguments import add_flag, add_status_arguments, chosen_agents
from brimline.cli.context import CommandContext, emit_json, print_store_problems
from brimline.cli.daemon_requests import request
from brimline.errors import NotRunning
from brimline.files.socket_path import socket_path
from brimline.settings import seconds
from brimline.terminal.text import count_of
from brimline.tui.api_types import WatchedSession, decode_views
from brimline.tui.files import TranscriptFiles
from brimline.tui.filter import ListOptions, group_starts, select_sessions
from brimline.tui.rows import MIN_COLUMNS, OverviewRows
from brimline.tui.styled_text import Line, StyledText, to_ansi


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_status_arguments(to)
    add_flag(to, "--once", "print one frame and exit")
    add_flag(to, "--files", "read the transcripts, even if the daemon is running")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Watch until the user quits, or print one frame."""
    agents = chosen_agents(options)
    files = TranscriptFiles(
        context.places, context.settings, context.cache, agents, bool(options.all)
    )
    look = ListOptions(context.places.home, agents=agents if options.agent else ())
    if options.once or options.json or not _on_terminal(context):
        code = _frame(context, options, files, look)
    else:
        code = _watch(context, options, files, look)
    print_store_problems(context)  # now: before, the full screen would hide it
    return code


def _on_terminal(context: CommandContext) -> bool:
    """Return whether Textual can read keys and draw."""
    files = (sys.stdin, sys.stdout, sys.stderr)
    return all(file.isatty() for file in files) and context.places.env.get("TERM") != "dumb"


def _watch(
    context: CommandContext, options: argparse.Namespace, files: TranscriptFiles, look: ListOptions
) -> int:
    from brimline.api.client.stream import DaemonClient
    from brimline.tui.app import TerminalApp
    from brimline.tui.provider import SessionProvider
    from brimline.tui.session_list import SessionList

    # Textual reads the environment; here our own setting and option count.
    os.environ.pop("NO_COLOR", None)
    if not context.colour:
        os.environ["NO_COLOR"] = "1"
    socket = socket_path(context.state, os.getuid(), "http")
    daemon = None if options.files else DaemonClient(socket)
    span = None if options.all else seconds(context.settings.since)
    app = TerminalApp(SessionProvider(daemon, files), SessionList(look, span, context.colour))
    app.run()
    if app.end_signal is not None:
        signal.raise_signal(app.end_signal)
    return app.return_code or 0


def _frame(
    context: CommandContext, options: argparse.Namespace, files: TranscriptFiles, look: ListOptions
) -> int:
    every, live = _views(context, options, files)
    since = None if options.all else context.now - seconds(context.settings.since)
    shown = ListOptions(look.home, agents=look.agents, since=since)
    selected = select_sessions(every, shown)
    if options.json:
        emit_json(selected)
        return 0
    starts = group_starts(selected, shown.sort)
    rows = OverviewRows(max(MIN_COLUMNS, context.width), context.now, look.home, starts)
    where = "live" if live else "no daemon, read from transcripts"
    print(f"{where}  {count_of(len(selected), 'session')}")
    table = [rows.header(), *(line for view in selected for line in rows.lines(view))]
    lines = table if selected else _nothing(bool(every), look, live)
    print("\n".join(to_ansi(line, context.colour) for line in lines))
    return 0


def _nothing(hidden: bool, look: ListOptions, live: bool) -> list[Line]:
    from brimline.tui.texts import empty_list_lines

    if hidden:
        return [[StyledText("  No live sessions. Use --all to show older ones.")]]
    return empty_list_lines("live" if live else "files", hidden, look)


def _views(
    context: CommandContext, options: argparse.Namespace, files: TranscriptFiles
) -> tuple[list[WatchedSession], bool]:
    if not options.files:
        try:
            return decode_views(msgspec.json.encode(request(context, "GET", "/v1/sessions"))), True
        except NotRunning:
            pass
    return files.read_views(context.now), False
