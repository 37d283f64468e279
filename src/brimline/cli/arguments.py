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

NO_WORKING_FOLDER = "brimline: the working directory no longer exists\nhint: cd to another one"
ABOUT = "Shows how full the context windows of AI coding agents are."


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
        print(NO_WORKING_FOLDER, file=sys.stderr)
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
        help="use colours: auto (on a terminal, unless NO_COLOR is set), always or never",
    )


def _status_arguments(to: argparse.ArgumentParser, bare: bool = False) -> None:
    default = argparse.SUPPRESS if not bare else None
    to.add_argument("--all", action="store_true", default=default, help="include older sessions")
    _agent(to, default)
    _since(to, default)
    to.add_argument(
        "--json", action="store_true", default=default, help="print JSON instead of a table"
    )


def _watch_arguments(to: argparse.ArgumentParser) -> None:
    _status_arguments(to)
    to.add_argument("--once", action="store_true", help="print one frame and exit")
    to.add_argument(
        "--files", action="store_true", help="read the transcripts, even if the daemon is running"
    )


def _inspect_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("target", metavar="PATH|SESSION|-", help="a file, a session id, or - for stdin")
    _agent(to)
    to.add_argument("--series", action="store_true", help="list every call")
    to.add_argument("--json", action="store_true", help="print JSON instead of a chart and a table")


def _report_arguments(to: argparse.ArgumentParser) -> None:
    _agent(to)
    _since(to)
    to.add_argument("--project", metavar="TEXT", help="only projects whose path contains TEXT")
    to.add_argument(
        "--by",
        choices=("day", "session", "project", "model"),
        default="day",
        help="group by this (default: day)",
    )
    form = to.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON instead of a table")
    form.add_argument("--csv", action="store_true", help="print CSV instead of a table")


def _windows_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("model", nargs="?", metavar="MODEL", help="a model id, as the agent writes it")
    _agent(to)
    to.add_argument("--json", action="store_true", help="print JSON instead of text")


RUN_USAGE = """brimline run [OPTIONS] -- COMMAND [ARGUMENT ...]
       brimline run --summary FILE [--json]"""


def _run_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = RUN_USAGE
    to.add_argument(
        "--render",
        choices=("pretty", "plain", "json", "none"),
        help="pretty: readable text; plain: the child's output unchanged; json: only the result; "
        "none: nothing (default: pretty on a terminal, else plain)",
    )
    names = ", ".join(agent_names())
    to.add_argument("--agent", metavar="A", help=f"the agent that COMMAND runs: {names}")
    to.add_argument(
        "--iterations",
        type=int,
        default=1,
        metavar="N",
        help="run the command up to N times (default 1)",
    )
    to.add_argument(
        "--until", metavar="TEXT", help="stop the loop when the agent's reply contains TEXT"
    )
    to.add_argument(
        "--hat",
        action="append",
        metavar="NAME",
        help="name of the iterations; several names take turns",
    )
    to.add_argument("--events", metavar="FILE", help="append one row per iteration to FILE")
    _level_arguments(to)
    to.add_argument(
        "--config",
        metavar="FILE",
        help="read event_loop.context_window_tokens from a Ralph YAML file",
    )
    to.add_argument(
        "--summary",
        metavar="FILE",
        help="run nothing; show last and peak usage by hat from an --events file",
    )
    to.add_argument(
        "--json", action="store_true", help="with --summary: print JSON instead of a table"
    )
    to.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command to run"
    )


def _level_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("--warn", metavar="P[,P]", help="warn when the context reaches P percent")
    to.add_argument("--on-warn", metavar="CMD", help="run CMD with sh at each --warn level")
    to.add_argument(
        "--stop-at", metavar="P", help="stop the child at P percent (SIGINT, then TERM, KILL)"
    )


def _baseline_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--agent", metavar="A", default="claude", help="the agent to ask (default: claude)"
    )
    to.add_argument("--model", metavar="M", help="the model id, as the agent writes it")
    to.add_argument(
        "--fresh", action="store_true", help="ask the client again, and ignore the cache"
    )
    to.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _demo_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="replay X times as fast (default 1)"
    )


def _agent(to: argparse.ArgumentParser, default: str | None = None) -> None:
    names = ", ".join(agent_names())
    to.add_argument("--agent", metavar="A", default=default, help=f"only this agent: {names}")


def _since(to: argparse.ArgumentParser, default: str | None = None) -> None:
    to.add_argument(
        "--since", metavar="SPAN", default=default, help="how far to look back: 90m, 24h, 7d, 2w"
    )


# The commands in the order of the help.
COMMANDS: daemon_arguments.Table = {
    "status": ("list active sessions, the fullest first", _status_arguments),
    "watch": ("watch all sessions live in the terminal", _watch_arguments),
    "inspect": ("show one transcript or stream, call by call", _inspect_arguments),
    "report": ("sum up calls, tokens, peaks, compactions and cost", _report_arguments),
    "windows": ("show the window and limit of each model, and why", _windows_arguments),
    "run": ("run a headless agent and track its context", _run_arguments),
    "baseline": ("show the tokens that a fresh session starts with", _baseline_arguments),
    **daemon_arguments.COMMANDS,
    "demo": ("replay a recorded session", _demo_arguments),
}
