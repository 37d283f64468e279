"""`brimline run`: a headless agent under our eyes."""

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.agents import agent_names, get_agent
from brimline.cli.arguments import add_flag, parse_agent
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.run_output import RunOutput, make_output, print_json
from brimline.cli.run_windows import make_chain, window_table
from brimline.context.policy.levels import check_levels
from brimline.context.usage import format_tokens, percent_raw, whole_percent
from brimline.context.window import Overrides
from brimline.errors import CommandFailed, InvalidPolicy, InvalidSettings
from brimline.monitor.user_rules import Rules
from brimline.run import ralph
from brimline.run.agent_command import detect_agent
from brimline.run.iteration import RunPlan, iterate
from brimline.run.ralph import HatStats, LoopStats, loop_stats
from brimline.run.result import summary_line
from brimline.run.rotation import RotationRule
from brimline.run.run_state import RunTarget
from brimline.run.window_chain import WindowChain
from brimline.run.window_result import RotatedResult
from brimline.terminal.text import Cell, Column, format_table, strip_control

USAGE = """brimline run [OPTIONS] -- COMMAND [ARGUMENT ...]
       brimline run --summary FILE [--json]"""

# Exit codes of a shell for a command that is missing, or that cannot be run.
NOT_FOUND, NOT_STARTED = 127, 126

PASSED_THROUGH = "its output was passed through (--agent names the agent)"

