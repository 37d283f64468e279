"""`brimline status`: every active session, its subagents below it.

Those that need something come first, with a sentence that says what to do; then the active ones,
nearest to their limit first; then those that are idle for an hour.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from brimline.agents import agent_names, display_name
from brimline.cli.arguments import ALL_ROWS, add_rows, add_status_arguments, chosen_agents
from brimline.cli.context import (
    CommandContext,
    emit_json,
    print_problems,
    print_store_problems,
    screen_height,
)
from brimline.cli.daemon_sessions import (
    AnswerSource,
    KnownStatus,
    SessionQuestion,
    merge_survey,
)
from brimline.context.events import MAIN
from brimline.context.need import Assessment, End, Need, assess
from brimline.context.policy.levels import Fullness
from brimline.context.tracker import Reading
from brimline.context.usage import format_occupancy, format_percent, format_tokens
from brimline.context.window import Limit, Window, short_model
from brimline.monitor.user_rules import Rules
from brimline.sessions.status import (
    SessionStatus,
    ThreadStatus,
    survey_sessions,
)
from brimline.settings import seconds
from brimline.terminal.report_text import FORK_MARK
from brimline.terminal.text import (
    Cell,
    Column,
    colourize,
    count_of,
    draw_bar,
    format_age,
    format_dollars,
    format_table,
    shorten_home,
    strip_control,
    truncate,
)

MIN_BAR_COLUMNS, MAX_BAR_COLUMNS = 8, 40
MAX_SUBAGENTS = 4  # the latest of a session; `--rows all` shows the others
MAX_NAME_COLUMNS = 12  # of a subagent without a title
OTHER_ROWS = 4  # the head, what is hidden, the summary, and the shell's prompt

TITLE, AGENT = "title", "agent"
COLUMNS = (
    Column("id"),
    Column(TITLE, min_width=10),
    Column(AGENT, drop_order=4),
    Column("project", min_width=10, keep_end=True, drop_order=3),
    Column("model", min_width=8, drop_order=6),
    Column("", drop_order=5),
    Column("context", right=True),
    Column("tokens", right=True, drop_order=7),
    Column("of limit", right=True, drop_order=1),
    Column("calls left", right=True, drop_order=8),
    Column("cost", right=True, drop_order=9),
    Column("cycle", right=True, drop_order=10),
    Column("age", right=True, drop_order=2),
    Column("source", drop_order=11),
)
MAX_TITLE_COLUMNS = 30  # that other columns leave to the title, in a terminal of 80
MIN_TITLE_COLUMNS = 20  # the same, if the sessions are of several agents
UNLESS_EQUAL = (AGENT, "cycle", "source")  # columns that are shown if their values differ
NOTHING_FOUND = "No transcripts found on this machine ({agents})."
NOTHING_ACTIVE = (
    "No session was active in the last {since}; use --all or --since 7d for older ones."
)


class StatusShown(msgspec.Struct, frozen=True):
    """A thread's line in the JSON of `status`.

    `at` is the time of its last call, None if unknown; `age_seconds` is counted from then, else
    from when its session was last active. `answered_by` is who has these figures: the daemon, or
    the files alone. `cost` is what its session has cost in dollars; None if no price is known.
    `need` is what its session asks of a person now, `ends` what stops it, the nearest first; a
    subagent has none. `thread_title` is what a subagent is to do.
    """

    agent: str
    session_id: str
    thread: str
    thread_title: str | None
    title: str | None
    project: str | None
    is_fork: bool
    model: str | None
    sent: int | None
    held: int | None
    percent: float | None
    percent_raw: float | None
    percent_of_limit: float | None
    window: Window | None
    limit: Limit | None
    client_shows: str | None
    fullness: Fullness | None
    state: str
    cycle: int | None
    source: str
    at: float | None
    age_seconds: float
    cost: float | None
    need: Need | None
    ends: list[End]
    answered_by: AnswerSource


class ListedSession(NamedTuple):
    """A session with its place in the list."""

    status: SessionStatus
    fullness: Fullness | None
    assessed: Assessment

    @property
    def need(self) -> Need | None:
        return self.assessed.need

    @property
    def group(self) -> int:
        """0 with a need, 1 if it is active, 2 if it is idle."""
        return self.assessed.rank[0]


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_status_arguments(to)
    add_rows(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    rules = Rules.of_settings(context.settings)
    sessions, has_older = list_sessions(context, options)
    if options.json:
        emit_json([_json(context, rules, g, r) for g in sessions for r in g.status.threads])
    elif sessions:
        _print_sessions(context, rules, fold_chains(sessions), options.rows)
    elif has_older:
        print(NOTHING_ACTIVE.format(since=context.settings.since))
    else:
        return _nothing(context, options)
    return 0


def list_sessions(
    context: CommandContext, options: argparse.Namespace
) -> tuple[list[ListedSession], bool]:
    """Return the sessions of files and daemon in their order, and whether any were found at all.

    What could not be read is reported.
    """
    agents, rules = chosen_agents(options), Rules.of_settings(context.settings)
    since = None if options.all else context.now - seconds(context.settings.since)
    question = SessionQuestion(context, "all" if options.all else context.settings.since)
    settings = context.settings
    survey = survey_sessions(
        context.places, agents, since, settings.overrides, context.cache, settings.budget
    )
    print_problems(survey.problems)
    print_store_problems(context)
    known = question.read(agents if options.agent else None)
    listed = (_listed(rules, each, context.now) for each in merge_survey(survey, known))
    ordered = sorted(listed, key=lambda each: (each.assessed.rank, each.status.session))
    return ordered, bool(survey.ids)


def fold_chains(sessions: Sequence[ListedSession]) -> list[ListedSession]:
    """Leave out sessions that continue as another in the list, which then stands for the chain.

    It has the title of the first, with the number of sessions, and what they cost together.
    """
    listed = {(each.status.agent, each.status.session): each.status for each in sessions}
    before = {
        (each.agent, each.continued_as): each
        for each in listed.values()
        if each.continued_as is not None and (each.agent, each.continued_as) in listed
    }
    hidden = {(each.agent, each.session) for each in before.values()}
    folded: list[ListedSession] = []
    for each in sessions:
        chain = [each.status]
        while (earlier := before.get((chain[-1].agent, chain[-1].session))) not in (None, *chain):
            chain.append(earlier)
        if (each.status.agent, each.status.session) not in hidden:
            folded.append(each._replace(status=_chain_status(chain)))
    return folded


def _chain_status(chain: Sequence[SessionStatus]) -> SessionStatus:
    """Return the status of a chain, whose newest session is the first of the list."""
    newest, oldest = chain[0], chain[-1]
    if newest is oldest:
        return newest
    costs = [each.cost for each in chain]
    known = [cost for cost in costs if cost is not None]
    return msgspec.structs.replace(
        newest,
        title=f"{oldest.title} ({len(chain)})" if oldest.title else newest.title,
        cost=sum(known) if len(known) == len(costs) else None,
    )


def _nothing(context: CommandContext, options: argparse.Namespace) -> int:
    print(NOTHING_FOUND.format(agents=", ".join(map(display_name, agent_names()))))
    if options.command is None:
        from brimline.cli import demo

        return demo.play(context)
    return 0


def _listed(rules: Rules, status: SessionStatus, now: float) -> ListedSession:
    fullness = _fullness(rules, status, status.main)
    return ListedSession(status, fullness, assess(status.need_facts(fullness), now))


def _print_sessions(
    context: CommandContext,
    rules: Rules,
    sessions: Sequence[ListedSession],
    wanted: int | None,
) -> None:
    """Print as many sessions as the screen has rows, or as are wanted, and a summary of all."""
    height = screen_height(context.places.env, sys.stdout)
    room = wanted or (None if height is None else height - OTHER_ROWS)
    every = room == ALL_ROWS
    cells: list[list[Cell]] = []
    counts: list[int] = []  # the rows of each session
    used = 0
    for place, session in enumerate(sessions):
        rows = _lines(context, rules, session.status, every)
        used += len(rows) + (session.need is not None) + _begins_group(sessions, place)
        if room is not None and counts and used > room:
            break
        cells += rows
        counts.append(len(rows))
    lines = iter(_format_differing(context, cells))
    print("\n".join(_with_needs(context, sessions, counts, lines)))
    if len(counts) < len(sessions):
        print(f"+{len(sessions) - len(counts)} more (--rows all)")
    print(_summary(sessions))


def _begins_group(sessions: Sequence[ListedSession], place: int) -> bool:
    return place > 0 and sessions[place].group != sessions[place - 1].group


def _with_needs(
    context: CommandContext,
    sessions: Sequence[ListedSession],
    counts: Sequence[int],
    lines: Iterator[str],
) -> Iterator[str]:
    """Yield the table's lines, below each session its need, and a blank line between the groups."""
    yield next(lines)
    for place, count in enumerate(counts):
        if _begins_group(sessions, place):
            yield ""
        yield next(lines)
        if need := sessions[place].need:
            text = truncate(f"  {strip_control(need.text)}", context.width)
            yield colourize(text, sessions[place].fullness or "none", context.colour)
        yield from islice(lines, count - 1)


