"""`brimline baseline`: what a fresh session of an agent holds before anybody has said anything."""

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager

from brimline.agents import display_name
from brimline.baselines import Baseline, Category, baseline
from brimline.cli.arguments import add_flag, add_json
from brimline.cli.context import Context, emit_json
from brimline.terminal.text import Cell, Column, colourize, format_age, format_table, strip_control
from brimline.usage import percent
from brimline.windows import Limit, Window

COLUMNS = (
    Column("category", min_width=12),
    Column("tokens", right=True),
    Column("of window", right=True),
)


def add_arguments(to: argparse.ArgumentParser) -> None:
    about = "the agent to ask (default: claude)"
    to.add_argument("--agent", metavar="A", default="claude", help=about)
    to.add_argument("--model", metavar="M", help="the model id, as the agent writes it")
    add_flag(to, "--fresh", "ask the client again, and ignore the cache")
    add_json(to, "a table")


def run(context: Context, options: argparse.Namespace) -> int:
    with _waiting(display_name(options.agent)):
        found = baseline(
            options.agent,
            model=options.model,
            fresh=options.fresh,
            settings=context.settings,
            places=context.places,
        )
    if options.json:
        emit_json(found)
    else:
        print("\n".join(_text(context, found)))
    return 0


@contextmanager
def _waiting(name: str) -> Generator[None]:
    """Say on a terminal what is waited for, and take it back."""
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


def _text(context: Context, found: Baseline) -> list[str]:
    facts = [
        display_name(found.agent),
        found.version,
        strip_control(found.model or "unknown model"),
    ]
    return [
        colourize("  ".join(facts), "bold", context.colour),
        *format_table(COLUMNS, _rows(found), context.width, context.colour),
        *_bounds(found),
        _origin(context, found),
        *_doubts(found),
    ]


def _rows(found: Baseline) -> list[list[Cell]]:
    loaded = [one for one in found.categories if not one.deferred]
    deferred = [one for one in found.categories if one.deferred]
    size = found.window.tokens if found.window else None
    return [
        *(_row(one, _percent(percent(one.tokens, size))) for one in loaded),
        [
            Cell("a fresh session", "bold"),
            Cell(f"{found.tokens:,}", "bold"),
            Cell(_percent(found.percent), "bold"),
        ],
        *(_row(one, "not loaded") for one in deferred),
    ]


def _row(one: Category, share: str) -> list[Cell]:
    how = "dim" if one.deferred else "none"
    return [Cell(strip_control(one.name), how), Cell(f"{one.tokens:,}", how), Cell(share, how)]


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value}%"


def _bounds(found: Baseline) -> list[str]:
    return [f"window {_said(found.window)}", f"limit  {_said(found.limit)}"]


def _said(value: Window | Limit | None) -> str:
    return f"{value.tokens:,} ({value.origin}): {value.why}" if value else "unknown"


def _origin(context: Context, found: Baseline) -> str:
    asked = f"source {found.source}, "
    if not found.cached:
        return asked + "asked just now"
    return asked + f"cached {format_age(context.now - found.at)} ago; --fresh asks again"


def _doubts(found: Baseline) -> list[str]:
    doubts: list[str] = []
    if found.estimated:
        doubts.append("estimated by the client: its API did not count the tokens")
    if found.without:
        late = strip_control(", ".join(found.without))
        doubts.append(f"without MCP servers that did not connect in time: {late}")
    return doubts
