"""`brimline windows`: which windows and limits we believe, and why."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from brimline.agents import agent_names, agents_present, all_agents, display_name, source
from brimline.cli.arguments import add_agent, add_json, chosen_agents
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.daemon_requests import request
from brimline.context.window import (
    ClientLimit,
    ClientSettings,
    ClientWindow,
    Limit,
    LimitDrift,
    Model,
    ResolveContext,
    Window,
    catalogue,
    clients,
    find_drifts,
    find_model,
    is_same_model,
    limit_of,
    model_aliases,
    normalize_model,
    shipped_registry,
    window_of,
)
from brimline.errors import BrimlineError, suggest
from brimline.sessions.status import survey_sessions
from brimline.settings import seconds
from brimline.terminal.text import Cell, Column, format_table, strip_control

SHORTENED = "claude-"  # `status` leaves this out
MAX_PROVIDERS = 4  # of those that serve a model alike, in text
NONE = ("\0",)  # begins no id

LIMITS_PATH = "/v1/limits"


class Belief(msgspec.Struct, frozen=True):
    """The window and limit of a model in an agent, as one of its providers serves it."""

    agent: str | None
    model: str
    window: Window | None
    limit: Limit | None
    provider: str | None = None


class Beliefs(msgspec.Struct, frozen=True):
    """What `windows MODEL --json` prints: by agent and provider, and the catalogue's own row.

    `drifts` are the clients that compact it elsewhere than expected.
    """

    model: str
    catalogue: Model | None
    agents: list[Belief]
    drifts: list[LimitDrift]


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a model id, as the agent or `status` writes it; may begin with its provider",
    )
    add_agent(to)
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Show the window and limit of a model, or the whole table of clients."""
    agents = chosen_agents(options)
    if options.model is None:
        _clients(context, agents, options.json)
        return 0
    model = full_id(options.model)
    able = agents if options.agent else agents_for(model)
    beliefs = [belief for agent in able for belief in resolve_model(context, agent, model)]
    drifts = _find_drifts(context, able, model)
    if options.json:
        emit_json(Beliefs(model, find_model(model), beliefs, drifts))
    else:
        _print_beliefs(model, beliefs)
        _print_drifts(drifts)
    if not _is_listed(model) and (near := suggest(model.lower(), _listed_names())):
        print(f"hint: {strip_control(model)} is not known. Did you mean {near}?", file=sys.stderr)
    return 0


def full_id(name: str) -> str:
    """The id of a model whose name may be shortened as in `status`."""
    is_short = not _is_listed(name) and _is_listed(f"{SHORTENED}{name}")
    return f"{SHORTENED}{name}" if is_short else name


def agents_for(model: str) -> list[str]:
    """The agents that can run a model.

    These are its maker's own, those whose registry lists it, and for a model of another maker those
    that take any through a gateway.
    """
    every = [(agent.name, agent.capabilities) for agent in all_agents()]
    name = normalize_model(model)
    makers = {agent for agent, can in every if name.startswith(can.model_families or NONE)}
    able = makers or {agent for agent, can in every if can.runs_other_models}
    listing = {agent for agent, _ in every if _lists(agent, model)}
    if not makers and not listing:  # a local model: wherever the user can configure one
        listing = {agent for agent, can in every if not can.model_families}
    return [agent for agent, _ in every if agent in able | listing]


def resolve_model(context: CommandContext, agent: str, model: str) -> list[Belief]:
    """Return what an agent believes of a model, for each of its providers that has it."""
    settings = source(agent).settings(context.places)
    overrides = context.settings.overrides
    beliefs: list[Belief] = []
    for provider, id in find_servings(agent, settings, model):
        known = ResolveContext(agent=agent, model=id, settings=settings, provider=provider)
        window = window_of(known, overrides)
        beliefs.append(Belief(agent, id, window, limit_of(known, window, overrides), provider))
    return beliefs


def find_servings(agent: str, settings: ClientSettings, model: str) -> list[tuple[str | None, str]]:
    """The providers of an agent that have a model, its maker first, and the ids they give it."""
    registries = [each for each in (settings.registry, shipped_registry(agent)) if each]
    listed = {(provider, id) for each in registries for provider, id in each.ids() if provider}
    listed |= {
        (provider, id) for provider, _, id in (key.partition("/") for key in settings.windows)
    }
    provider, _, id = model.partition("/")
    if id and any(provider == each for each, _ in listed):
        return [(provider, id)]
    row = find_model(model)
    maker = row.provider if row else None
    serving = [each for each in listed if is_same_model(each[1], model)]
    return [*sorted(serving, key=lambda each: (each[0] != maker, each))] or [(None, model)]


