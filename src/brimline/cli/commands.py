"""The commands; each is a module with `add_arguments` and `run`, imported when it is named."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from brimline._version import __version__
from brimline.agents.transcripts.source import Places
from brimline.cli.arguments import add_rows, add_status_arguments
from brimline.cli.context import CommandContext, prepare_output, print_problems, terminal_width
from brimline.errors import BrimlineError, suggest
from brimline.settings import agent_packages, load
from brimline.terminal.text import strip_control

NO_WORKING_FOLDER = "brimline: the working directory no longer exists\nhint: cd to another one"
MISSING = (
    "brimline: this command needs the package {name}, which brimline-core does not include: "
    "run `pip install 'brimline-core[daemon]'`"
)
ABOUT = "Shows how full the context windows of AI coding agents are."
MORE_HELP = "`brimline help COMMAND` describes a command."
USAGE_INDENT = " " * len("usage: ")

# The commands as the help lists them, each with its summary and the arguments of two examples.
GROUPS = {
    "Look": {
        "status": (
            "list active sessions, those that need something first",
            "--all",
            "--agent codex",
        ),
        "here": (
            "show how full the context of the session is that it runs in",
            "",
            "--format '{percent} of {limit}'",
        ),
        "next": ("show what stops a session first, and what to do now", "", "--exit-code"),
        "watch": ("watch all sessions live in the terminal", "", "--once"),
        "inspect": ("show one transcript or stream, call by call", "", "session.jsonl --series"),
        "explain": ("show what fills a session's context, and what is wasted", "", "session.jsonl"),
        "report": (
            "sum up calls, tokens, peaks, compactions and cost",
            "--by model --since 7d",
            "--csv > report.csv",
        ),
        "recall": (
            "find what a session wrote, ran and read, also before a compaction",
            'port 5432 "connection refused"',
            "test_login --before-compaction",
        ),
        "windows": ("show the window and limit of each model, and why", "", "claude-opus-5"),
        "tools": (
            "show what a project's MCP servers, skills and agents cost, and which are not used",
            "",
            "shop --json",
        ),
        "baseline": ("show the tokens that a fresh session starts with", "", "--agent codex"),
        "open": ("open the dashboard in a browser", "", "--print"),
        "demo": ("replay a recorded session", "", "--speed 4"),
    },
    "Act": {
        "send": ("send a message to a session", '"Run the tests."', '"login fix" "Stop." --urgent'),
        "inbox": ("list pending messages, or all messages of one session", "", '"login fix"'),
        "handoff": (
            "save a handoff document; it is re-injected after compaction",
            "plan.md",
            "--draft > plan.md",
        ),
        "compact-at": (
            "move the point at which the clients themselves compact",
            "60%",
            "180k codex",
        ),
        "pin": (
            "pin a sentence: agents get it first after a compaction, and in new sessions",
            '"Never touch the README."',
            '"Use port 5433." --session "login fix"',
        ),
        "pins": ("list what is pinned, and what agents propose to pin", "", "--json"),
        "unpin": ("remove a pin by its number or id", "2", "4f1c09aa"),
        "run": (
            "run a headless agent and track its context",
            '-- claude -p "Fix it"',
            '--stop-at 80 -- codex exec "Fix it"',
        ),
    },
    "Set up": {
        "setup": (
            "install hooks and status line in the agents' settings",
            "--dry-run",
            "claude codex",
        ),
        "doctor": ("check hooks, daemon and store, and suggest fixes", "", "--json"),
        "serve": (
            "run the daemon that monitors sessions and serves the API",
            "--background",
            "--status",
        ),
        "mcp": ("serve an agent the tools `context` and `handoff`, over stdio", "", "--list"),
        "completion": ("print the completion script of a shell", "zsh > _brimline", "bash"),
    },
    "Fleet": {
        "fleet": (
            "show a fleet's figures and audit log, or settings that point clients at it",
            "status --by team",
            "snippet claude",
        ),
        "token": (
            "create, list and revoke the tokens of a fleet's server",
            "create --name ci --scope read",
            "list",
        ),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}


def run(arguments: list[str]) -> int:
    prepare_output(os.environ)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        print(_describe_unknown(arguments[0]), file=sys.stderr)
        return 2
    if packages := agent_packages(os.environ, Path.home()):
        return _run_with_packages(arguments, packages)
    return _run_command(arguments)


def _run_with_packages(arguments: list[str], packages: Sequence[str]) -> int:
    """Run a command that knows the agents of other packages, and print what fails in these."""
    from brimline.agents.packages import add_packages, package_problems

    add_packages(packages, Places.here())
    at_start = package_problems()
    is_silent = arguments[:1] in (["doctor"], ["completion"])  # doctor lists them itself
    if not is_silent:
        print_problems(at_start)
    code = _run_command(arguments)
    if not is_silent:
        print_problems(each for each in package_problems() if each not in at_start)
    return code


def _run_command(arguments: list[str]) -> int:
    try:
        parser = create_parser(arguments)
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            _refuse(unknown, parsers_of(parser).get(options.command, parser))
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


def _refuse(arguments: list[str], parser: argparse.ArgumentParser) -> NoReturn:
    """End with the usage of the command that does not know these arguments."""
    options = [name for action in actions_of(parser) for name in action.option_strings]
    nears = (suggest(each.partition("=")[0], options) for each in arguments)
    near = next(filter(None, nears), None)
    hint = f"\nhint: Did you mean {near}?" if near else ""
    parser.error(f"unrecognized arguments: {strip_control(' '.join(arguments))}{hint}")


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
    add_rows(top, default=None)
    parsers = top.add_subparsers(dest="command", metavar="COMMAND", prog="brimline")
    # All commands are needed for the help, and for the error about a wrong name.
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        summary = COMMANDS[name][0]
        parser = parsers.add_parser(
            name,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog="\n  ".join(["Examples:", *examples_of(name)]),
            formatter_class=HelpFormatter,
        )
        _add_colour(parser, argparse.SUPPRESS)
        if words is None or name in words:
            _import_command(name).add_arguments(parser)
    return top


def examples_of(command: str) -> list[str]:
    _, *examples = COMMANDS[command]
    return [f"brimline {command} {arguments}".rstrip() for arguments in examples]


def parsers_of(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of every command by its name."""
    (commands,) = (one for one in actions_of(top) if one.dest == "command")
    return cast("dict[str, argparse.ArgumentParser]", commands.choices)