def _format_differing(context: CommandContext, cells: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the table without the columns that have no value, or one in several rows."""
    places = [
        place
        for place, column in enumerate(COLUMNS)
        if len({row[place].text for row in cells} - {""}) > (column.title in UNLESS_EQUAL)
    ]
    rows = [[row[place] for place in places] for row in cells]
    most = MAX_TITLE_COLUMNS
    if any(COLUMNS[place].title == AGENT for place in places):  # a title leaves room for it
        most = min(most, max(MIN_TITLE_COLUMNS, context.width // 4))
    columns = [_fit_title(COLUMNS[place], context.width, most) for place in places]
    return format_table(columns, rows, context.width, context.colour)


def _fit_title(column: Column, width: int, most: int) -> Column:
    if column.title != TITLE or column.min_width is None:
        return column
    min_width = max(column.min_width, min(most, width // 2 - column.min_width))
    return msgspec.structs.replace(column, min_width=min_width)


def _summary(sessions: Sequence[ListedSession]) -> str:
    near = sum(each.assessed.is_near_limit for each in sessions)
    whose = "its" if near == 1 else "their"
    return f"{count_of(len(sessions), 'session')}, {near or 'none'} near {whose} limit"


def _json(
    context: CommandContext, rules: Rules, listed: ListedSession, row: ThreadStatus
) -> StatusShown:
    session, reading = listed.status, row.reading
    return StatusShown(
        agent=session.agent,
        session_id=session.session,
        thread=row.thread,
        thread_title=row.title,
        title=session.title,
        project=session.project,
        is_fork=session.is_fork,
        model=row.model,
        sent=reading.sent,
        held=reading.held,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        window=reading.window,
        limit=reading.limit,
        client_shows=reading.client_shows,
        fullness=_fullness(rules, session, row),
        state=reading.state,
        cycle=row.cycle,
        source=reading.source,
        at=reading.at,
        age_seconds=round(context.now - session.last_call_at(row), 1),
        cost=session.cost if row is session.main else None,
        need=listed.need if row is session.main else None,
        ends=listed.assessed.ends if row is session.main else [],
        answered_by="daemon" if isinstance(row, KnownStatus) else "files",
    )


def _lines(
    context: CommandContext, rules: Rules, session: SessionStatus, every: bool
) -> list[list[Cell]]:
    shown = session.subagents if every else session.subagents[:MAX_SUBAGENTS]
    lines = [_line(context, rules, session, row) for row in (session.main, *shown)]
    hidden = len(session.subagents) - len(shown)
    if hidden:
        more = Cell(f"  + {hidden} more", "dim")
        lines.append([Cell(""), more, *[Cell("")] * (len(COLUMNS) - 2)])
    return lines


def _line(
    context: CommandContext, rules: Rules, session: SessionStatus, row: ThreadStatus
) -> list[Cell]:
    reading = row.reading
    own = row.thread == MAIN
    how = _fullness(rules, session, row) or "dim"
    project = session.project
    place = shorten_home(project, context.places.home) if project else ""
    name = f"└ {row.title or truncate(row.thread, MAX_NAME_COLUMNS)}"
    return [
        Cell(strip_control(session.short_id) if own else "", "dim"),
        _title(session, place) if own else Cell(strip_control(name), "dim"),
        Cell(session.agent if own else ""),
        Cell(strip_control(place) if own else ""),
        Cell(strip_control(short_model(row.model))),
        Cell(draw_bar(reading.percent, bar_width(context.width)), how),
        Cell(_percent(reading), how),
        Cell(_tokens(reading)),
        Cell("?" if reading.percent_of_limit is None else format_percent(reading.percent_of_limit)),
        Cell(f"about {left}" if own and (left := session.calls_left) is not None else ""),
        Cell(_cost(session) if own else ""),
        Cell("?" if row.cycle is None else str(row.cycle)),
        Cell(format_age(context.now - session.last_call_at(row))),
        Cell(reading.source, "dim"),
    ]


def _title(session: SessionStatus, place: str) -> Cell:
    """The session's title, else its project: narrow tables have no other column for that."""
    mark = FORK_MARK if session.is_fork else ""
    if session.title is None:
        return Cell(strip_control(mark + place), "dim")
    return Cell(strip_control(mark + session.title))


def _cost(session: SessionStatus) -> str:
    return "?" if session.cost is None else format_dollars(session.cost)


def _fullness(rules: Rules, session: SessionStatus, row: ThreadStatus) -> Fullness | None:
    if isinstance(row, KnownStatus):
        return row.fullness
    return rules.fullness_of(row.reading, session.session, session.agent, row.model)


def bar_width(width: int) -> int:
    return max(MIN_BAR_COLUMNS, min(MAX_BAR_COLUMNS, width // 10))


def _percent(reading: Reading) -> str:
    if reading.percent_raw is None:
        return reading.state if reading.sent is None else "?"
    return format_occupancy(reading.percent_raw)


def _tokens(reading: Reading) -> str:
    if reading.sent is None:
        return f"?/{format_tokens(reading.window.tokens)}" if reading.window else "unknown"
    window = format_tokens(reading.window.tokens) if reading.window else "?"
    return f"{format_tokens(reading.sent)}/{window}"
