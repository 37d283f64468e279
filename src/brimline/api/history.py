"""The history: usage by day and session, and where each model was compacted."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache
from pathlib import Path
from statistics import median_low
from typing import TypeAlias, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Places, Transcript
from brimline.api.openapi import Endpoint
from brimline.api.request_limits import TimeSlice
from brimline.api.responses import json_response, read_choice, read_since
from brimline.context.prices import UNKNOWN_DAY, day_of
from brimline.context.tracker import Session, fold
from brimline.context.window import (
    NO_CLIENT_SETTINGS,
    ClientSettings,
    ResolveContext,
    SeenCompaction,
    expect_limit,
    find_drifts,
    is_same_model,
    window_of,
)
from brimline.install.setting_check import SettingChecks
from brimline.monitor.restore import replay_rows
from brimline.sessions.files import find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.report import (
    MissTotal,
    Part,
    Period,
    ReportFilter,
    ReportLine,
    TranscriptSummary,
    build_report,
    periods_between,
    split_report,
    summaries,
)
from brimline.sessions.summary import summarise
from brimline.store.base import Store
from brimline.store.rows import CompactionRow, SessionRow, ThreadRow

DEFAULT_SINCE = "30d"
PERIODS: tuple[Period, ...] = get_args(Period)
SPLITS: tuple[Part, ...] = get_args(Part)
NO_MISSES = MissTotal(0, 0, 0.0)
MAX_AGE_S = 30.0  # the files are read again after this


class DayUsage(msgspec.Struct, frozen=True):
    """The tokens of all calls of a day."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    cache_write_1h: int


class Day(msgspec.Struct, frozen=True):
    """One day of the report."""

    day: str
    sessions: int
    calls: int
    peak_sent: int | None
    compactions: int
    usage: DayUsage
    cost: float | None
    misses: MissTotal


class Split(msgspec.Struct, frozen=True):
    """The part of one project, branch, model or agent, by its name, or the total."""

    key: str
    sessions: int
    calls: int
    compactions: int
    sent: int
    output: int
    cost: float | None
    misses: MissTotal


class HistoryPeriod(msgspec.Struct, frozen=True):
    """One day, week or month: its total, and the part of each project, branch, model or agent."""

    key: str
    total: Split
    peak_sent: int | None
    parts: list[Split]


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
    title: str | None


class LearnedLimit(msgspec.Struct, frozen=True):
    """The compactions of one model on one version of a client.

    `drift` says that it compacts elsewhere than expected, None if it does not.
    """

    agent: str
    model: str | None
    version: str | None
    compactions: int
    auto: int
    lowest: int | None
    median: int | None
    highest: int | None
    drift: str | None = None


class History(msgspec.Struct, frozen=True):
    """Usage from transcripts and of sessions without one, and limits observed at compactions.

    `compact_at` says whether clients heed the settings that `compact-at` wrote. `projects`,
    `branches`, `models` and `agents` are sorted by cost, the highest first.
    """

    days: list[Day]
    limits: list[LearnedLimit]
    compact_at: SettingChecks
    sessions: list[PastSession]
    total: Split
    projects: list[Split]
    branches: list[Split]
    models: list[Split]
    agents: list[Split]


SettingsReader: TypeAlias = Callable[[str, str | None], ClientSettings]  # of agent and project


def _no_settings(agent: str, project: str | None) -> ClientSettings:
    return NO_CLIENT_SETTINGS


