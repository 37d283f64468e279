"""`brimline inspect`: one transcript or stream, call by call."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from brimline.agents import agent_names, get_agent, source
from brimline.cli.arguments import add_agent, add_flag, add_json
from brimline.cli.compactions import (
    CompactionShown,
    describe_compaction,
    format_count,
    iso,
    show_compaction,
)
from brimline.cli.context import CommandContext, emit_json, print_problems
from brimline.cli.daemon_sessions import (
    AnswerSource,
    KnownSession,
    has_lost_calls,
    load_stored_session,
)
from brimline.cli.session_choice import find_session
from brimline.cli.session_text import describe_fullness, describe_session, draw_chart
from brimline.cli.windows import describe_bound
from brimline.context.cache_misses import compute_prompt_cache
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.events import MAIN
from brimline.context.forecast import describe_calls_left, forecast, minutes_left
from brimline.context.formulas import Formulas, audit, percent_error
from brimline.context.policy.levels import Fullness
from brimline.context.tracker import Compared, Reading, Session, Thread, read
from brimline.context.usage import format_percent, percent_raw
from brimline.context.window import NO_CLIENT_SETTINGS, Limit, Window
from brimline.monitor.user_rules import Rules
from brimline.sessions.compaction_effects import MainContent, content_of, measure_compactions
from brimline.sessions.files import LoadedSession, load_session
from brimline.sessions.report import CostTotal
from brimline.sessions.session_cost import find_session_cost
from brimline.sessions.target import is_file_target, load_target
from brimline.sessions.turns import NextTurn, predict_next_turn
from brimline.terminal.report_text import describe_cache, describe_quotas
from brimline.terminal.text import (
    Cell,
    Column,
    colourize,
    count_of,
    format_age,
    format_dollars,
    format_table,
    join_facts,
    strip_control,
)

MIN_CHART_CALLS = 2


class Skipped(msgspec.Struct, frozen=True):
    """Records that were not read."""

    unknown: int
    malformed: int


class Point(msgspec.Struct, frozen=True):
    """One call of a thread's series."""

    call: str
    at: str | None
    sent: int
    output: int


class ThreadShown(msgspec.Struct, frozen=True):
    """A thread in the output: its reading, and figures of its calls.

    `last_sent` is what the last call sent, also while `sent` is unknown after a compaction.
    `title` is what a subagent is to do. `compared` is what the client compares with its limit.
    `calls_left` is a forecast; the true number is within `calls_left_range` 8 times out of 10.
    `minutes_left` is without pauses of the user. `next_turn` compares its turns with what is left.
    """

    thread: str
    title: str | None
    model: str | None
    calls: int
    sent: int | None
    held: int | None
    last_sent: int | None
    peak_sent: int | None
    percent: float | None
    percent_raw: float | None
    percent_of_limit: float | None
    compared: Compared | None
    window: Window | None
    limit: Limit | None
    cycle: int
    state: str
    client_shows: str | None
    fullness: Fullness | None
    calls_left: int | None
    calls_left_range: list[int] | None
    minutes_left: float | None
    next_turn: NextTurn | None
    compactions: list[CompactionShown]
    formulas: Formulas
    series: list[Point] | msgspec.UnsetType


class Inspected(msgspec.Struct, frozen=True):
    """What `inspect --json` prints.

    `cost` is an estimate in dollars, without the calls that a fork copied; None if no price is
    known. `unpriced` counts the calls that are not in it, `client_cost` is the part of it that the
    client computed, because no price is known. `duration_seconds` is from the first call to the
    last one, `age_seconds` from then until now; None if the calls have no times. `quotas` are of
    the account that the session uses, as its client last reported them. `prompt_cache` is that of
    the main thread. `source` is `daemon` if windows, limits and what is held now are as the daemon
    has them.
    """

    agent: str | None
    session_id: str | None
    title: str | None
    project: str | None
    version: str | None
    records: int
    skipped: Skipped
    cost: float | None
    unpriced: int
    client_cost: float | None
    duration_seconds: float | None
    age_seconds: float | None
    threads: list[ThreadShown]
    quotas: Quotas | None
    prompt_cache: PromptCache | None
    source: AnswerSource


