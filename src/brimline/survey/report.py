"""What the sessions on a machine add up to, by day, session, project or model."""

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Literal, TypeAlias

import msgspec

from brimline.events import MAIN
from brimline.prices import cost
from brimline.survey.index import Knowledge
from brimline.survey.summary import Row, Summary
from brimline.transcripts.source import Transcript
from brimline.usage import ZERO, Usage

By: TypeAlias = Literal["day", "session", "project", "model"]
UNKNOWN = "unknown"


class Item(msgspec.Struct, frozen=True):
    """A transcript and what it adds up to."""

    transcript: Transcript
    summary: Summary

    @property
    def session(self) -> str:
        """The session that it belongs to."""
        return self.transcript.session or self.summary.session or self.transcript.path


class Line(msgspec.Struct, frozen=True):
    """A line of the report. `cost` is an estimate in dollars, None where a price is not known.

    `end_sent` is what the last call sent, on the line of a session.
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
    """The lines and their total."""

    by: By
    lines: list[Line]
    total: Line


class Filter(msgspec.Struct, frozen=True):
    """Which sessions count: from a day on, of a project whose path contains a text."""

    first_day: str | None = None
    project: str | None = None

    def rows(self, summary: Summary, project: str) -> list[Row]:
        """The rows of a transcript that count, in a session of this project."""
        if self.project is not None and self.project not in project:
            return []
        return [row for row in summary.rows if self.first_day is None or row.day >= self.first_day]


def items(knowledge: Knowledge, transcripts: Iterable[Transcript]) -> list[Item]:
    """The transcripts of which something is known."""
    found = ((transcript, knowledge.summary(transcript)) for transcript in transcripts)
    return [Item(transcript, summary) for transcript, summary in found if summary is not None]


def report(found: Sequence[Item], by: By, chosen: Filter) -> Report:
    """The lines of a report, in the order of their keys."""
    groups: dict[str, _Sum] = {}
    projects = _projects(found)
    for item in found:
        project = projects.get(item.session, UNKNOWN)
        for row in chosen.rows(item.summary, project):
            groups.setdefault(_key(by, item, row, project), _Sum()).add(item, row)
    total = _Sum()
    for group in groups.values():
        total.include(group)
    lines = [group.line(key, by) for key, group in sorted(groups.items())]
    return Report(by, lines, total.line("total", by))


def _projects(found: Iterable[Item]) -> dict[str, str]:
    """The project of each session: its own thread's; a subagent elsewhere counts with it."""
    known: dict[str, str] = {}
    for item in sorted(found, key=lambda item: item.transcript.thread != MAIN):
        if item.summary.project:
            known.setdefault(item.session, item.summary.project)
    return known


def _key(by: By, item: Item, row: Row, project: str) -> str:
    match by:
        case "day":
            return row.day
        case "session":
            return item.session
        case "project":
            return project
        case "model":
            return row.model or UNKNOWN


class _Sum:
    """A line while rows are added to it: each is billed with those of its model, day and tier."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._own_rows: list[Row] = []
        self._billed: dict[tuple[str | None, str, int], tuple[int, Usage]] = {}

    def add(self, item: Item, row: Row) -> None:
        """Add a row of an item."""
        self._items[item.transcript.path + (item.transcript.session or "")] = item
        if item.transcript.thread == MAIN:
            self._own_rows.append(row)
        self._bill((row.model, row.day, row.tier), row.calls, row.usage)

    def include(self, other: "_Sum") -> None:
        """Add all that another line has."""
        self._items |= other._items
        self._own_rows += other._own_rows
        for key, (calls, usage) in other._billed.items():
            self._bill(key, calls, usage)

    def _bill(self, key: tuple[str | None, str, int], calls: int, usage: Usage) -> None:
        before, used = self._billed.get(key, (0, ZERO))
        self._billed[key] = before + calls, used + usage

    def line(self, key: str, by: By) -> Line:
        """The line."""
        owners = [i for i in self._items.values() if i.transcript.thread == MAIN]
        peaks = [row.peak_sent for row in self._own_rows if row.peak_sent is not None]
        priced = [(calls, cost(*key, usage)) for key, (calls, usage) in self._billed.items()]
        known = [dollars for _, dollars in priced if dollars is not None]
        return Line(
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
