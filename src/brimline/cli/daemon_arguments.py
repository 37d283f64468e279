"""The arguments of the commands that are about the daemon and what it watches."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

Table: TypeAlias = dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]
"""Commands by name: what each is about, and what adds its arguments."""


SETUP_USAGE = "brimline setup [OPTIONS] [AGENT ...]"
SERVE_USAGE = """brimline serve [--port N] [--background | --demo]
       brimline serve --status [--json] | --stop"""
HANDOFF_USAGE = """brimline handoff PATH [--clear | --spawn] [OPTIONS]
       brimline handoff [--show | --list] [OPTIONS]
       brimline handoff --draft [SESSION] [OPTIONS]"""
"""Written by hand: argparse never breaks a group of arguments, however narrow the terminal."""


def _setup(to: argparse.ArgumentParser) -> None:
    to.usage = SETUP_USAGE
    to.add_argument(
        "agents", nargs="*", metavar="AGENT", help="which (default: all that are found)"
    )
    to.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
    to.add_argument("--remove", action="store_true", help="take our entries out again")
    to.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="whose settings: the user's (default), or those of the working folder",
    )
    to.add_argument(
        "--transport",
        choices=("command", "http"),
        help="how Claude Code's hooks reach the daemon (default: as it is set up, else command)",
    )
    to.add_argument(
        "--status-line",
        choices=("prepend", "append", "replace"),
        help="where ours goes beside your own (default: as it is set up, else append)",
    )
    to.add_argument(
        "--autostart",
        action=argparse.BooleanOptionalAction,
        help="whether a session's start starts the daemon (default: as the settings say, else yes)",
    )
    to.add_argument(
        "--service", action="store_true", help="the daemon as a service of systemd or launchd"
    )
    to.add_argument(
        "--parent",
        nargs="?",
        const="",
        metavar="SESSION",
        help="the session that is told of this project's (--scope project), or of all others",
    )
    to.add_argument("--json", action="store_true", help="JSON instead of diffs")


def _doctor(to: argparse.ArgumentParser) -> None:
    to.add_argument("--json", action="store_true", help="JSON instead of text")


def _serve(to: argparse.ArgumentParser) -> None:
    to.usage = SERVE_USAGE
    to.add_argument(
        "--port", type=_port, metavar="N", help="on loopback (8420); `any` other where it is taken"
    )
    which = to.add_mutually_exclusive_group()
    which.add_argument(
        "--background", action="store_true", help="start it, and come back when it answers"
    )
    which.add_argument(
        "--autostart",
        action="store_true",
        help="as a session's start does: no word, see `serve.log`",
    )
    which.add_argument(
        "--demo", action="store_true", help="show recorded sessions instead, beside a daemon"
    )
    which.add_argument("--status", action="store_true", help="tell of the one that runs")
    which.add_argument("--stop", action="store_true", help="end the one that runs")
    to.add_argument("--json", action="store_true", help="with --status: JSON instead of text")


ANY = 0
"""No port of its own: the usual one, or any other where another program has that."""


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
        told = f"expected UTF-8: got other bytes, from character {error.start + 1} on"
        raise argparse.ArgumentTypeError(told) from error
    return text


def _session(text: str) -> str:
    if not text.strip():
        told = "expected an id, or its beginning: got nothing (`brimline status` lists sessions)"
        raise argparse.ArgumentTypeError(told)
    return _text(text)


def _path(text: str) -> str:
    if not text or len(text.splitlines()) > 1:
        raise argparse.ArgumentTypeError(f"expected a path in one line: got {text!r}")
    return _text(text)


def _open(to: argparse.ArgumentParser) -> None:
    to.add_argument("--print", action="store_true", help="print the link instead of opening it")
    to.add_argument("--json", action="store_true", help="print the link as JSON")


def _send(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "session", type=_session, metavar="SESSION", help="the session's id, or its beginning"
    )
    to.add_argument("text", type=_text, metavar="TEXT", help="what to tell it")
    to.add_argument(
        "--urgent", action="store_true", help="at the next tool result, not at the next turn"
    )
    to.add_argument("--json", action="store_true", help="JSON instead of text")


def _inbox(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "session",
        type=_session,
        nargs="?",
        metavar="SESSION",
        help="its id, or the beginning of it (default: what waits, for all)",
    )
    to.add_argument("--json", action="store_true", help="JSON instead of a table")


OWN = True
"""The session that a command runs in, or the one that --session names."""


def _handoff(to: argparse.ArgumentParser) -> None:
    to.usage = HANDOFF_USAGE
    to.set_defaults(wrong=to.error)
    to.add_argument(
        "path", type=_path, nargs="?", metavar="PATH", help="the document; without it, --show"
    )
    to.add_argument(
        "--session",
        type=_session,
        metavar="ID",
        help="whose, by its id or its beginning (default: the agent that runs this)",
    )
    which = to.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="the last one that was handed over")
    which.add_argument("--list", action="store_true", help="all, and what became of --clear")
    which.add_argument(
        "--clear",
        action="store_true",
        help="when the turn ends, clear the session in its tmux pane and go on from the document",
    )
    which.add_argument(
        "--spawn", action="store_true", help="start the client anew, to go on from the document"
    )
    which.add_argument(
        "--draft",
        type=_session,
        nargs="?",
        const=OWN,
        metavar="SESSION",
        help="one made from the transcript, without a model",
    )
    to.add_argument("--output", metavar="FILE", help="with --draft: write it there")
    to.add_argument("--agent", metavar="A", help="with --spawn, --clear or --draft: whose")
    to.add_argument("--json", action="store_true", help="JSON instead of text")


COMMANDS: Table = {
    "setup": ("our hooks and status line in the agents' settings", _setup),
    "doctor": ("what is there, what is heard from, what to do about the rest", _doctor),
    "serve": ("the daemon: hears the agents' hooks, serves the API", _serve),
    "open": ("open the dashboard in a browser", _open),
    "send": ("a message for a session, delivered by its hooks", _send),
    "inbox": ("the messages that wait; of a session all, and what became of them", _inbox),
    "handoff": ("hand a document over, to be brought back after a compaction", _handoff),
}
"""These commands, in the order of the help."""
