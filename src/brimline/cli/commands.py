"""The commands; each is a module with `add_arguments` and `run`, imported when it is named."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from brimline._version import __version__
from brimline.agents.transcripts.source import Places
from brimline.cli.arguments import add_status_arguments
from brimline.cli.context import CommandContext, prepare_output, terminal_width
from brimline.errors import BrimlineError, suggest
from brimline.settings import load
from brimline.terminal.text import strip_control

NO_WORKING_FOLDER = "brimline: the working directory no longer exists\nhint: cd to another one"
MISSING = (
    "brimline: this command needs the package {name}, which brimline-core does not include: "
    "run `pip install 'brimline-core[daemon]'`"
)
ABOUT = "Shows how full the context windows of AI coding agents are."
MORE_HELP = "`brimline help COMMAND` describes a command."
USAGE_INDENT = " " * len("usage: ")

# The commands in the order of the help.
COMMANDS = {
    "status": "list active sessions, recent and full ones first",
    "watch": "watch all sessions live in the terminal",
    "inspect": "show one transcript or stream, call by call",
    "explain": "show what fills a session's context, and what is wasted",
    "report": "sum up calls, tokens, peaks, compactions and cost",
    "windows": "show the window and limit of each model, and why",
    "run": "run a headless agent and track its context",
    "baseline": "show the tokens that a fresh session starts with",
    "setup": "install hooks and status line in the agents' settings",
    "doctor": "check hooks, daemon and store, and suggest fixes",
    "serve": "run the daemon that monitors sessions and serves the API",
    "open": "open the dashboard in a browser",
    "send": "send a message to a session",
    "inbox": "list pending messages, or all messages of one session",
    "handoff": "save a handoff document; it is re-injected after compaction",
    "fleet": "show a fleet's figures and audit log, or settings that point clients at it",
    "token": "create, list and revoke the tokens of a fleet's server",
    "demo": "replay a recorded session",
    "completion": "print the completion script of a shell",
}


def run(arguments: list[str]) -> int:
    prepare_output(os.environ)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        print(_describe_unknown(arguments[0]), file=sys.stderr)
        return 2
    try:
        options = create_parser(arguments).parse_args(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    if options.version:
        print(f"brimline {__version__}")
        return 0
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        print(NO_WORKING_FOLDER, file=sys.stderr)
        return 2
    try:
        return _import_command(options.command or "status").run(_context(options, folder), options)
    except BrimlineError as error:
        lines = [strip_control(line) for line in str(error).splitlines()]
        print(f"brimline: {chr(10).join(lines)}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("brimline"):
            raise
        print(MISSING.format(name=error.name), file=sys.stderr)
        return 2


def _describe_unknown(command: str) -> str:
    near = suggest(command, COMMANDS)
    hint = f"Did you mean `brimline {near}`?" if near else "`brimline help` lists the commands."
    return f"brimline: unknown command '{strip_control(command)}'\nhint: {hint}"


def _context(options: argparse.Namespace, folder: Path) -> CommandContext:
    places = Places.here()
    arguments = {"since": getattr(options, "since", None), "colour": options.colour}
    if database := getattr(options, "database", None):
        arguments["daemon"] = {"database": database}
    # The daemon is the user's, wherever it is started: a project's settings do not apply to it. Nor
    # do they to a fleet: a project's `uplink.url` would get the user's token.
    project = Path("/") if options.command in ("serve", "token", "fleet") else folder
    return CommandContext.for_terminal(places, load(places.env, places.home, project, arguments))


def create_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser; if words are given, only commands among them get their arguments."""
    top = argparse.ArgumentParser(
        "brimline", description=ABOUT, epilog=MORE_HELP, formatter_class=HelpFormatter
    )
    top.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    _add_colour(top, None)
    add_status_arguments(top, default=None)
    parsers = top.add_subparsers(dest="command", metavar="COMMAND", prog="brimline")
    # All commands are needed for the help, and for the error about a wrong name.
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        summary = COMMANDS[name]
        description = f"{summary[0].upper()}{summary[1:]}."
        parser = parsers.add_parser(
            name, help=summary, description=description, formatter_class=HelpFormatter
        )
        _add_colour(parser, argparse.SUPPRESS)
        if words is None or name in words:
            _import_command(name).add_arguments(parser)
    return top


def parsers_of(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of every command by its name."""
    (commands,) = (one for one in actions_of(top) if one.dest == "command")
    return cast("dict[str, argparse.ArgumentParser]", commands.choices)


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments of a parser; argparse has no public way to list them."""
    return parser._actions  # pyright: ignore[reportPrivateUsage]


def _import_command(name: str) -> Any:
    return import_module(f"brimline.cli.{name}")


class HelpFormatter(argparse.HelpFormatter):
    """Fits the help to the terminal, also the usage that a command has written out."""

    def __init__(self, prog: str) -> None:
        # Without a width, argparse imports shutil for every argument, which takes 3 ms.
        self._columns = terminal_width(os.environ, 80) - 2
        super().__init__(prog, width=self._columns)

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        from textwrap import fill  # only the help needs it: it takes 1 ms

        lines = "\n".join(
            fill(
                line.strip(),
                self._columns,
                initial_indent=USAGE_INDENT,
                subsequent_indent=USAGE_INDENT + "  ",
                break_on_hyphens=False,
            )
            for line in (usage or "").splitlines()
        )
        super().add_usage(lines.lstrip() or None, actions, groups, prefix)


def _add_colour(to: argparse.ArgumentParser, default: str | None) -> None:
    to.add_argument(
        "--colour",
        "--color",
        dest="colour",
        choices=("auto", "always", "never"),
        metavar="WHEN",
        default=default,
        help="use colours: auto (on a terminal, unless NO_COLOR is set), always or never",
    )
