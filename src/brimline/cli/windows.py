"""`brimline windows`: which windows and limits we believe, and why."""

import argparse
from collections.abc import Sequence

import msgspec

from brimline.agents import all_agents, display_name, source
from brimline.cli.arguments import add_agent, add_json, chosen_agents
from brimline.cli.context import Context, emit_json
from brimline.terminal.text import Cell, Column, format_table, strip_control
from brimline.windows import (
    ClientLimit,
    ClientWindow,
    Limit,
    Model,
    ResolveContext,
    Window,
    catalogue,
    clients,
    find_model,
    limit_of,
    normalize_model,
    window_of,
)


class Belief(msgspec.Struct, frozen=True):
    """The window and limit of a model in an agent."""

    agent: str | None
    model: str
    window: Window | None
    limit: Limit | None


class Beliefs(msgspec.Struct, frozen=True):
    """What `windows MODEL --json` prints: per agent, and the catalogue's own row."""

    model: str
    catalogue: Model | None
    agents: list[Belief]


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a model id, as the agent writes it; may begin with its provider",
    )
    add_agent(to)
    add_json(to)


def run(context: Context, options: argparse.Namespace) -> int:
    """Show the window and limit of a model, or the whole table of clients."""
    agents = chosen_agents(options)
    if options.model is None:
        _clients(context, agents, options.json)
    else:
        able = agents if options.agent else agents_for(options.model)
        _model(context, options.model, able, options.json)
    return 0


def agents_for(model: str) -> list[str]:
    """The agents that can run a model: its maker's own, and those that take any provider's.

    Any agent may run a model of another maker, through a gateway.
    """
    name = normalize_model(model)
    families = {agent.name: agent.capabilities.model_families for agent in all_agents()}
    makers = [agent for agent, prefixes in families.items() if name.startswith(prefixes)]
    return [agent for agent in families if not makers or agent in makers or not families[agent]]


def _model(context: Context, model: str, agents: Sequence[str], as_json: bool) -> None:
    believed = [resolve_model(context, agent, model) for agent in agents]
    row = find_model(model)
    if as_json:
        emit_json(Beliefs(model, row, believed))
        return
    for one in believed:
        print(f"{display_name(one.agent or '')}, {strip_control(model)}")
        unknown = "unknown: not in the client table or the catalogue"
        print(f"  window {describe_bound(one.window, unknown)}")
        print(f"  limit  {describe_bound(one.limit)}")
    print(f"catalogue ({catalogue().made_from}): {_row(row)}")


def resolve_model(context: Context, agent: str, model: str) -> Belief:
    overrides, settings = context.settings.overrides, source(agent).settings(context.places)
    provider = model.rpartition("/")[0] or None
    known = ResolveContext(agent=agent, model=model, settings=settings, provider=provider)
    window = window_of(known, overrides)
    return Belief(agent, model, window, limit_of(known, window, overrides))


def describe_bound(value: Window | Limit | None, unknown: str = "unknown") -> str:
    if value is None:
        return unknown
    why = value.explanation if isinstance(value, Limit) else value.why
    return f"{value.tokens:,} ({value.origin}): {why}"


def _row(row: Model | None) -> str:
    if row is None:
        return "not listed"
    parts = {"window": row.window, "input cap": row.input_cap, "longest reply": row.max_output}
    return ", ".join(f"{name} {size:,}" for name, size in parts.items() if size) or "no window"


def _clients(context: Context, agents: Sequence[str], as_json: bool) -> None:
    known = clients()
    windows = [row for row in known.windows if row.agent in agents]
    limits = [row for row in known.limits if row.agent in agents]
    if as_json:
        emit_json({"windows": windows, "limits": limits, "catalogue": catalogue().made_from})
        return
    columns = [
        Column("agent"),
        Column("model", min_width=8),
        Column("versions", drop_order=3),
        Column("tokens", right=True),
        Column("seen in", drop_order=2),
        Column("how", min_width=12, drop_order=1),
    ]
    if windows:
        print("Windows by client:")
        cells = [_cells(row, f"{row.window:,}") for row in windows]
        print("\n".join(format_table(columns, cells, context.width, False)) + "\n")
    print("Limits by client:")
    cells = [_cells(row, _limit_formula(row)) for row in limits]
    print("\n".join(format_table(columns, cells, context.width, False)))
    models = len(catalogue().exact)
    print(f"\nOther models: {models} ids in the catalogue, generated from {catalogue().made_from}.")


def _limit_formula(row: ClientLimit) -> str:
    parts = [f"{row.fraction / row.granted:.0%}" if row.fraction != 1 else "window"]
    parts += [f"- {row.margin:,}"] if row.margin else []
    parts += [f"- reply (up to {row.output_cap:,})"] if row.output_cap else []
    return " ".join(parts) if row.enforced else "not enforced"


def _cells(row: ClientWindow | ClientLimit, tokens: str) -> list[Cell]:
    bounds = [f"from {row.since}" if row.since else "", f"before {row.until}" if row.until else ""]
    versions = " ".join(bound for bound in bounds if bound) or "all"
    model = f"{row.provider}/{row.model}" if row.provider else row.model
    texts = (row.agent, model, versions, tokens, f"{row.seen}, {row.date}", row.how)
    return [Cell(text) for text in texts]
