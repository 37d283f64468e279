"""Total the usage of sessions by day, week, month, session, project, branch, model or agent."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from math import fsum
from typing import Literal, TypeAlias

import msgspec

from brimline.agents.transcripts.source import Transcript
from brimline.context.cache_misses import Cause
from brimline.context.events import MAIN
from brimline.context.prices import UNKNOWN_DAY, Cost, find_cost
from brimline.context.usage import Usage, add_usages
from brimline.sessions.files import shorten_ids
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.summary import FileSummary, MissRow, UsageRow

Period: TypeAlias = Literal["day", "week", "month"]
Part: TypeAlias = Literal["project", "branch", "model", "agent"]
GroupBy: TypeAlias = Literal[Period, "session", Part]
SortBy: TypeAlias = Literal["key", "calls", "cost", "misses", "peak", "tokens"]
UNKNOWN = "unknown"


class TranscriptSummary(msgspec.Struct, frozen=True):
    transcript: Transcript
    summary: FileSummary

    @property
    def session(self) -> str:
        return self.transcript.session or self.summary.session or self.transcript.path


class MissTotal(msgspec.Struct, frozen=True):
    """Cache misses: how many calls, the tokens they paid again, and what that cost in dollars.

    `cost` is None if no price is known.
    """

    calls: int
    tokens: int
    cost: float | None


class CostTotal(msgspec.Struct, frozen=True):
    """What calls cost in dollars, by an estimate; `cost` is None if no price is known.

    `unpriced` counts the calls that are not in it. `client_cost` is the part of it that the clients
    computed.
    """

    cost: float | None
    unpriced: int
    client_cost: float | None


PricedRow: TypeAlias = tuple[UsageRow, Cost | None]


def total_cost(rows: Iterable[UsageRow]) -> CostTotal:
    return _total_cost([(row, _cost_of_row(row)) for row in rows])


def _total_cost(rows: Sequence[PricedRow]) -> CostTotal:
    costs = [cost for _, cost in rows if cost is not None]
    by_client = [cost.dollars for cost in costs if cost.by_client]
    return CostTotal(
        fsum(cost.dollars for cost in costs) if costs else None,
        sum(row.calls for row, cost in rows if cost is None),
        fsum(by_client) if by_client else None,
    )


def _cost_of_row(row: UsageRow) -> Cost | None:
    if row.stored_cost is not None:
        return Cost(row.stored_cost)
    return find_cost(row.model, row.day, row.tier, row.usage, row.service_tier, row.client_cost)


class ModelTotal(msgspec.Struct, frozen=True):
    """The calls of one model; `cost` is None if no price is known."""

    model: str
    calls: int
    usage: Usage
    cost: float | None


class SessionFacts(msgspec.Struct, frozen=True):
    """What a session is, apart from its figures; unknown is None.

    `short_id` is the beginning of its id that no other session has. `first` and `last` are the
    times of its first call and its last event, whatever the report selects.
    """

    short_id: str
    title: str | None
    project: str | None
    model: str | None
    first: float | None
    last: float | None


class ReportLine(msgspec.Struct, frozen=True):
    """A line of the report.

    `cost` is an estimate in dollars, None if no price is known; `unpriced` counts the calls that
    are not in it. `client_cost` is the part of it that the clients computed, because no price is
    known. `end_sent` is the tokens of the last call, on a session's line only. `miss_causes` has
    the cache misses by their likely cause, that with the most tokens first. `models` has the calls
    by model, the most expensive first. `session` is on a session's line only.
    """

    key: str
    agents: tuple[str, ...]
    sessions: int
    calls: int
    peak_sent: int | None
    end_sent: int | None
    compactions: int
    usage: Usage
    cost: float | None
    unpriced: int = 0
    client_cost: float | None = None
    misses: MissTotal = MissTotal(0, 0, 0.0)
    miss_causes: dict[Cause, MissTotal] = msgspec.field(default_factory=dict[Cause, MissTotal])
    models: tuple[ModelTotal, ...] = ()
    session: SessionFacts | None = None


class Report(msgspec.Struct, frozen=True):
    by: GroupBy
    lines: list[ReportLine]
    total: ReportLine


class ReportFilter(msgspec.Struct, frozen=True):
    """Select the rows of some days, of projects whose path contains a text, of one branch."""

    first_day: str | None = None
    project: str | None = None
    last_day: str | None = None
    branch: str | None = None

    def has_project(self, project: str) -> bool:
        return self.project is None or self.project in project

    def has_row(self, row: UsageRow | MissRow) -> bool:
        return self.has_day_and_branch(row.day, row.branch)

    def has_day_and_branch(self, day: str, branch: str | None) -> bool:
        is_late = self.first_day is None or day >= self.first_day
        is_early = self.last_day is None or day <= self.last_day
        return is_late and is_early and self.branch in (None, branch)


def summaries(index: TranscriptIndex, transcripts: Iterable[Transcript]) -> list[TranscriptSummary]:
    return [
        TranscriptSummary(transcript, summary)
        for transcript in transcripts
        if (summary := index.summary(transcript)) is not None
    ]


def build_report(
    items: Sequence[TranscriptSummary],
    by: GroupBy,
    selection: ReportFilter,
    sort: SortBy = "key",
) -> Report:
    """Build a report with one line per key, sorted by key, or by a figure from the largest on.

    Sessions are sorted by their starts instead of by key.
    """
    sessions = _facts_of_sessions(items)
    by_keys = _collect(items, (by,), selection, sessions)
    groups = {key: group for (key,), group in by_keys.items()}
    total = _LineBuilder()
    for group in groups.values():
        total.merge(group)
    facts = sessions if by == "session" else {}
    lines = [group.build(key, facts.get(key)) for key, group in sorted(groups.items())]
    if sort != "key":
        lines.sort(key=lambda line: _figure(line, sort), reverse=True)
    elif by == "session":  # their ids say nothing
        lines.sort(key=lambda line: (line.session and line.session.first) or 0.0)
    return Report(by, lines, total.build("total"))


def split_report(
    items: Sequence[TranscriptSummary], period: Period, by: Part, selection: ReportFilter
) -> dict[str, list[ReportLine]]:
    """Return the lines of each part within each period, both in the order of their keys."""
    groups = _collect(items, (period, by), selection, _facts_of_sessions(items))
    periods: dict[str, list[ReportLine]] = {}
    for (start, key), group in sorted(groups.items()):
        periods.setdefault(start, []).append(group.build(key))
    return periods


def _collect(
    items: Iterable[TranscriptSummary],
    by: tuple[GroupBy, ...],
    selection: ReportFilter,
    sessions: Mapping[str, SessionFacts],
) -> "dict[tuple[str, ...], _LineBuilder]":
    """Return the selected rows by their keys."""
    groups: defaultdict[tuple[str, ...], _LineBuilder] = defaultdict(_LineBuilder)
    for item in items:
        project = sessions[item.session].project or UNKNOWN
        if not selection.has_project(project):
            continue
        for row in item.summary.rows:
            if selection.has_row(row):
                groups[tuple(_key(each, item, row, project) for each in by)].add(item, row)
        for miss in item.summary.misses:
            if selection.has_row(miss):
                keys = tuple(_key(each, item, miss, project) for each in by)
                groups[keys].misses.append(miss)
    return dict(groups)


def _figure(line: ReportLine, sort: SortBy) -> float:
    usage = line.usage
    figures = {
        "calls": line.calls,
        "cost": line.cost,
        "misses": line.misses.tokens,
        "peak": line.peak_sent,
        "tokens": usage.sent + usage.output,
    }
    return figures[sort] or 0


def _facts_of_sessions(items: Iterable[TranscriptSummary]) -> dict[str, SessionFacts]:
    groups: dict[str, list[TranscriptSummary]] = {}
    for item in sorted(items, key=lambda item: item.transcript.thread != MAIN):
        groups.setdefault(item.session, []).append(item)
    short_ids = shorten_ids(groups)
    return {id: _session_facts(short_ids[id], group) for id, group in groups.items()}


def _session_facts(short_id: str, items: Sequence[TranscriptSummary]) -> SessionFacts:
    """Return what the files of a session say; a subagent that runs elsewhere is in its project."""
    files = [item.summary for item in items]
    own = [item.summary for item in items if item.transcript.thread == MAIN]
    return SessionFacts(
        short_id,
        title=next((file.title for file in own if file.title), None),
        project=next((file.project for file in files if file.project), None),
        model=own[-1].model if own else None,
        first=min((file.first for file in files if file.first is not None), default=None),
        last=max((file.last for file in files if file.last is not None), default=None),
    )


def _key(by: GroupBy, item: TranscriptSummary, row: UsageRow | MissRow, project: str) -> str:
    match by:
        case "day" | "week" | "month":
            return period_of(by, row.day)
        case "session":
            return item.session
        case "project":
            return project
        case "branch":
            return branch_key(project, row.branch)
        case "model":
            return row.model or UNKNOWN
        case "agent":
            return item.transcript.agent


def branch_key(project: str, branch: str | None) -> str:
    """Return a branch with its project: nearly every project has a branch `main`."""
    return f"{project}: {branch}" if branch else UNKNOWN


def periods_between(period: Period, first: str, last: str) -> list[str]:
    """Return every period from one day to another."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    days = ((start + timedelta(at)).isoformat() for at in range((end - start).days + 1))
    return list(dict.fromkeys(period_of(period, day) for day in days))