def add_arguments(to: argparse.ArgumentParser) -> None:
    help_text = (
        "a file, a session's id or title, or - for stdin (default: this or the latest session)"
    )
    to.add_argument("target", nargs="?", metavar="PATH|SESSION|-", help=help_text)
    add_agent(to)
    add_flag(to, "--series", "list every call")
    add_flag(to, "--audit", "compare with the formulas of other tools, and count the records")
    add_json(to, "a chart and a table")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    if options.agent is not None:
        get_agent(options.agent)
    folded, known = _load(context, options.target, options.agent)
    print_problems(folded.problems)
    if options.json:
        emit_json(shown(context, folded, options.series, known))
    else:
        print("\n".join(_text(context, folded, known, options)))
    return 0


def _load(
    context: CommandContext, target: str | None, agent: str | None
) -> tuple[LoadedSession, KnownSession | None]:
    """Load a session by its files, or what the daemon has stored if that is more."""
    if target is not None and is_file_target(target):
        return load_target(target, context.places, sys.stdin.buffer, agent), None
    files, known = find_session(context, target, agent)
    loaded = load_session(files) if files else None
    if known is not None and (loaded is None or has_lost_calls(loaded.session, known)):
        return load_stored_session(context, known), known
    assert loaded is not None
    return loaded, known


def shown(
    context: CommandContext, loaded: LoadedSession, series: bool, known: KnownSession | None = None
) -> Inspected:
    session, tally = loaded.session, loaded.tally
    rules = Rules.of_settings(context.settings)
    cost = find_session_cost(loaded, context.places, context.cache)
    first, last = _times(session, known)
    content = content_of(loaded)
    return Inspected(
        agent=session.agent,
        session_id=session.id,
        title=session.title,
        project=session.project,
        version=session.version,
        records=tally.records,
        skipped=Skipped(tally.unknown, tally.malformed),
        cost=cost.cost,
        unpriced=cost.unpriced,
        client_cost=cost.client_cost,
        duration_seconds=None if first is None or last is None else last - first,
        age_seconds=None if last is None else max(0.0, context.now - last),
        threads=[
            _thread(context, rules, session, t, series, known, content)
            for t in ordered_threads(session)
        ],
        quotas=_quotas(context, session, known),
        prompt_cache=_prompt_cache(context, session, known),
        source="daemon" if known else "files",
    )


def _times(session: Session, known: KnownSession | None) -> tuple[float | None, float | None]:
    """Return when the first call of a session was made, and the last one."""
    threads = session.threads.values()
    firsts = [thread.first_at for thread in threads if thread.first_at is not None]
    known_threads = known.threads if known else ()
    lasts = [thread.at for thread in (*threads, *known_threads) if thread.at is not None]
    return min(firsts, default=None), max(lasts, default=None)


def ordered_threads(session: Session) -> list[Thread]:
    """Return the main thread first, the others in the order in which they began."""
    return sorted(session.threads.values(), key=lambda thread: thread.name != MAIN)


def read_thread(
    context: CommandContext, session: Session, thread: Thread, known: KnownSession | None = None
) -> Reading:
    """Return the reading of a thread by its file, or as the daemon has it."""
    client_settings = NO_CLIENT_SETTINGS
    if session.agent in agent_names():
        client_settings = source(session.agent).settings(context.places, session.project)
    reading = read(session, thread, "transcript", context.settings.overrides, client_settings)
    return known.merge(thread.name, thread.model, reading) if known else reading


