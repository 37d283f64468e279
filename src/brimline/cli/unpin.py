"""`brimline unpin`: remove a pin, or a proposal."""

import argparse

from brimline.cli.arguments import check_utf8
from brimline.cli.context import CommandContext
from brimline.cli.pin import is_run_by_person
from brimline.handoff.pins import PinFile
from brimline.terminal.text import strip_control


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "its number in `brimline pins`, or the beginning of its id"
    to.add_argument("name", type=check_utf8, metavar="N|ID", help=help_text)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Remove a pin; an agent may remove proposals only."""
    is_person = is_run_by_person(context)
    removed = PinFile(context.state).remove(
        options.name, lambda pin: is_person or pin.by == "agent"
    )
    print(f"Removed pin {removed.id}: {strip_control(removed.text)}")
    return 0