LOOP_COLUMNS = (
    Column("hat", min_width=6),
    Column("iterations", right=True, drop_order=1),
    Column("last", right=True),
    Column("peak", right=True),
)
OVERALL, NO_HAT = "all", "-"


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = (
        "pretty: readable text; plain: the child's output unchanged; json: only the result; "
        "none: nothing (default: pretty on a terminal, else plain)"
    )
    to.add_argument("--render", choices=("pretty", "plain", "json", "none"), help=help_text)
    help_text = f"the agent that COMMAND runs: {', '.join(agent_names())}"
    to.add_argument("--agent", type=parse_agent, metavar="A", help=help_text)
    help_text = "run the command up to N times (default 1)"
    to.add_argument("--iterations", type=int, default=1, metavar="N", help=help_text)
    help_text = "stop the loop when the agent's reply contains TEXT"
    to.add_argument("--until", metavar="TEXT", help=help_text)
    help_text = "name of the iterations; several names take turns"
    to.add_argument("--hat", action="append", metavar="NAME", help=help_text)
    to.add_argument("--events", metavar="FILE", help="append one row per iteration to FILE")
    to.add_argument("--warn", metavar="P[,P]", help="warn when the context reaches P percent")
    to.add_argument("--on-warn", metavar="CMD", help="run CMD with sh at each --warn level")
    help_text = "stop the child at P percent (SIGINT, then TERM, KILL)"
    to.add_argument("--stop-at", metavar="P", help=help_text)
    help_text = "continue in a new session, from a handoff, at P percent of the limit"
    to.add_argument("--rotate-at", type=float, metavar="P", help=help_text)
    help_text = "with --rotate-at: continue at most N times (default: no limit)"
    to.add_argument("--max-rotations", type=int, metavar="N", help=help_text)
    help_text = "when five hours of a plan are used up, wait until they are reset, and continue"
    add_flag(to, "--park", help_text)
    help_text = "with --rotate-at or --park: do not continue a run that was interrupted"
    add_flag(to, "--restart", help_text)
    help_text = "read event_loop.context_window_tokens from a Ralph YAML file"
    to.add_argument("--config", metavar="FILE", help=help_text)
    help_text = "run nothing; show last and peak usage by hat from an --events file"
    to.add_argument("--summary", metavar="FILE", help=help_text)
    add_flag(
        to, "--json", "print only the result, as JSON (--render json); with --summary: as JSON"
    )
    help_text = "the command to run"
    to.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help=help_text)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Run a command and track it, or sum up the rows of older runs."""
    if options.summary is not None:
        return _summary(context, Path(options.summary), options.json)
    if options.json and options.render not in (None, "json"):
        raise InvalidSettings("argument", "json", f"not allowed with --render {options.render}")
    render = "json" if options.json else options.render
    planned = plan(context, options)
    events = Path(options.events) if options.events else None
    if events:
        ralph.ensure_writable(events)
    on = make_output(context, render, planned)
    chain = make_chain(context, planned, on, options.restart)
    try:
        with chain.hold_record() if chain else nullcontext():
            rows = _run(planned, events, on, render, chain, context)
    except CommandFailed as error:
        on.print_line("\n".join(strip_control(line) for line in f"brimline: {error}".splitlines()))
        return NOT_FOUND if isinstance(error.__cause__, FileNotFoundError) else NOT_STARTED
    if len(rows) > 1:
        on.print_line("\n".join(_loop_table(loop_stats(rows), on.rules, context.width, on.colour)))
    return rows[-1].figures.exit_code or 0


def plan(context: CommandContext, options: argparse.Namespace) -> RunPlan:
    """Return what the arguments ask for; raises BrimlineError."""
    command = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not command:
        raise InvalidSettings("argument", "COMMAND", "expected a command to run after --")
    if options.iterations < 1:
        reason = f"expected 1 or more: got {options.iterations}"
        raise InvalidSettings("argument", "iterations", reason)
    target = RunTarget(
        command=tuple(command),
        places=context.places,
        folder=str(Path.cwd()),
        agent=get_agent(options.agent).name if options.agent else detect_agent(command),
        overrides=_overrides(context, options.config),
        until=options.until,
    )
    return RunPlan(
        target=target,
        iterations=options.iterations,
        hats=tuple(options.hat or ()),
        levels=_levels("warn", options.warn),
        stop_at=_level("stop-at", options.stop_at),
        on_level=options.on_warn,
        rotation=_rotation(options),
    )


def _rotation(options: argparse.Namespace) -> RotationRule | None:
    if options.max_rotations is not None and options.rotate_at is None:
        raise InvalidSettings("argument", "max-rotations", "not allowed without --rotate-at")
    if options.rotate_at is not None or options.park:
        return RotationRule(options.rotate_at, options.max_rotations, options.park)
    if options.restart:
        raise InvalidSettings("argument", "restart", "not allowed without --rotate-at or --park")
    return None


def _overrides(context: CommandContext, config: str | None) -> Overrides:
    """Return the user's windows and limits, with a Ralph configuration's window for all models."""
    overrides = context.settings.overrides
    window = ralph.read_window(Path(config)) if config else None
    if window is None:
        return overrides
    return msgspec.structs.replace(overrides, windows={**overrides.windows, "*": window})


def _levels(name: str, text: str | None) -> tuple[float, ...]:
    try:
        return check_levels(float(part) for part in (text or "").split(",") if part.strip())
    except ValueError as error:
        raise InvalidPolicy(name, text, "numbers above 0, separated by commas") from error


def _level(name: str, text: str | None) -> float | None:
    levels = _levels(name, text)
    if len(levels) > 1:
        raise InvalidPolicy(name, text, "one number above 0")
    return levels[0] if levels else None


def _run(
    planned: RunPlan,
    events: Path | None,
    on: RunOutput,
    render: str | None,
    chain: WindowChain | None,
    context: CommandContext,
) -> list[ralph.EventRow]:
    rows: list[ralph.EventRow] = []
    for one in iterate(planned, on, chain):
        if render == "pretty" and one.agent is None and not rows:
            name = strip_control(planned.target.command[0])
            on.print_line(f"brimline: unknown agent {name}: {PASSED_THROUGH}")
        rows.append(ralph.make_row(one))
        if isinstance(one, RotatedResult) and len(one.windows) > 1:
            on.print_line("\n".join(window_table(one.windows, context.width, on.colour)))
        on.print_line(summary_line(one))
        if events:
            _append(events, rows[-1], on)
        if render == "json":
            print_json(one)
    return rows


def _append(events: Path, row: ralph.EventRow, on: RunOutput) -> None:
    try:
        ralph.append_row(events, row)
    except OSError as error:
        on.print_line(f"brimline: cannot write {events}: {error.strerror or error}")


def _summary(context: CommandContext, path: Path, as_json: bool) -> int:
    loop = loop_stats(ralph.read_rows(path))
    if as_json:
        emit_json(loop)
    elif loop.overall.iterations:
        rules = Rules.of_settings(context.settings)
        print("\n".join(_loop_table(loop, rules, context.width, context.colour)))
    else:
        print(f"No iterations in {strip_control(str(path))}.")
    return 0


class _ContextFigures(NamedTuple):
    """What the rows of a loop have of a context; they do not have its limit."""

    held: int | None
    percent_raw: float | None
    percent_of_limit: float | None = None


def _loop_table(loop: LoopStats, rules: Rules, width: int, colour: bool) -> list[str]:
    """Return last and peak contexts: a line per hat if there are several, and one for all."""
    named = [hat for hat in loop.hats if hat.hat is not None or len(loop.hats) > 1]
    cells = [_cells(strip_control(hat.hat or NO_HAT), hat, rules) for hat in named]
    overall = _cells(OVERALL, loop.overall, rules)
    return format_table(LOOP_COLUMNS, [*cells, overall], width, colour)


def _cells(name: str, hat: HatStats, rules: Rules) -> list[Cell]:
    return [
        Cell(name),
        Cell(str(hat.iterations)),
        _cell(hat.last_context_tokens, hat.last_context_window, rules),
        _cell(hat.peak_context_tokens, hat.peak_context_window, rules),
    ]


def _cell(tokens: int | None, window: int | None, rules: Rules) -> Cell:
    figures = _ContextFigures(tokens, percent_raw(tokens, window))
    return Cell(_context(tokens, window), rules.fullness_of(figures, "", "", None) or "dim")


def _context(tokens: int | None, window: int | None) -> str:
    if tokens is None:
        return "unknown"
    if window is None:
        return format_tokens(tokens)
    return f"{whole_percent(tokens, window)}% ({format_tokens(tokens)}/{format_tokens(window)})"
