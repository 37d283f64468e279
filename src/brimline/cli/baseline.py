"""`brimline baseline`: what a fresh session of an agent holds before the first prompt."""

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager

from brimline.agents import display_name
from brimline.agents.fresh_session import Baseline, Category, baseline
from brimline.cli.arguments import add_flag, add_json, parse_agent
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.windows import describe_bound
from brimline.context.usage import percent
from brimline.terminal.text import Cell, Column, colourize, format_age, format_table, strip_control

COLUMNS = (
    Column("category", min_width=12),
    Column("tokens", right=True),
    Column("of window", right=True),
)


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = "the agent to ask (default: claude)"
    to.add_argument("--agent", type=parse_agent, metavar="A", default="claude", help=help_text)
    to.add_argument("--model", metavar="M", help="the model id, as the agent writes it")
    add_flag(to, "--fresh", "ask the client again, and ignore the cache")
    add_json(to, "a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    with _waiting(display_name(options.agent)):
        measured = baseline(
            options.agent,
            model=options.model,
            fresh=options.fresh,
            settings=context.settings,
            places=context.places,
        )
    if options.json:
        emit_json(measured)
    else:
        print("\n".join(_text(context, measured)))
    return 0


@contextmanager
def _waiting(name: str) -> Generator[None]:
    """Show on a terminal that the client is being asked."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"asking {name} ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _text(context: CommandContext, measured: Baseline) -> list[str]:
    facts = [
        display_name(measured.agent),
        measured.version,
        strip_control(measured.model or "unknown model"),
    ]
    return [
        colourize("  ".join(facts), "bold", context.colour),
        *format_table(COLUMNS, _rows(measured), context.width, context.colour),
        f"window {describe_bound(measured.window)}",
        f"limit  {describe_bound(measured.limit)}",
        _origin(context, measured),
        *_caveats(measured),
    ]


def _rows(measured: Baseline) -> list[list[Cell]]:
    loaded = [one for one in measured.categories if not one.deferred]
    deferred = [one for one in measured.categories if one.deferred]
    size = measured.window.tokens if measured.window else None
    return [
        *(_row(one, _percent(percent(one.tokens, size))) for one in loaded),
        [
            Cell("a fresh session", "bold"),
            Cell(f"{measured.tokens:,}", "bold"),
            Cell(_percent(measured.percent), "bold"),
        ],
        *(_row(one, "not loaded") for one in deferred),
    ]


def _row(one: Category, share: str) -> list[Cell]:
    how = "dim" if one.deferred else "none"
    return [Cell(strip_control(one.name), how), Cell(f"{one.tokens:,}", how), Cell(share, how)]


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value}%"


def _origin(context: CommandContext, measured: Baseline) -> str:
    asked = f"source {measured.source}, "
    if not measured.cached:
        return asked + "asked just now"
    return asked + f"cached {format_age(context.now - measured.at)} ago; --fresh asks again"


def _caveats(measured: Baseline) -> list[str]:
    doubts: list[str] = []
    if measured.estimated:
        doubts.append("estimated by the client: its API did not count the tokens")
    if measured.without:
        late = strip_control(", ".join(measured.without))
        doubts.append(f"without MCP servers that did not connect in time: {late}")
    return doubts