def _thread(
    context: CommandContext,
    rules: Rules,
    session: Session,
    thread: Thread,
    series: bool,
    known: KnownSession | None,
    content: MainContent | None,
) -> ThreadShown:
    reading = read_thread(context, session, thread, known)
    last = thread.last
    left = forecast(thread, reading)
    return ThreadShown(
        thread=thread.name,
        title=thread.title,
        model=thread.model,
        calls=len(thread.calls),
        sent=reading.sent,
        held=reading.held,
        last_sent=last.usage.sent if last else None,
        peak_sent=thread.peak_sent,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        compared=reading.compared,
        window=reading.window,
        limit=reading.limit,
        cycle=reading.cycle,
        state=reading.state,
        client_shows=reading.client_shows,
        fullness=_fullness(rules, session, thread, reading),
        calls_left=left and left.calls,
        calls_left_range=left and left.range,
        minutes_left=minutes_left(thread, left),
        next_turn=_next_turn(thread, reading, content),
        compactions=[show_compaction(each) for each in measure_compactions(thread, content)],
        formulas=audit(thread),
        series=_series(thread) if series else msgspec.UNSET,
    )


def _next_turn(thread: Thread, reading: Reading, content: MainContent | None) -> NextTurn | None:
    """Return None of subagents, which have no turns, and of a stream, which has no prompts."""
    if content is None or thread.name != MAIN:
        return None
    return predict_next_turn(thread, reading, content.turn_starts)


def _series(thread: Thread) -> list[Point]:
    return [
        Point(call.id, iso(call.at), call.usage.sent, call.usage.output)
        for call in thread.calls.values()
    ]


def _text(
    context: CommandContext,
    folded: LoadedSession,
    known: KnownSession | None,
    options: argparse.Namespace,
) -> list[str]:
    session, rules = folded.session, Rules.of_settings(context.settings)
    lines = describe_session(context, session)
    if session.threads:
        cost = find_session_cost(folded, context.places, context.cache)
        facts = [_describe_cost(cost), *_describe_times(context, *_times(session, known))]
        lines += join_facts(facts, context.width)
    if options.audit or folded.tally.unknown or folded.tally.malformed or not session.threads:
        lines += _counts(folded)
    lines += _report_lines(context, session, known)
    content = content_of(folded)
    for thread in ordered_threads(session):
        reading = read_thread(context, session, thread, known)
        lines += ["", *_thread_text(context, rules, session, thread, reading, content, options)]
    return lines


def _quotas(context: CommandContext, session: Session, known: KnownSession | None) -> Quotas | None:
    """Return the quotas as the daemon has them, else by the session's files."""
    if known is not None and known.quotas is not None:
        return known.quotas
    return session.quotas and session.quotas.current(context.now)


def _prompt_cache(
    context: CommandContext, session: Session, known: KnownSession | None
) -> PromptCache | None:
    """Return the cache as the daemon has it, else what follows from the last call."""
    if known is not None and known.prompt_cache is not None:
        return known.prompt_cache
    cache = compute_prompt_cache(session.threads.get(MAIN) or Thread(MAIN))
    return cache and cache.current(context.now)


def _report_lines(
    context: CommandContext, session: Session, known: KnownSession | None
) -> list[str]:
    quotas, cache = _quotas(context, session, known), _prompt_cache(context, session, known)
    lines = [f"quota  {describe_quotas(quotas, context.now)}"] if quotas else []
    if cache and (text := describe_cache(cache, context.now)):
        lines.append(f"cache  {text}")
    return lines


def _describe_times(
    context: CommandContext, first: float | None, last: float | None
) -> tuple[str, str]:
    lasted = "unknown" if first is None or last is None else format_age(last - first)
    ago = "unknown" if last is None else f"{format_age(context.now - last)} ago"
    return f"duration {lasted}", f"last call {ago}"


def _describe_cost(total: CostTotal) -> str:
    text = f"cost {format_dollars(total.cost)}"
    if total.cost is None:
        return text
    if total.client_cost is not None:
        text += f", ${total.client_cost:,.2f} of it by the client: no price is known"
    if total.unpriced:
        text += f", without {count_of(total.unpriced, 'call')} on models without a known price"
    return text