def period_of(period: Period, day: str) -> str:
    """Return the day itself, its ISO week or its month."""
    if day == UNKNOWN_DAY or period == "day":
        return day
    return week_of(day) if period == "week" else day.rpartition("-")[0]


def week_of(day: str) -> str:
    """Return the ISO week of a day, as 2026-W47."""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year}-W{week:02}"


class _LineBuilder:
    """Collects the rows of a line."""

    def __init__(self) -> None:
        self._items: dict[str, TranscriptSummary] = {}
        self._own_rows: list[UsageRow] = []
        self._rows: list[PricedRow] = []
        self.misses: list[MissRow] = []

    def add(self, item: TranscriptSummary, row: UsageRow) -> None:
        self._items[item.transcript.path + (item.transcript.session or "")] = item
        if item.transcript.thread == MAIN:
            self._own_rows.append(row)
        self._rows.append((row, _cost_of_row(row)))

    def merge(self, other: "_LineBuilder") -> None:
        self._items |= other._items
        self._own_rows += other._own_rows
        self._rows += other._rows
        self.misses += other.misses

    def build(self, key: str, session: SessionFacts | None = None) -> ReportLine:
        owners = [i for i in self._items.values() if i.transcript.thread == MAIN]
        peaks = [row.peak_sent for row in self._own_rows if row.peak_sent is not None]
        total = _total_cost(self._rows)
        return ReportLine(
            key=key,
            agents=tuple(sorted({i.transcript.agent for i in self._items.values()})),
            sessions=len({i.session for i in self._items.values()}),
            calls=sum(row.calls for row, _ in self._rows),
            peak_sent=max(peaks, default=None),
            end_sent=owners[0].summary.end_sent if len(owners) == 1 and session else None,
            compactions=sum(row.compactions for row in self._own_rows),
            usage=add_usages([row.usage for row, _ in self._rows]),
            cost=total.cost,
            unpriced=total.unpriced,
            client_cost=total.client_cost,
            misses=_total_misses(self.misses),
            miss_causes=_misses_by_cause(self.misses),
            models=_totals_by_model(self._rows),
            session=session,
        )


