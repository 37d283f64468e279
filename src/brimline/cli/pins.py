"""`brimline pins`: what the user pinned, and what agents propose."""

import argparse

import msgspec

from brimline.agents import display_name
from brimline.cli.arguments import add_json
from brimline.cli.context import CommandContext, emit_json, print_table
from brimline.cli.pin import PinShown, describe_scope
from brimline.handoff.pins import Pin, PinFile
from brimline.terminal.text import Cell, Column, format_age, strip_control

COLUMNS = (
    Column("", right=True),
    Column("id"),
    Column("by", min_width=8, drop_order=2),
    Column("for", min_width=8, keep_end=True, drop_order=1),
    Column("age", right=True, drop_order=3),
    Column("pin", min_width=12),
)


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_json(to, "a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Print every pin and proposal, the oldest first."""
    pins = PinFile(context.state).load()
    if options.json:
        emit_json(
            [PinShown(**msgspec.structs.asdict(pin), is_proposal=pin.by == "agent") for pin in pins]
        )
        return 0
    if not pins:
        print('nothing is pinned: brimline pin "TEXT"')
        return 0
    rows = [
        [
            Cell(str(number)),
            Cell(pin.id),
            Cell(_describe_author(pin), "medium" if pin.by == "agent" else "none"),
            Cell(describe_scope(context, pin)),
            Cell(format_age(context.now - pin.at)),
            Cell(strip_control(pin.text)),
        ]
        for number, pin in enumerate(pins, 1)
    ]
    print_table(context, COLUMNS, rows)
    if any(pin.by == "agent" for pin in pins):
        print("\nA proposal has no effect until you accept it: brimline pin --accept ID")
    return 0


def _describe_author(pin: Pin) -> str:
    if pin.by == "user":
        return "you"
    return f"proposed by {display_name(pin.agent)}" if pin.agent else "proposed"