def _counts(folded: LoadedSession) -> list[str]:
    tally = folded.tally
    text = f"{count_of(tally.records, 'record')} read"
    if tally.unknown:
        text += f", {tally.unknown:,} of an unknown kind"
    if tally.malformed:
        text += f", {tally.malformed:,} malformed"
    if not folded.session.threads:
        text += ": no model call in it"
    return [text, *(f"  malformed: {strip_control(place)}" for place in tally.places)]


def _thread_text(
    context: CommandContext,
    rules: Rules,
    session: Session,
    thread: Thread,
    reading: Reading,
    content: MainContent | None,
    options: argparse.Namespace,
) -> list[str]:
    if not thread.calls and reading.sent is None:
        tokens = format_count(thread.spent.held)
        return [f"{strip_control(thread.name)}: no call; {tokens} tokens in all"]
    shade = _fullness(rules, session, thread, reading) or "none"
    headline = join_facts(_headline(thread, reading), context.width)
    lines = [colourize(line, shade, context.colour) for line in headline]
    if sum(call.usage.sent > 0 for call in thread.calls.values()) >= MIN_CHART_CALLS:
        lines += draw_chart(context, rules, session, thread, reading)
    lines += _origins(reading)
    if turn := _next_turn(thread, reading, content):
        lines.append(str(turn))
    for compaction in measure_compactions(thread, content):
        lines += describe_compaction(compaction, context.width)
    if options.audit:
        lines += ["", *_formulas(context, thread, reading)]
    if options.series:
        lines += ["", *_calls(context, thread)]
    return lines


def _headline(thread: Thread, reading: Reading) -> list[str]:
    title = [thread.title] if thread.title else []
    model = thread.model or "unknown model"
    facts = [thread.name, *title, model, *describe_fullness(reading)]
    facts.append(describe_calls_left(thread, reading))
    if minutes := minutes_left(thread, forecast(thread, reading)):
        facts.append(f"about {format_age(60 * minutes)} of work")
    facts.append(count_of(len(thread.calls), "call"))
    facts.append(f"cycle {reading.cycle}")
    if reading.percent_raw is not None and reading.percent_raw > 100:
        facts.append("WARNING: more than the window")
    return facts


def _fullness(rules: Rules, session: Session, thread: Thread, reading: Reading) -> Fullness | None:
    return rules.fullness_of(reading, session.id or "", session.agent or "", thread.model)


def _origins(reading: Reading) -> list[str]:
    unknown = "unknown: set it under [windows] in Brimline's settings"
    lines = [f"window {describe_bound(reading.window, unknown)}"]
    if reading.limit:
        lines.append(f"limit  {describe_bound(reading.limit)}")
        if reading.compared and list(reading.compared.parts) != ["held"]:
            lines.append(f"the client compares {reading.compared}")
    if reading.client_shows:
        lines.append(f"the client shows {reading.client_shows}")
    return lines


def _formulas(context: CommandContext, thread: Thread, reading: Reading) -> list[str]:
    values = audit(thread).by_name
    truth = values["latest"]
    size = reading.window.tokens if reading.window else None
    rows = [
        [
            Cell(name),
            Cell(format_count(value)),
            Cell(_percent(percent_raw(value, size))),
            Cell(_off(value, truth)),
        ]
        for name, value in values.items()
    ]
    columns = [
        Column("formula"),
        Column("tokens", right=True),
        Column("of window", right=True),
        Column("off by", right=True),
    ]
    return format_table(columns, rows, context.width, context.colour)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else format_percent(value)


def _off(value: int | None, truth: int | None) -> str:
    far = percent_error(value, truth)
    if far is None:
        return ""
    return "0" if value == truth else f"{far:+}%"


def _calls(context: CommandContext, thread: Thread) -> list[str]:
    columns = [
        Column("call", min_width=12),
        Column("at", drop_order=1),
        Column("sent", right=True),
        Column("output", right=True),
    ]
    rows: Sequence[Sequence[Cell]] = [
        [Cell(strip_control(p.call)), Cell(p.at or ""), Cell(f"{p.sent:,}"), Cell(f"{p.output:,}")]
        for p in _series(thread)
    ]
    return format_table(columns, rows, context.width, context.colour)
