"""`brimline pin`: a sentence that agents get first after a compaction and in new sessions."""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from brimline.cli.arguments import add_json, check_session, check_utf8
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.session_choice import (
    CurrentSession,
    choose_session,
    find_current_session,
    find_enclosing_session,
    list_files,
)
from brimline.errors import InvalidRequest
from brimline.files.project_folder import find_project_root
from brimline.handoff.pins import Pin, PinFile, make_pin
from brimline.terminal.text import shorten_home, strip_control

USAGE = """brimline pin TEXT [--session S | --project [DIR]]
       brimline pin --accept ID"""

NOT_A_PERSON = "only the user accepts a proposal: not an agent, nor a program without a terminal"
ACCEPT_HINT = "Run the same command in a terminal of your own."


class PinShown(Pin, frozen=True, kw_only=True):
    """What `pin --json` prints; `is_proposal`: it has no effect until the user accepts it."""

    is_proposal: bool


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    to.set_defaults(wrong=to.error)
    to.add_argument("text", type=check_utf8, nargs="?", metavar="TEXT", help="the sentence")
    which = to.add_mutually_exclusive_group()
    help_text = "a session's id or title (default in an agent: its own session)"
    which.add_argument("--session", type=check_session, metavar="S", help=help_text)
    which.add_argument(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="all sessions in this repository or folder (default outside of agents)",
    )
    help_text = "make an agent's proposal your own"
    which.add_argument("--accept", type=check_utf8, metavar="ID", help=help_text)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Pin a text, propose it if an agent runs this, or accept a proposal."""
    if (options.text is None) == (options.accept is None):
        options.wrong("expected a TEXT, or --accept ID")
    pins = PinFile(context.state)
    if options.accept is not None:
        if not is_run_by_person(context):
            raise InvalidRequest(NOT_A_PERSON, ACCEPT_HINT)
        pin = pins.accept(options.accept, context.now)
    else:
        pin = pins.add(_make_pin(context, options))
    if options.json:
        emit_json(PinShown(**msgspec.structs.asdict(pin), is_proposal=pin.by == "agent"))
    else:
        print("\n".join(_describe(context, pin)))
    return 0


def is_run_by_person(context: CommandContext) -> bool:
    """Whether a terminal is the input, and neither this process nor one above it is an agent's."""
    return sys.stdin.isatty() and find_enclosing_session(context.places.env) is None


def _make_pin(context: CommandContext, options: argparse.Namespace) -> Pin:
    here = find_current_session(context.places.env)
    session, project = _scope(context, options, here)
    agent = here.agent if here else None
    by = "user" if is_run_by_person(context) else "agent"
    return make_pin(options.text, context.now, by, session=session, project=project, agent=agent)


def _scope(
    context: CommandContext, options: argparse.Namespace, here: CurrentSession | None
) -> tuple[str | None, str | None]:
    """Return the session, or the folder of the project, that a pin is for."""
    if options.session is not None:
        sessions = list_files(context)
        return choose_session(context, options.session, sessions, ()).id, None
    if options.project is None and here is not None and here.session is not None:
        return here.session, None
    folder = Path(options.project or ".").expanduser()
    if not folder.is_dir():
        raise InvalidRequest(f"no such folder: {folder}", "Pass the folder of a project.")
    return None, str(find_project_root(Path(os.path.realpath(folder))))


def _describe(context: CommandContext, pin: Pin) -> list[str]:
    where = describe_scope(context, pin)
    if pin.by == "user":
        return [
            f"Pinned for {where}, as {pin.id}. Agents get it first after a compaction,",
            "a clear, and in new sessions.",
        ]
    return [
        f"Proposed for {where}, as {pin.id}. It has no effect until the user accepts it",
        f"in a terminal: brimline pin --accept {pin.id}",
    ]


def describe_scope(context: CommandContext, pin: Pin) -> str:
    """Return what a pin is for, in words."""
    if pin.project is not None:
        return f"project {strip_control(shorten_home(pin.project, context.places.home))}"
    return f"session {strip_control((pin.session or '')[:8])}"