def _lists(agent: str, model: str) -> bool:
    """Whether the registry of an agent has a model, of the provider that its id begins with."""
    registry = shipped_registry(agent)
    if registry is None:
        return False
    provider, _, id = model.partition("/")
    if id and provider in registry.models:
        return registry.find(provider, id) is not None
    return any(is_same_model(id, model) for _, id in registry.ids())


def _is_listed(model: str) -> bool:
    return find_model(model) is not None or any(_lists(agent, model) for agent in agent_names())


def _listed_names() -> list[str]:
    registries = (shipped_registry(agent) for agent in agent_names())
    ids = (model_aliases(id)[-1] for each in registries if each for _, id in each.ids())
    names = dict.fromkeys((*catalogue().exact, *ids))
    short = (name.removeprefix(SHORTENED) for name in names if name.startswith(SHORTENED))
    return [*names, *short]


def _print_beliefs(model: str, beliefs: Sequence[Belief]) -> None:
    """Print what each agent believes; of several providers the first in full."""
    groups: dict[tuple[str | None, Window | None, Limit | None], list[str]] = {}
    for each in beliefs:
        groups.setdefault((each.agent, each.window, each.limit), []).append(each.provider or "")
    printed: set[str | None] = set()
    for (agent, window, limit), providers in groups.items():
        if agent in printed:
            sizes = f"window {_count(window)}, limit {_count(limit)}"
            print(f"  {sizes}: provider {_list_some(providers)}")
            continue
        printed.add(agent)
        print(f"{display_name(agent or '')}, {strip_control(model)}")
        if any(providers):
            print(f"  provider {_list_some(providers)}")
        unknown = "unknown: not in the client table or the catalogue"
        print(f"  window {describe_bound(window, unknown)}")
        print(f"  limit  {describe_bound(limit)}")
    row = find_model(model)
    print(f"catalogue ({(row and row.origin) or catalogue().made_from}): {_row(row)}")


def _find_drifts(
    context: CommandContext, agents: Sequence[str], model: str | None = None
) -> list[LimitDrift]:
    drifts = find_limit_drifts(context)
    return [each for each in drifts if each.agent in agents and is_same_model(each.model, model)]


def _print_drifts(drifts: Sequence[LimitDrift]) -> None:
    for each in drifts:
        model = strip_control(each.model or "unknown model")
        print(f"WARNING: {display_name(each.agent)}, {model}: {each.text}")


def _count(value: Window | Limit | None) -> str:
    return "unknown" if value is None else f"{value.tokens:,}"


def _list_some(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - MAX_PROVIDERS} more" if len(unique) > MAX_PROVIDERS else ""
    return strip_control(", ".join(unique[:MAX_PROVIDERS])) + more


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


def _clients(context: CommandContext, agents: Sequence[str], as_json: bool) -> None:
    known = clients()
    windows = [row for row in known.windows if row.agent in agents]
    limits = [row for row in known.limits if row.agent in agents]
    drifts = _find_drifts(context, agents)
    if as_json:
        made_from = catalogue().made_from
        tables = {"windows": windows, "limits": limits, "catalogue": made_from, "drifts": drifts}
        emit_json(tables)
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
    _print_drifts(drifts)


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


class _ObservedLimit(msgspec.Struct, frozen=True):
    agent: str
    model: str | None
    version: str | None
    drift: str | None


def find_limit_drifts(context: CommandContext) -> list[LimitDrift]:
    try:
        limits = msgspec.convert(request(context, "GET", LIMITS_PATH), list[_ObservedLimit])
    except (BrimlineError, msgspec.ValidationError):  # no daemon, or one of another version
        since = context.now - seconds(context.settings.since)
        agents, overrides = agents_present(context.places), context.settings.overrides
        survey = survey_sessions(context.places, agents, since, overrides, context.cache)
        return find_drifts(each for session in survey.sessions for each in session.compactions)
    return [
        LimitDrift(each.agent, each.model, each.version or "", each.drift)
        for each in limits
        if each.drift
    ]
