"""Rotations in the output: chains of sessions, what they avoided, and what they cost."""

from collections.abc import Sequence

from brimline.cli.context import CommandContext
from brimline.context.usage import format_tokens
from brimline.sessions.rotation_report import ChainFigures
from brimline.terminal.text import (
    Cell,
    Column,
    count_of,
    format_dollars,
    format_table,
    shorten_home,
    strip_control,
)

CSV_FIELDS = (
    *("first_day", "agent", "title", "project", "first_session", "rotations", "compactions"),
    *("read_again_tokens", "cache_write_tokens", "cost_usd"),
)
COLUMNS = (
    Column("day", drop_order=3),
    Column("title", min_width=10),
    Column("agent", drop_order=4),
    Column("project", min_width=10, keep_end=True, drop_order=5),
    Column("rotations", right=True),
    Column("compactions", right=True, drop_order=1),
    Column("read again", right=True),
    Column("cache writes", right=True, drop_order=2),
    Column("cost of it", right=True),
)
NOTHING_FOUND = "No rotations found. `brimline run --rotate-at` and `[handoff] rotate_at` do them."


def csv_record(chain: ChainFigures) -> dict[str, object]:
    fields = {name: getattr(chain, name) for name in chain.__struct_fields__}
    return {**fields, "first_session": chain.sessions[0]}


def format_rotations(context: CommandContext, chains: Sequence[ChainFigures]) -> list[str]:
    """Return a line for each chain, and what all of them avoided."""
    if not chains:
        return [NOTHING_FOUND]
    rows = [_cells(context, chain) for chain in chains]
    rotations = sum(chain.rotations for chain in chains)
    compactions = sum(chain.compactions for chain in chains)
    summary = (
        f"{count_of(rotations, 'rotation')}: as many compactions avoided, "
        f"{compactions or 'none'} done by clients all the same"
    )
    return [*format_table(COLUMNS, rows, context.width, context.colour), summary]


def _cells(context: CommandContext, chain: ChainFigures) -> list[Cell]:
    project = shorten_home(chain.project, context.places.home) if chain.project else ""
    return [
        Cell(chain.first_day),
        Cell(strip_control(chain.title or chain.sessions[0])),
        Cell(strip_control(chain.agent)),
        Cell(strip_control(project)),
        Cell(f"{chain.rotations:,}"),
        Cell(f"{chain.compactions:,}"),
        Cell(_tokens(chain.read_again_tokens)),
        Cell(_tokens(chain.cache_write_tokens)),
        Cell(format_dollars(chain.cost_usd)),
    ]


def _tokens(tokens: int | None) -> str:
    return "unknown" if tokens is None else format_tokens(tokens)
