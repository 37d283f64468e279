"""The commands, their arguments, and what becomes of an error."""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Protocol

from brimline._version import __version__
from brimline.agents import agent_names
from brimline.cli import daemon_arguments
from brimline.cli.context import Context
from brimline.errors import BrimlineError
from brimline.settings import load
from brimline.terminal.text import strip_control
from brimline.transcripts.source import Places

NOWHERE = "brimline: the folder that you work in is not there any more\nGo to another: cd"
ABOUT = "Tells how full the context windows of AI coding agents are."


def run(arguments: list[str]) -> int:
    """Parse the arguments and run the command."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")
    try:
        options = parser(arguments[0] if arguments else None).parse_args(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    if options.version:
        print(f"brimline {__version__}")
        return 0
    if _is_nowhere():
        print(NOWHERE, file=sys.stderr)
        return 2
    try:
        context = _context(options)
        command = import_module(f"brimline.cli.{options.command or 'status'}")
        code: int = command.run(context, options)
    except BrimlineError as error:
        lines = [strip_control(line) for line in str(error).splitlines()]
        print(f"brimline: {chr(10).join(lines)}", file=sys.stderr)
        return 2
    return code


def _is_nowhere() -> bool:
    """Whether the working folder was deleted meanwhile."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _context(options: argparse.Namespace) -> Context:
    places = Places.here()
    told = {"since": getattr(options, "since", None), "colour": options.colour}
    # A daemon is the user's, wherever it is started: no project has a say in it.
    folder = Path("/") if options.command == "serve" else Path.cwd()
    settings = load(places.env, places.home, folder, told)
    return Context.for_terminal(places, settings)


def parser(asked: str | None = None) -> argparse.ArgumentParser:
    """The whole command line; where a command is asked for, without what the others take."""
    top = argparse.ArgumentParser("brimline", description=ABOUT)
    top.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    _colour(top, None)
    _status_arguments(top, bare=True)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", prog="brimline")
    chosen = [asked] if asked in COMMANDS else COMMANDS
    for name in chosen:
        about, add_arguments = COMMANDS[name]
        add_arguments(_command(commands, name, about))
    return top


class _Adds(Protocol):
    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser: ...


def _command(commands: _Adds, name: str, about: str) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    _colour(made, argparse.SUPPRESS)
    return made


def _colour(to: argparse.ArgumentParser, default: str | None) -> None:
    to.add_argument(
        "--colour",
        "--color",
        dest="colour",
        choices=("auto", "always", "never"),
        default=default,
        help="colours: auto (on a terminal, unless NO_COLOR is set), always, never",
    )


def _status_arguments(to: argparse.ArgumentParser, bare: bool = False) -> None:
    default = argparse.SUPPRESS if not bare else None
    to.add_argument("--all", action="store_true", default=default, help="also older sessions")
    _agent(to, default)
    _since(to, default)
    to.add_argument("--json", action="store_true", default=default, help="JSON instead of a table")


def _watch_arguments(to: argparse.ArgumentParser) -> None:
    _status_arguments(to)
    to.add_argument("--once", action="store_true", help="print one frame, and end")
    to.add_argument(
        "--files", action="store_true", help="read the files, whatever the daemon knows"
    )


def _inspect_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "target", metavar="PATH|SESSION|-", help="a file, a session's id, or - for stdin"
    )
    _agent(to)
    to.add_argument("--series", action="store_true", help="every call in the output")
    to.add_argument("--json", action="store_true", help="JSON instead of a chart and a table")


def _report_arguments(to: argparse.ArgumentParser) -> None:
    _agent(to)
    _since(to)
    to.add_argument("--project", metavar="TEXT", help="only projects whose path contains this")
    to.add_argument(
        "--by",
        choices=("day", "session", "project", "model"),
        default="day",
        help="what a line stands for (default: day)",
    )
    form = to.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON instead of a table")
    form.add_argument("--csv", action="store_true", help="CSV instead of a table")


def _windows_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("model", nargs="?", metavar="MODEL", help="a model's id, as the agent names it")
    _agent(to)
    to.add_argument("--json", action="store_true", help="JSON instead of text")


RUN_USAGE = """brimline run [OPTIONS] -- COMMAND [ARGUMENT ...]
       brimline run --summary FILE [--json]"""


def _run_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = RUN_USAGE
    to.add_argument(
        "--render",
        choices=("pretty", "plain", "json", "none"),
        help="pretty: text for people; plain: byte for byte; json: what it came to, and nothing of "
        "the child; none (default: pretty on a terminal, else plain)",
    )
    names = ", ".join(agent_names())
    to.add_argument("--agent", metavar="A", help=f"whose command it is: {names}")
    to.add_argument(
        "--iterations", type=int, default=1, metavar="N", help="run it up to so often (default 1)"
    )
    to.add_argument("--until", metavar="TEXT", help="end the loop when the agent says this")
    to.add_argument(
        "--hat", action="append", metavar="NAME", help="names the iterations; several take turns"
    )
    to.add_argument("--events", metavar="FILE", help="append a row for each iteration to this file")
    _level_arguments(to)
    to.add_argument(
        "--config", metavar="FILE", help="a Ralph YAML: event_loop.context_window_tokens is read"
    )
    to.add_argument(
        "--summary", metavar="FILE", help="run nothing: show last and peak by hat of such a file"
    )
    to.add_argument("--json", action="store_true", help="with --summary: JSON instead of a table")
    to.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")


def _level_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("--warn", metavar="P[,P]", help="say so when it is so full, in per cent")
    to.add_argument("--on-warn", metavar="CMD", help="run this with sh when a --warn is reached")
    to.add_argument("--stop-at", metavar="P", help="end the child gently when it is so full")


def _baseline_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--agent", metavar="A", default="claude", help="which agent's (default: claude)"
    )
    to.add_argument("--model", metavar="M", help="the model, as the agent names it")
    to.add_argument("--fresh", action="store_true", help="ask the client, whatever is cached")
    to.add_argument("--json", action="store_true", help="JSON instead of a table")


def _demo_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="times as fast (default 1)"
    )


def _agent(to: argparse.ArgumentParser, default: str | None = None) -> None:
    names = ", ".join(agent_names())
    to.add_argument("--agent", metavar="A", default=default, help=f"one agent only: {names}")


def _since(to: argparse.ArgumentParser, default: str | None = None) -> None:
    to.add_argument(
        "--since", metavar="SPAN", default=default, help="how far back: 90m, 24h, 7d, 2w"
    )


COMMANDS: daemon_arguments.Table = {
    "status": ("every active session, fullest first", _status_arguments),
    "watch": ("every session in the terminal, as it changes", _watch_arguments),
    "inspect": ("one transcript or stream, call by call", _inspect_arguments),
    "report": ("sessions, calls, peaks, compactions, cost", _report_arguments),
    "windows": ("which windows and limits we believe, and why", _windows_arguments),
    "run": ("a headless agent, its output untouched, its context tracked", _run_arguments),
    "baseline": ("what a fresh session holds before anything is said", _baseline_arguments),
    **daemon_arguments.COMMANDS,
    "demo": ("a recorded session, replayed at speed", _demo_arguments),
}
"""The commands in the order of the help."""
