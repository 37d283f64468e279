"""Sessions read from the agents' transcripts, for use without a daemon."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.need import assess
from brimline.context.tracker import Session
from brimline.context.usage import percent_raw
from brimline.monitor.user_rules import Rules
from brimline.sessions.files import find_session, load_session
from brimline.sessions.ledger.explain import Explanation, explain
from brimline.sessions.ledger.session_ledger import read_ledgers
from brimline.sessions.session_cost import find_session_cost
from brimline.sessions.status import SessionStatus, ThreadStatus, survey_sessions
from brimline.settings import Settings, seconds
from brimline.store.rows import CallRow, CompactionRow, SessionRow
from brimline.tui.api_types import (
    SessionDetail,
    WatchedEnd,
    WatchedNeed,
    WatchedSession,
    WatchedThread,
    WatchedTimeline,
)


class TranscriptFiles(msgspec.Struct, frozen=True):
    """The transcripts of some agents; `cache` is the folder of the transcript index."""

    places: Places
    settings: Settings
    cache: Path
    agents: Sequence[str]
    include_old: bool = False

    def read_views(self, now: float) -> list[WatchedSession]:
        """The recent sessions, or all with `include_old`; raises InvalidPolicy."""
        since = None if self.include_old else now - seconds(self.settings.since)
        overrides, rules = self.settings.overrides, Rules.of_settings(self.settings)
        budget = self.settings.budget
        survey = survey_sessions(self.places, self.agents, since, overrides, self.cache, budget)
        return [_view(status, rules, now) for status in survey.sessions]

    def read_detail(self, view: WatchedSession) -> SessionDetail:
        """A session from its whole transcript; raises UnknownSession, UnreadableTranscript."""
        files = find_session(self.places, view.session.id, [view.session.agent])
        loaded = load_session(files)
        session = loaded.session
        threads = tuple(_with_counts(thread, session) for thread in view.threads)
        row = msgspec.structs.replace(
            view.session, problem=" ".join((*loaded.problems, *loaded.damage)) or None
        )
        view = msgspec.structs.replace(view, session=row, threads=threads)
        cost = find_session_cost(loaded, self.places, self.cache).cost
        timeline = msgspec.structs.replace(build_timeline(session), cost=cost)
        return SessionDetail(view, timeline)

    def read_explanation(self, view: WatchedSession) -> Explanation:
        """What fills a session's contexts; raises UnknownSession, UnreadableTranscript."""
        files = find_session(self.places, view.session.id, [view.session.agent])
        return explain(read_ledgers(files, self.places))


def _view(status: SessionStatus, rules: Rules, now: float) -> WatchedSession:
    own, *subagents = (_thread(row, status, rules) for row in status.threads)
    session = SessionRow(
        status.session,
        status.agent,
        status.modified,
        None,
        status.project,
        own.model,
        title=status.title,
        is_fork=status.is_fork,
    )
    assessed = assess(status.need_facts(own.fullness), now)
    return WatchedSession(
        session=session,
        threads=(own, *subagents),
        levels=own.levels,
        limit_at=percent_raw(own.limit, own.window),
        calls_left=status.calls_left,
        cost=status.cost,
        need=assessed.need and WatchedNeed(assessed.need.text),
        ends=tuple(
            WatchedEnd(each.kind, each.text, each.at, each.is_urgent) for each in assessed.ends
        ),
        rank=assessed.rank,
    )


def _thread(row: ThreadStatus, status: SessionStatus, rules: Rules) -> WatchedThread:
    reading, whose = row.reading, (status.session, status.agent, row.model)
    window = reading.window.tokens if reading.window else None
    limit = reading.limit.tokens if reading.limit else None
    return WatchedThread(
        thread=row.thread,
        state=reading.state,
        source=reading.source,
        at=reading.at,
        sent=reading.sent,
        held=reading.held,
        window=window,
        window_why=reading.window.why if reading.window else None,
        limit=limit,
        limit_why=reading.limit.explanation if reading.limit else None,
        percent=reading.percent,
        percent_raw=reading.percent_raw,
        percent_of_limit=reading.percent_of_limit,
        cycle=row.cycle,
        model=row.model,
        levels=tuple(rules.marks_of(*whose, window, limit)),
        fullness=rules.fullness_of(reading, *whose),
        title=row.title,
    )


def _with_counts(thread: WatchedThread, session: Session) -> WatchedThread:
    """The thread with the counts that only the whole transcript has."""
    read = session.threads.get(thread.thread)
    if read is None:
        return thread
    counts = {"cycle": read.cycle, "calls": len(read.calls), "peak_sent": read.peak_sent}
    return msgspec.structs.replace(thread, **counts)


def build_timeline(session: Session) -> WatchedTimeline:
    calls: list[CallRow] = []
    compactions: list[CompactionRow] = []
    for name, thread in session.threads.items():
        for place, call in enumerate(thread.calls.values()):
            used = call.usage
            calls.append(
                CallRow(session.id or "", name, call.id, place, thread.cycle_of(place), used.input,
                        used.cache_read, used.cache_write, used.output, call.model, call.at,
                        used.cache_write_1h)
            )  # fmt: skip
        compactions += [
            CompactionRow(session.id or "", name, each.cycle, each.at, each.trigger, each.before,
                          each.after, each.model, session.version, each.inferred,
                          each.overflow)
            for each in thread.compactions
        ]  # fmt: skip
    return WatchedTimeline(tuple(calls), tuple(compactions))
