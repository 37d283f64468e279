"""Total the usage of sessions by day, session, project or model."""

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Literal, TypeAlias

import msgspec

from brimline.events import MAIN
from brimline.prices import compute_cost
from brimline.survey.index import TranscriptIndex
from brimline.survey.summary import FileSummary, UsageRow
from brimline.transcripts.source import Transcript
from brimline.usage import ZERO, Usage

GroupBy: TypeAlias = Literal["day", "session", "project", "model"]
UNKNOWN = "unknown"


class TranscriptSummary(msgspec.Struct, frozen=True):
    transcript: Transcript
    summary: FileSummary

    @property
    def session(self) -> str:
        return self.transcript.session or self.summary.session or self.transcript.path


class ReportLine(msgspec.Struct, frozen=True):
    """A line of the report.

    `cost` is an estimate in dollars, None if no price is known; `unpriced` counts the calls that
    are not in it. `end_sent` is the tokens of the last call, on a session's line only.
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


class Report(msgspec.Struct, frozen=True):
    by: GroupBy
    lines: list[ReportLine]
    total: ReportLine


class ReportFilter(msgspec.Struct, frozen=True):
    """Select rows from a day on, of projects whose path contains a text."""

    first_day: str | None = None
    project: str | None = None

    def matching_rows(self, summary: FileSummary, project: str) -> list[UsageRow]:
        if self.project is not None and self.project not in project:
            return []
        return [row for row in summary.rows if self.first_day is None or row.day >= self.first_day]


def summaries(index: TranscriptIndex, transcripts: Iterable[Transcript]) -> list[TranscriptSummary]:
    return [
        TranscriptSummary(transcript, summary)
        for transcript in transcripts
        if (summary := index.summary(transcript)) is not None
    ]


def build_report(
    items: Sequence[TranscriptSummary], by: GroupBy, selection: ReportFilter
) -> Report:
    """Build a report with one line per key, sorted by key."""
    groups: dict[str, _LineBuilder] = {}
    projects = _project_of_sessions(items)
    for item in items:
        project = projects.get(item.session, UNKNOWN)
        for row in selection.matching_rows(item.summary, project):
            groups.setdefault(_key(by, item, row, project), _LineBuilder()).add(item, row)
    total = _LineBuilder()
    for group in groups.values():
        total.merge(group)
    lines = [group.build(key, by) for key, group in sorted(groups.items())]
    return Report(by, lines, total.build("total", by))


def _project_of_sessions(items: Iterable[TranscriptSummary]) -> dict[str, str]:
    """Return each session's project; a subagent that runs elsewhere counts with its session."""
    known: dict[str, str] = {}
    for item in sorted(items, key=lambda item: item.transcript.thread != MAIN):
        if item.summary.project:
            known.setdefault(item.session, item.summary.project)
    return known


def _key(by: GroupBy, item: TranscriptSummary, row: UsageRow, project: str) -> str:
    match by:
        case "day":
            return row.day
        case "session":
            return item.session
        case "project":
            return project
        case "model":
            return row.model or UNKNOWN


class _LineBuilder:
    """Collects the rows of a line; usage is priced by model, day and tier."""

    def __init__(self) -> None:
        self._items: dict[str, TranscriptSummary] = {}
        self._own_rows: list[UsageRow] = []
        self._billed: dict[tuple[str | None, str, int], tuple[int, Usage]] = {}

    def add(self, item: TranscriptSummary, row: UsageRow) -> None:
        self._items[item.transcript.path + (item.transcript.session or "")] = item
        if item.transcript.thread == MAIN:
            self._own_rows.append(row)
        self._bill((row.model, row.day, row.tier), row.calls, row.usage)

    def merge(self, other: "_LineBuilder") -> None:
        self._items |= other._items
        self._own_rows += other._own_rows
        for key, (calls, usage) in other._billed.items():
            self._bill(key, calls, usage)

    def _bill(self, key: tuple[str | None, str, int], calls: int, usage: Usage) -> None:
        before, used = self._billed.get(key, (0, ZERO))
        self._billed[key] = before + calls, used + usage

    def build(self, key: str, by: GroupBy) -> ReportLine:
        owners = [i for i in self._items.values() if i.transcript.thread == MAIN]
        peaks = [row.peak_sent for row in self._own_rows if row.peak_sent is not None]
        priced = [
            (calls, compute_cost(*key, usage)) for key, (calls, usage) in self._billed.items()
        ]
        known = [dollars for _, dollars in priced if dollars is not None]
        return ReportLine(
            key=key,
            agents=tuple(sorted({i.transcript.agent for i in self._items.values()})),
            sessions=len({i.session for i in self._items.values()}),
            calls=sum(calls for calls, _ in priced),
            peak_sent=max(peaks, default=None),
            end_sent=owners[0].summary.end_sent if len(owners) == 1 and by == "session" else None,
            compactions=sum(row.compactions for row in self._own_rows),
            usage=sum((usage for _, usage in self._billed.values()), ZERO),
            cost=fsum(known) if known else None,
            unpriced=sum(calls for calls, dollars in priced if dollars is None),
        )
