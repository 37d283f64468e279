"""`brimline compact-at`: move the point at which the clients themselves compact."""

import argparse
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from brimline.agents import agent_names, agents_present, display_name, get_agent, source
from brimline.agents.compaction_setting import (
    CompactionSetting,
    PlannedLimit,
    is_near,
    limit_without_history,
    plan_limit,
)
from brimline.cli.arguments import add_flag, add_json, parse_agent
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.windows import find_servings, full_id
from brimline.context.tracker import Session, main_thread, resolve_context
from brimline.context.usage import format_tokens
from brimline.context.window import ResolveContext, short_model, window_of
from brimline.errors import InvalidSettings
from brimline.install.client_setting import (
    SettingRecord,
    load_records,
    restore_setting,
    write_setting,
)
from brimline.install.setting_check import check_setting
from brimline.sessions.compaction_check import CompactionCheck, read_sessions
from brimline.settings import seconds
from brimline.terminal.text import colourize, format_age, shorten_home, strip_control

RECENT = "30d"  # sessions that show the model in use, and what a fresh one holds
FRESH_SESSIONS = 5
UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
POINT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(%|[km])?", re.ASCII | re.IGNORECASE)
EXPECTED = "expected a share of the window such as 60%, or tokens such as 180k"
INDENT = "  "
DRY = "dry run: nothing was changed"

USAGE = "brimline compact-at [OPTIONS] [POINT] [AGENT]"


class CompactAtShown(msgspec.Struct, frozen=True, kw_only=True):
    """What `compact-at --json` prints of an agent.

    `limit` is where the client compacts by the value at `key` in `path`. `check` is what sessions
    that began since show. `problem` is why nothing was changed.
    """

    agent: str
    model: str | None = None
    window: int | None = None
    limit: int | None = None
    path: str | None = None
    key: str | None = None
    value: int | float | None = None
    at: float | None = None
    written: bool = False
    notes: tuple[str, ...] = ()
    check: CompactionCheck | None = None
    problem: str | None = None


class Point(msgspec.Struct, frozen=True):
    """A wanted limit: a share of the window, or tokens."""

    share: float | None = None
    tokens: int | None = None

    def in_window(self, window: int) -> int:
        return self.tokens if self.tokens is not None else round((self.share or 0.0) * window)


def parse_point(text: str) -> Point:
    """Return the point that is meant; raises InvalidSettings."""
    match = POINT.fullmatch(text)
    number = float(match[1]) if match else 0.0
    unit = (match[2] or "").lower() if match else ""
    if number and unit == "%" and number <= 100:
        return Point(share=number / 100)
    if number and unit != "%" and (tokens := round(number * UNITS[unit])) >= 1_000:
        return Point(tokens=tokens)
    raise InvalidSettings("argument", "POINT", f"{EXPECTED}: got {text!r}")


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    to.add_argument("point", nargs="?", metavar="POINT", help="60%% of the window, or 180k tokens")
    help_text = f"the agent: {', '.join(agent_names())} (default: all in use)"
    to.add_argument("agent", nargs="?", type=parse_agent, metavar="AGENT", help=help_text)
    help_text = "the model, with its provider if it has several (default: the one used last)"
    to.add_argument("--model", metavar="M", help=help_text)
    add_flag(to, "--project", "change this project's settings instead of the user's")
    add_flag(to, "--show", "show what was set, and whether the clients heed it (default)")
    add_flag(to, "--remove", "restore the settings as they were before")
    add_flag(to, "--dry-run", "show the changes without writing them")
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.point in agent_names() and options.agent is None:
        options.point, options.agent = None, options.point
    agents = [get_agent(options.agent).name] if options.agent else agents_present(context.places)
    if options.remove:
        shown = list(_remove(context, agents, options.dry_run))
        nothing = "Nothing to restore."
    elif options.point is None or options.show:
        shown = [_describe(context, record) for record in _records(context, agents)]
        nothing = "Nothing is set. `brimline compact-at 60%` sets where the clients compact."
    else:
        point = parse_point(options.point)
        rows = [_set(context, options, agent, point) for agent in agents]
        # Not every agent that has a folder here is in use.
        shown = [one for one in rows if one.model or options.agent]
        nothing = f"No agent has a session of the last {RECENT}: name one, with --model."
    if options.json:
        emit_json(shown)
    elif shown:
        print("\n\n".join("\n".join(_lines(context, one)) for one in shown))
    else:
        print(nothing)
    is_unset = options.point is not None and not (shown or options.remove or options.show)
    return 1 if is_unset or any(one.problem for one in shown) else 0