def _totals_by_model(rows: Iterable[PricedRow]) -> tuple[ModelTotal, ...]:
    groups: dict[str, list[PricedRow]] = {}
    for row, cost in rows:
        if row.calls or row.usage.held:  # not of compactions alone
            groups.setdefault(row.model or UNKNOWN, []).append((row, cost))
    totals = [
        ModelTotal(
            model,
            sum(row.calls for row, _ in group),
            add_usages([row.usage for row, _ in group]),
            _total_cost(group).cost,
        )
        for model, group in groups.items()
    ]
    return tuple(sorted(totals, key=lambda each: (each.cost or 0, each.usage.held), reverse=True))


def _misses_by_cause(rows: Iterable[MissRow]) -> dict[Cause, MissTotal]:
    groups: dict[Cause, list[MissRow]] = {}
    for row in rows:
        groups.setdefault(row.cause, []).append(row)
    totals: dict[Cause, MissTotal] = {
        cause: _total_misses(group) for cause, group in groups.items()
    }
    causes: list[Cause] = sorted(totals, key=lambda cause: totals[cause].tokens, reverse=True)
    return {cause: totals[cause] for cause in causes}


def _total_misses(rows: Sequence[MissRow]) -> MissTotal:
    costs = [row.cost for row in rows if row.cost is not None]
    return MissTotal(
        sum(row.misses for row in rows),
        sum(row.tokens for row in rows),
        fsum(costs) if costs or not rows else None,
    )