class StoredSummaries:
    """Totals of sessions that only the store has, computed again only after a session changed.

    Programs and telemetry report them, or their transcripts were removed since.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, TranscriptSummary]] = {}

    async def read(self, recorded: Set[str]) -> list[TranscriptSummary]:
        """Return the totals of all sessions but those that have a transcript."""
        marks = {id: mark for mark, id in await self._store.changes() if id not in recorded}
        known = {id: each for id, each in self._known.items() if marks.get(id) == each[0]}
        time_slice = TimeSlice()
        for id in marks.keys() - known.keys():
            row = await self._store.session(id)
            if row is not None:
                known[id] = marks[id], await self._summarise(row)
            await time_slice.pause_if_over()
        self._known = known
        return [summary for _, summary in known.values() if summary.summary.rows]

    async def _summarise(self, row: SessionRow) -> TranscriptSummary:
        calls = await self._store.calls(row.id)
        compactions = await self._store.compactions(row.id)
        threads = await self._store.threads(row.id)
        session = Session(
            agent=row.agent, id=row.id, project=row.project, version=row.version, title=row.title
        )
        folded = fold(session, replay_rows(calls, compactions, threads))
        copies = [row.call for row in calls if not row.counted and not row.is_spending]
        summary = summarise(folded, frozenset(copies))
        return TranscriptSummary(
            Transcript(row.agent, "", row.seen_at, 0, session=row.id),
            msgspec.structs.replace(summary, ids=b"", shared=b""),
        )


class HistoryRoutes:
    """The routes of the history.

    `read` reads the transcripts, `find_recorded` returns the sessions that have one, `settings`
    reads those of a client, `check_settings` checks what `compact-at` wrote; all run in a thread.
    """

    endpoints = (
        Endpoint("GET", "/v1/history", "history",
                 "Get usage by day and session, and observed limits.", History, query=("since",)),
        Endpoint("GET", "/v1/history/periods", "periods",
                 "Get usage by day, week or month (per), and the parts of each (by).",
                 list[HistoryPeriod], query=("since", "per", "by")),
        Endpoint("GET", "/v1/history/stored", "stored",
                 "Get the usage of sessions without a transcript.", list[TranscriptSummary]),
        Endpoint("GET", "/v1/limits", "limits",
                 "List where clients have compacted, and where they were not expected to.",
                 list[LearnedLimit]),
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        read: Callable[[], list[TranscriptSummary]],
        find_recorded: Callable[[], set[str]],
        clock: Callable[[], float] = time.time,
        settings: SettingsReader = _no_settings,
        check_settings: Callable[[], SettingChecks] = SettingChecks,
    ) -> None:
        self._store, self._read, self._clock = store, read, clock
        self._find_recorded = find_recorded
        self._stored = StoredSummaries(store)
        self._settings, self._check_settings = settings, check_settings
        self._lock = asyncio.Lock()
        self._read_at = 0.0
        self._transcripts: list[TranscriptSummary] = []

    async def history(self, request: Request) -> Response:
        chosen = self._read_filter(request)
        transcripts = await self._read_summaries()
        by_day = build_report(transcripts, "day", chosen)
        days = [_day(line) for line in by_day.lines]
        by_session = build_report(transcripts, "session", chosen)
        sessions = [_past_session(line) for line in by_session.lines]
        sessions.sort(key=lambda past: past.last or 0.0, reverse=True)
        limits = await self._limits()
        splits = (
            [_split(line) for line in build_report(transcripts, by, chosen, "cost").lines]
            for by in SPLITS
        )
        checks = await asyncio.to_thread(self._check_settings)
        total = _split(by_day.total)
        return json_response(History(days, limits, checks, sessions, total, *splits))

    async def periods(self, request: Request) -> Response:
        """Return every period from the first one that was used up to now, also empty ones."""
        period: Period = read_choice(request, "per", PERIODS)
        by: Part = read_choice(request, "by", SPLITS)
        chosen = self._read_filter(request)
        transcripts = await self._read_summaries()
        parts = split_report(transcripts, period, by, chosen)
        lines = {line.key: line for line in build_report(transcripts, period, chosen).lines}
        used_days = [line.key for line in build_report(transcripts, "day", chosen).lines]
        days = [day for day in used_days if day != UNKNOWN_DAY]
        keys = periods_between(period, days[0], day_of(self._clock())) if days else []
        return json_response(
            [
                _history_period(key, lines.get(key), parts.get(key, []))
                for key in dict.fromkeys([*keys, *lines])
            ]
        )

    def _read_filter(self, request: Request) -> ReportFilter:
        return ReportFilter(day_of(read_since(request, DEFAULT_SINCE, self._clock())))

    async def _read_summaries(self) -> list[TranscriptSummary]:
        """Return the totals of all sessions, from files that were read within MAX_AGE_S."""
        async with self._lock:
            if self._clock() - self._read_at > MAX_AGE_S:
                self._transcripts = await asyncio.to_thread(self._read)
                self._read_at = self._clock()
        recorded = {item.session for item in self._transcripts}
        return [*self._transcripts, *await self._stored.read(recorded)]

    async def stored(self, request: Request) -> Response:
        recorded = await asyncio.to_thread(self._find_recorded)
        return json_response(await self._stored.read(recorded))

    async def limits(self, request: Request) -> Response:
        return json_response(await self._limits())

    async def _limits(self) -> list[LearnedLimit]:
        rows, sessions = await self._store.compactions(), await self._store.sessions()
        threads = await self._store.threads()
        return await asyncio.to_thread(_learned_limits, rows, sessions, threads, self._settings)


def find_recorded(places: Places) -> set[str]:
    """Return the sessions that have a transcript on this machine."""
    return {each.session for each in find_transcripts(places) if each.session is not None}


def read_history(places: Places, cache: Path) -> list[TranscriptSummary]:
    """Read all transcripts on this machine, with the index in the cache folder."""
    transcripts = find_transcripts(places)
    index = TranscriptIndex.load(cache)
    index.update(transcripts)
    index.dedupe_calls(transcripts, agent_names())
    index.save()
    return summaries(index, transcripts)


def _day(line: ReportLine) -> Day:
    usage = msgspec.convert(line.usage, DayUsage, from_attributes=True)
    return Day(
        day=line.key,
        sessions=line.sessions,
        calls=line.calls,
        peak_sent=line.peak_sent,
        compactions=line.compactions,
        usage=usage,
        cost=line.cost,
        misses=line.misses,
    )


def _split(line: ReportLine) -> Split:
    return Split(
        key=line.key,
        sessions=line.sessions,
        calls=line.calls,
        compactions=line.compactions,
        sent=line.usage.sent,
        output=line.usage.output,
        cost=line.cost,
        misses=line.misses,
    )


def _history_period(key: str, line: ReportLine | None, parts: list[ReportLine]) -> HistoryPeriod:
    if line is None:
        return HistoryPeriod(key, Split(key, 0, 0, 0, 0, 0, 0.0, NO_MISSES), None, [])
    return HistoryPeriod(key, _split(line), line.peak_sent, [_split(part) for part in parts])


def _past_session(line: ReportLine) -> PastSession:
    facts = line.session
    return PastSession(
        session=line.key,
        agent=line.agents[0],
        project=facts.project if facts else None,
        model=facts.model if facts else None,
        first=facts.first if facts else None,
        last=facts.last if facts else None,
        calls=line.calls,
        peak_sent=line.peak_sent,
        compactions=line.compactions,
        cost=line.cost,
        title=facts.title if facts else None,
    )


def _learned_limits(
    rows: Iterable[CompactionRow],
    sessions: Iterable[SessionRow],
    threads: Iterable[ThreadRow],
    settings: SettingsReader,
) -> list[LearnedLimit]:
    by_id = {session.id: session for session in sessions}
    of_sessions = [(row, by_id[row.session]) for row in rows if row.session in by_id]
    groups: dict[tuple[str, str | None, str | None], list[CompactionRow]] = {}
    for row, session in of_sessions:
        groups.setdefault((session.agent, row.model, row.version), []).append(row)
    seen = _seen_compactions(of_sessions, threads, settings)
    drifts: dict[tuple[str, str | None, str | None], str] = {
        (each.agent, each.model, each.version): each.text for each in find_drifts(seen)
    }
    return [
        _learned_limit(*key, group, drifts.get(key))
        for key, group in sorted(groups.items(), key=str)
    ]


def _seen_compactions(
    rows: Iterable[tuple[CompactionRow, SessionRow]],
    threads: Iterable[ThreadRow],
    read_settings: SettingsReader,
) -> Iterator[SeenCompaction]:
    """Yield the automatic compactions, each with the limit of its thread's window."""
    by_name = {(thread.session, thread.thread): thread for thread in threads}
    settings = cache(read_settings)
    for row, session in rows:
        version, at, tokens = row.version, row.at, row.before
        if row.trigger != "auto" or row.overflow or not version or not at or not tokens:
            continue
        thread = by_name.get((row.session, row.thread))
        is_same = thread is not None and is_same_model(thread.model, row.model)
        known = ResolveContext(
            agent=session.agent,
            model=row.model,
            version=version,
            reported=thread.window if thread and is_same else None,
            settings=settings(session.agent, session.project),
        )
        if expected := expect_limit(known, window_of(known)):
            yield SeenCompaction(session.agent, row.model, version, at, tokens, expected)


def _learned_limit(
    agent: str,
    model: str | None,
    version: str | None,
    rows: list[CompactionRow],
    drift: str | None,
) -> LearnedLimit:
    auto = [row for row in rows if row.trigger == "auto"]
    before = [row.before for row in auto if row.before is not None and not row.overflow]
    return LearnedLimit(
        agent=agent,
        model=model,
        version=version,
        compactions=len(rows),
        auto=len(auto),
        lowest=min(before, default=None),
        median=median_low(before) if before else None,
        highest=max(before, default=None),
        drift=drift,
    )