def _records(context: CommandContext, agents: Iterable[str]) -> list[SettingRecord]:
    return [record for record in load_records(context.state) if record.agent in agents]


def _remove(
    context: CommandContext, agents: Iterable[str], dry_run: bool
) -> Iterator[CompactAtShown]:
    for record in _records(context, agents):
        shown = _of_record(record)
        if dry_run:
            yield msgspec.structs.replace(shown, notes=("would be restored",))
        elif restore_setting(context.state, record):
            yield msgspec.structs.replace(shown, written=True, notes=("restored as before",))
        else:
            left = "another value is there now: it stays"
            yield msgspec.structs.replace(shown, notes=(left,))


def _of_record(record: SettingRecord) -> CompactAtShown:
    return CompactAtShown(
        agent=record.agent,
        model=record.model,
        window=record.window,
        limit=record.limit,
        path=record.path,
        key=".".join(map(str, record.key)),
        value=record.value,
        at=record.at,
    )


def _describe(context: CommandContext, record: SettingRecord) -> CompactAtShown:
    check = check_setting(record, context.places, context.cache)
    return msgspec.structs.replace(_of_record(record), check=check)


def _set(
    context: CommandContext, options: argparse.Namespace, agent: str, point: Point
) -> CompactAtShown:
    project = str(Path.cwd()) if options.project else None
    recent = list(
        read_sessions(context.places, agent, context.now - seconds(RECENT), context.cache)
    )
    known = _known_model(context, agent, project, recent, options.model)
    about = known or ResolveContext(agent=agent)
    setting = get_agent(agent).compaction_setting(context.places, project, about)
    if setting is None:
        where = " in a project" if project else ""
        reason = f"Brimline knows no setting of {display_name(agent)} for its compaction{where}"
        return CompactAtShown(agent=agent, problem=reason)
    if known is None:
        reason = f"no session of the last {RECENT} shows the model: name it with --model"
        return CompactAtShown(agent=agent, problem=reason)
    window = window_of(known)
    planned = window and plan_limit(setting, known, point.in_window(window.tokens))
    shown = CompactAtShown(agent=agent, model=known.model, window=window and window.tokens)
    if window is None or planned is None:
        reason = "its window or its rule is unknown: `brimline windows MODEL` shows what is known"
        return msgspec.structs.replace(shown, problem=reason)
    fresh = _fresh_tokens(recent)
    if fresh is not None and planned.limit.tokens <= fresh:
        return msgspec.structs.replace(shown, problem=_below_fresh(planned, fresh))
    record = _record(context, agent, known, setting, planned, window.tokens)
    notes = list(_notes(setting, planned, point.in_window(window.tokens)))
    if options.dry_run:
        notes.append(DRY)
    else:
        try:
            record = write_setting(context.state, record, setting)
        except InvalidSettings as error:
            return msgspec.structs.replace(shown, problem=str(error))
        notes += _overridden(context, known, project, planned)
    return msgspec.structs.replace(
        _of_record(record), written=not options.dry_run, notes=tuple(notes)
    )