def actions_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments of a parser; argparse has no public way to list them."""
    return parser._actions  # pyright: ignore[reportPrivateUsage]


def _import_command(name: str) -> Any:
    return import_module(f"brimline.cli.{name.replace('-', '_')}")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fits the help to the terminal, also texts of several lines, and lists commands by group."""

    def __init__(self, prog: str) -> None:
        # Without a width, argparse imports shutil for every argument, which takes 3 ms.
        self._columns = terminal_width(os.environ, 80) - 2
        super().__init__(prog, width=self._columns)

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading and heading.capitalize())

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        for action in actions:
            if action.dest == "command":
                self._add_groups()
            else:
                self.add_argument(action)

    def _add_groups(self) -> None:
        self.end_section()  # argparse prints no heading of an empty one
        for group, commands in GROUPS.items():
            self.start_section(group)
            for name, (summary, *_) in commands.items():
                self.add_argument(argparse.Action([], name, metavar=name, help=summary))
            self.end_section()
        self.start_section(None)

    def add_text(self, text: str | None) -> None:
        super().add_text(text and "\n".join(map(self._fit, text.splitlines())))

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        lines = [self._fit(USAGE_INDENT + line.strip()) for line in (usage or "").splitlines()]
        super().add_usage("\n".join(lines).lstrip() or None, actions, groups, prefix)

    def _fit(self, line: str) -> str:
        """Break a line; what follows an indented one is indented further."""
        from textwrap import fill  # only the help needs it: it takes 1 ms

        spaces = len(line) - len(line.lstrip())
        indent = " " * (spaces + 2) if spaces else ""
        return fill(line, self._columns, subsequent_indent=indent, break_on_hyphens=False)


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
