"""The arguments of the commands that are about the daemon and what it watches."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

# Commands by name: what each is about, and what adds its arguments.
Table: TypeAlias = dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]


SETUP_USAGE = "brimline setup [OPTIONS] [AGENT ...]"
SERVE_USAGE = """brimline serve [--port N] [--background | --demo]
       brimline serve --status [--json] | --stop"""
# Written by hand: argparse never breaks a group of arguments, however narrow the terminal.
HANDOFF_USAGE = """brimline handoff PATH [--clear | --spawn] [OPTIONS]
       brimline handoff [--show | --list] [OPTIONS]
       brimline handoff --draft [SESSION] [OPTIONS]"""


def _setup(to: argparse.ArgumentParser) -> None:
    to.usage = SETUP_USAGE
    to.add_argument(
        "agents", nargs="*", metavar="AGENT", help="agents to set up (default: all installed)"
    )
    to.add_argument("--dry-run", action="store_true", help="show the changes without writing them")
    to.add_argument("--remove", action="store_true", help="remove Brimline's entries")
    to.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="settings to change: the user's (default) or the current project's",
    )
    to.add_argument(
        "--transport",
        choices=("command", "http"),
        help="how Claude Code's hooks reach the daemon (default: unchanged, else command)",
    )
    to.add_argument(
        "--status-line",
        choices=("prepend", "append", "replace"),
        help="how to combine with your own status line (default: unchanged, else append)",
    )
    to.add_argument(
        "--autostart",
        action=argparse.BooleanOptionalAction,
        help="start the daemon when a session starts (default: from the settings, else yes)",
    )
    to.add_argument(
        "--service", action="store_true", help="run the daemon as a systemd or launchd service"
    )
    to.add_argument(
        "--parent",
        nargs="?",
        const="",
        metavar="SESSION",
        help="session to notify about all sessions, or this project's (--scope project)",
    )
    to.add_argument("--json", action="store_true", help="print JSON instead of diffs")


def _doctor(to: argparse.ArgumentParser) -> None:
    to.add_argument("--json", action="store_true", help="print JSON instead of text")


def _serve(to: argparse.ArgumentParser) -> None:
    to.usage = SERVE_USAGE
    to.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="port on 127.0.0.1 (default 8420; `any`: pick a free one)",
    )
    which = to.add_mutually_exclusive_group()
    which.add_argument(
        "--background", action="store_true", help="start the daemon and return when it is ready"
    )
    which.add_argument(
        "--autostart",
        action="store_true",
        help="start silently, as the SessionStart hook does; log to serve.log",
    )
    which.add_argument(
        "--demo", action="store_true", help="serve sample sessions on a port of their own"
    )
    which.add_argument("--status", action="store_true", help="show the running daemon")
    which.add_argument("--stop", action="store_true", help="stop the running daemon")
    to.add_argument("--json", action="store_true", help="with --status: print JSON instead of text")


ANY = 0  # the usual port, or any free one if that is taken


def _port(text: str) -> int:
    if text == "any":
        return ANY
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, or `any`: got {text!r}")
    return int(text)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        told = f"expected UTF-8: invalid from character {error.start + 1}"
        raise argparse.ArgumentTypeError(told) from error
    return text


def _session(text: str) -> str:
    if not text.strip():
        told = "expected a session id or prefix: got nothing (`brimline status` lists sessions)"
        raise argparse.ArgumentTypeError(told)
    return _text(text)


def _path(text: str) -> str:
    if not text or len(text.splitlines()) > 1:
        raise argparse.ArgumentTypeError(f"expected a path on one line: got {text!r}")
    return _text(text)


def _open(to: argparse.ArgumentParser) -> None:
    to.add_argument("--print", action="store_true", help="print the link instead of opening it")
    to.add_argument("--json", action="store_true", help="print the link as JSON")


def _send(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "session", type=_session, metavar="SESSION", help="a session id or a unique prefix"
    )
    to.add_argument("text", type=_text, metavar="TEXT", help="the message")
    to.add_argument(
        "--urgent",
        action="store_true",
        help="deliver at the next tool result instead of the next turn",
    )
    to.add_argument("--json", action="store_true", help="print JSON instead of text")


def _inbox(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "session",
        type=_session,
        nargs="?",
        metavar="SESSION",
        help="a session id or a unique prefix (default: pending messages of all sessions)",
    )
    to.add_argument("--json", action="store_true", help="print JSON instead of a table")


OWN = True  # the session that a command runs in, or the one that --session names


def _handoff(to: argparse.ArgumentParser) -> None:
    to.usage = HANDOFF_USAGE
    to.set_defaults(wrong=to.error)
    to.add_argument(
        "path",
        type=_path,
        nargs="?",
        metavar="PATH",
        help="the document to hand over (default: --show)",
    )
    to.add_argument(
        "--session",
        type=_session,
        metavar="ID",
        help="a session id or a unique prefix (default: the session this runs in)",
    )
    which = to.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="show the last handoff")
    which.add_argument(
        "--list", action="store_true", help="list all handoffs and the result of each --clear"
    )
    which.add_argument(
        "--clear",
        action="store_true",
        help="when the turn ends, clear the session in tmux and continue from the document",
    )
    which.add_argument(
        "--spawn", action="store_true", help="start a new session that continues from the document"
    )
    which.add_argument(
        "--draft",
        type=_session,
        nargs="?",
        const=OWN,
        metavar="SESSION",
        help="write a draft from the transcript, without a model",
    )
    to.add_argument("--output", metavar="FILE", help="with --draft: write it to FILE")
    to.add_argument("--agent", metavar="A", help="with --spawn, --clear or --draft: the agent")
    to.add_argument("--json", action="store_true", help="print JSON instead of text")


# These commands, in the order of the help.
COMMANDS: Table = {
    "setup": ("install hooks and status line in the agents' settings", _setup),
    "doctor": ("check hooks, daemon and store, and suggest fixes", _doctor),
    "serve": ("run the daemon that monitors sessions and serves the API", _serve),
    "open": ("open the dashboard in a browser", _open),
    "send": ("send a message to a session", _send),
    "inbox": ("list pending messages, or all messages of one session", _inbox),
    "handoff": ("save a handoff document; it is re-injected after compaction", _handoff),
}