def _known_model(
    context: CommandContext,
    agent: str,
    project: str | None,
    recent: list[Session],
    model: str | None,
) -> ResolveContext | None:
    settings = source(agent).settings(context.places, project)
    if model is not None:
        provider, id = find_servings(agent, settings, full_id(model))[0]
        known = ResolveContext(agent=agent, model=id, provider=provider, settings=settings)
        return _with_own_window(context, known)
    for session in reversed(recent):
        main = main_thread(session)
        if main is not None and main.last is not None and main.last.model:
            return _with_own_window(context, resolve_context(session, main, settings))
    return None


def _with_own_window(context: CommandContext, known: ResolveContext) -> ResolveContext:
    """Return what is known of a model, with the window that the user set for it in Brimline."""
    window = window_of(known, context.settings.overrides)
    if window is None or window == window_of(known):
        return known
    return msgspec.structs.replace(known, reported=window.tokens)


def _fresh_tokens(recent: list[Session]) -> int | None:
    """Return the least that one of the last sessions began with."""
    mains = [main for session in recent[-FRESH_SESSIONS:] if (main := main_thread(session))]
    firsts = [call for main in mains for call in main.calls_from(0)[:1]]
    return min((call.usage.sent for call in firsts), default=None)


def _below_fresh(planned: PlannedLimit, fresh: int) -> str:
    return (
        f"it would compact at {format_tokens(planned.limit.tokens)}, but a fresh session begins "
        f"with {format_tokens(fresh)}: choose a higher point"
    )


def _record(
    context: CommandContext,
    agent: str,
    known: ResolveContext,
    setting: CompactionSetting,
    planned: PlannedLimit,
    window: int,
) -> SettingRecord:
    return SettingRecord(
        agent=agent,
        path=str(setting.file),
        key=setting.key,
        value=planned.value,
        at=context.now,
        model=known.model or "",
        limit=planned.limit.tokens,
        window=window,
        dialect=setting.dialect,
    )


def _notes(setting: CompactionSetting, planned: PlannedLimit, wanted: int) -> Iterator[str]:
    if not planned.is_wanted:
        yield f"{format_tokens(wanted)} cannot be had: this is the nearest"
    if setting.note:
        yield setting.note
    if setting.is_shared:
        yield "the file may be shared with others who work on this project"
    yield "sessions that run now go on as before"


def _overridden(
    context: CommandContext, known: ResolveContext, project: str | None, planned: PlannedLimit
) -> list[str]:
    """Return what another setting of the client, with precedence, makes of it."""
    settings = source(known.agent or "").settings(context.places, project)
    limit = limit_without_history(msgspec.structs.replace(known, settings=settings))
    if limit is None or is_near(limit.tokens, planned.limit.tokens):
        return []
    return [f"but another setting goes first: {format_tokens(limit.tokens)}, {limit.why}"]


def _lines(context: CommandContext, shown: CompactAtShown) -> Iterator[str]:
    head = display_name(shown.agent)
    if shown.model:
        head += f"  {strip_control(short_model(shown.model))}"
    if shown.problem:
        yield colourize(f"{head}: not changed", "high", context.colour)
        yield f"{INDENT}{strip_control(shown.problem)}"
        return
    assert shown.limit is not None
    assert shown.window is not None
    assert shown.path is not None
    share = f"{100 * shown.limit / shown.window:.0f}% of {format_tokens(shown.window)}"
    since = f", set {_ago(context, shown.at)}" if shown.check and shown.at else ""
    yield f"{head}  compacts at {format_tokens(shown.limit)}, {share}{since}"
    path = strip_control(shorten_home(shown.path, context.places.home))
    yield f"{INDENT}{path}: {strip_control(shown.key or '')} = {shown.value}"
    yield from (f"{INDENT}{strip_control(note)}" for note in shown.notes)
    if shown.check:
        shade = "high" if shown.check.verdict in ("ignored", "elsewhere") else "low"
        shade = "none" if shown.check.verdict == "not seen" else shade
        yield colourize(f"{INDENT}{strip_control(shown.check.text)}", shade, context.colour)


def _ago(context: CommandContext, at: float) -> str:
    return f"{format_age(max(0.0, context.now - at))} ago"
