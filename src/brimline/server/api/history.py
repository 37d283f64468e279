"""The history: usage by day and session, and where each model was compacted."""

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median_low

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents import agent_names
from brimline.server.api.openapi import Endpoint
from brimline.server.api.responses import json_response, read_since
from brimline.store.base import Store
from brimline.store.rows import CompactionRow, SessionRow
from brimline.survey.files import find_transcripts
from brimline.survey.index import TranscriptIndex
from brimline.survey.report import (
    ReportFilter,
    ReportLine,
    TranscriptSummary,
    build_report,
    summaries,
)
from brimline.survey.summary import FileSummary, day_of
from brimline.transcripts.source import Places

DEFAULT_SINCE = "30d"
MAX_AGE_S = 30.0  # the files are read again after this


class DayUsage(msgspec.Struct, frozen=True):
    """The tokens of all calls of a day."""

    input: int
    cache_read: int
    cache_write: int
    output: int


class Day(msgspec.Struct, frozen=True):
    """One day of the report."""

    day: str
    sessions: int
    calls: int
    peak_sent: int | None
    compactions: int
    usage: DayUsage
    cost: float | None


class PastSession(msgspec.Struct, frozen=True):
    """One session of the report."""

    session: str
    agent: str
    project: str | None
    model: str | None
    first: float | None
    last: float | None
    calls: int
    peak_sent: int | None
    compactions: int
    cost: float | None


class LearnedLimit(msgspec.Struct, frozen=True):
    """The compactions of one model on one version of a client."""

    agent: str
    model: str | None
    version: str | None
    compactions: int
    auto: int
    lowest: int | None
    median: int | None
    highest: int | None


class History(msgspec.Struct, frozen=True):
    """Usage by day and session from the transcripts, and limits observed at compactions."""

    days: list[Day]
    limits: list[LearnedLimit]
    sessions: list[PastSession]


class HistoryRoutes:
    """The route of the history; `read` reads the transcripts in a thread."""

    endpoints = (
        Endpoint("GET", "/v1/history", "history",
                 "Get usage by day and session, and observed limits.", History, query=("since",)),
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        read: Callable[[], list[TranscriptSummary]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._read_all = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read: tuple[float, list[TranscriptSummary]] = (0.0, [])

    async def history(self, request: Request) -> Response:
        chosen = ReportFilter(day_of(read_since(request, DEFAULT_SINCE, self._clock())))
        found = await self._items()
        days = [_day(line) for line in build_report(found, "day", chosen).lines]
        sessions = _sessions(found, build_report(found, "session", chosen).lines)
        limits = _limits(await self._store.compactions(), await self._store.sessions())
        return json_response(History(days, limits, sessions))

    async def _items(self) -> list[TranscriptSummary]:
        async with self._lock:
            at, found = self._read
            if self._clock() - at > MAX_AGE_S:
                found = await asyncio.to_thread(self._read_all)
                self._read = self._clock(), found
            return found


def read_history(places: Places, cache: Path) -> list[TranscriptSummary]:
    """Read all transcripts on this machine, with the index in the cache folder."""
    found = find_transcripts(places)
    index = TranscriptIndex.load(cache)
    index.update(found)
    index.dedupe_calls(found, agent_names())
    index.save()
    return summaries(index, found)


def _day(line: ReportLine) -> Day:
    used = line.usage
    usage = DayUsage(used.input, used.cache_read, used.cache_write, used.output)
    return Day(
        line.key, line.sessions, line.calls, line.peak_sent, line.compactions, usage, line.cost
    )


def _sessions(found: Iterable[TranscriptSummary], lines: Iterable[ReportLine]) -> list[PastSession]:
    about = {item.session: item.summary for item in found if item.transcript.thread == "main"}
    sessions = [_past(line, about) for line in lines]
    return sorted(sessions, key=lambda past: past.last or 0.0, reverse=True)


def _past(line: ReportLine, about: dict[str, FileSummary]) -> PastSession:
    summary = about.get(line.key)
    return PastSession(
        session=line.key,
        agent=line.agents[0],
        project=summary.project if summary else None,
        model=summary.model if summary else None,
        first=summary.first if summary else None,
        last=summary.last if summary else None,
        calls=line.calls,
        peak_sent=line.peak_sent,
        compactions=line.compactions,
        cost=line.cost,
    )


def _limits(rows: Iterable[CompactionRow], sessions: Iterable[SessionRow]) -> list[LearnedLimit]:
    agents = {session.id: session.agent for session in sessions}
    groups: dict[tuple[str, str | None, str | None], list[CompactionRow]] = {}
    for row in rows:
        if row.session in agents:
            groups.setdefault((agents[row.session], row.model, row.version), []).append(row)
    return [_learned(*key, group) for key, group in sorted(groups.items(), key=str)]


def _learned(
    agent: str, model: str | None, version: str | None, rows: list[CompactionRow]
) -> LearnedLimit:
    auto = [row for row in rows if row.trigger == "auto"]
    before = [row.before for row in auto if row.before is not None]
    return LearnedLimit(
        agent=agent,
        model=model,
        version=version,
        compactions=len(rows),
        auto=len(auto),
        lowest=min(before, default=None),
        median=median_low(before) if before else None,
        highest=max(before, default=None),
    )
