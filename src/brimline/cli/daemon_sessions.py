"""What the daemon knows beyond the files: windows, limits, and sessions without a transcript.

A command asks first, reads files while the daemon answers, then waits for ANSWER_WAIT_S more.
"""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

import msgspec

from brimline.agents.transcripts.source import Tally
from brimline.cli.context import CommandContext, print_problems
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.events import MAIN
from brimline.context.need import HandoffState
from brimline.context.policy.levels import Fullness
from brimline.context.tracker import (
    Reading,
    ReadingState,
    Session,
    Thread,
    client_shows,
    compare_figures,
    fold,
)
from brimline.context.usage import percent, percent_raw
from brimline.context.window import Limit, LimitOrigin, Window, WindowOrigin, is_same_model
from brimline.errors import BrimlineError, NotRunning
from brimline.files.foreign_json import decode_items, decode_json
from brimline.files.socket_path import socket_path
from brimline.sessions.files import LoadedSession, shorten_ids
from brimline.sessions.status import SessionStatus, StatusSurvey, ThreadStatus
from brimline.store.rows import CallRow, CompactionRow, SessionRow, ThreadRow

ANSWER_WAIT_S = 0.05  # what a daemon that does not answer may cost a command

AnswerSource: TypeAlias = Literal["daemon", "files"]
T = TypeVar("T")


class KnownThread(ThreadRow, frozen=True, kw_only=True):
    """A thread as the daemon has it."""

    state: ReadingState
    window_origin: WindowOrigin | None = None
    limit_origin: LimitOrigin | None = None
    fullness: Fullness | None = None

    def reading(self, agent: str, earlier_reasoning: int = 0) -> Reading:
        """Return its reading; only a file has the tokens of earlier reasoning."""
        window = limit = None
        # What an older version has stored has no origins.
        if self.window is not None:
            window = Window(self.window, self.window_origin or "client", self.window_why or "")
        if self.limit is not None:
            limit = Limit(self.limit, self.limit_origin or "known", self.limit_why or "")
        return Reading(
            sent=self.sent,
            held=self.held,
            effective=None,
            window=window,
            limit=limit,
            percent=self.percent,
            percent_raw=self.percent_raw,
            percent_of_limit=self.percent_of_limit,
            client_shows=client_shows(agent, self.held, self.sent, window),
            source=self.source,
            at=self.at,
            state=self.state,
            cycle=self.cycle,
            pending=self.pending,
            compared=compare_figures(agent, self.sent, self.held, self.pending, earlier_reasoning),
        )

    def is_behind(self, reading: Reading) -> bool:
        """Return whether a file has what the daemon has not read yet."""
        return reading.at is not None and (self.at is None or reading.at > self.at)

    def merge(self, reading: Reading, model: str | None, agent: str) -> Reading:
        """Return the daemon's reading; if it is behind, the file's with its window and limit."""
        compared = reading.compared if reading.sent == self.sent else None
        own = self.reading(agent, compared.parts.get("earlier reasoning", 0) if compared else 0)
        if not self.is_behind(reading):
            return own
        if not is_same_model(model, self.model):
            return reading
        window = own.window.tokens if own.window else None
        limit = own.limit.tokens if own.limit else None
        return msgspec.structs.replace(
            reading,
            window=own.window,
            limit=own.limit,
            percent=percent(reading.sent, window),
            percent_raw=percent_raw(reading.sent, window),
            percent_of_limit=percent_raw(reading.compared and reading.compared.tokens, limit),
            client_shows=client_shows(agent, reading.held, reading.sent, own.window),
        )


class KnownHandoff(msgspec.Struct, frozen=True):
    """The state of a session's last handoff."""

    state: HandoffState
    calls_since: int | None = None


class KnownSession(msgspec.Struct, frozen=True):
    """A session as the daemon has it, its main thread first."""

    session: SessionRow
    threads: tuple[KnownThread, ...]
    handoff: KnownHandoff | None = None
    unread: int = 0
    undeliverable: str | None = None
    cost: float | None = None
    budget: float | None = None
    calls_left: int | None = None
    quotas: Quotas | None = None
    prompt_cache: PromptCache | None = None

    def thread(self, name: str) -> KnownThread | None:
        return next((each for each in self.threads if each.thread == name), None)

    def without_calls(self) -> Session:
        """Return the session with its threads, to which its calls can be folded."""
        row = self.session
        return Session(
            agent=row.agent,
            id=row.id,
            project=row.project,
            version=row.version,
            title=row.title,
            threads={each.thread: Thread(each.thread) for each in self.threads},
        )

    def merge(self, thread: str, model: str | None, reading: Reading) -> Reading:
        """Return the reading of a thread: the daemon's, unless a file is ahead of it."""
        known = self.thread(thread)
        return known.merge(reading, model, self.session.agent) if known else reading


class KnownStatus(ThreadStatus, frozen=True, kw_only=True):
    """A line of `status` as the daemon has it."""

    fullness: Fullness | None


class DaemonSessions(msgspec.Struct, frozen=True):
    """The sessions that the daemon knows, by agent and id; `answered_by` is files without it."""

    answered_by: AnswerSource = "files"
    by_key: Mapping[tuple[str, str], KnownSession] = MappingProxyType({})

    def get(self, agent: str | None, session: str | None) -> KnownSession | None:
        return self.by_key.get((agent or "", session or ""))


class DaemonQuestion:
    """A GET request to the daemon, which answers while the command does other work."""

    def __init__(self, context: CommandContext, path: str) -> None:
        self._pending = None
        if not socket_path(context.state, os.getuid(), "http").exists():
            return
        # Imported here: without a daemon it is not needed.
        from brimline.api.client.request import DaemonRequest

        try:
            self._pending = DaemonRequest(context.state, "GET", path, timeout_s=ANSWER_WAIT_S)
        except BrimlineError as error:
            _report(error)

    def read_items(self, kind: type[T]) -> list[T] | None:
        """Return the items of the answer that can be decoded; None without an answer.

        A daemon that is there and does not answer, or with an error, is reported.
        """
        if self._pending is None:
            return None
        try:
            items = decode_json(self._pending.read(), list[msgspec.Raw])
        except BrimlineError as error:
            _report(error)
            return None
        return decode_items(items, kind)


def _report(error: BrimlineError) -> None:
    if type(error) is not NotRunning:  # without a daemon, files alone are what is asked for
        reason = str(error).partition("\n")[0]
        print_problems([f"figures are from files alone: {reason}"])


class SessionQuestion(DaemonQuestion):
    """Asks for the sessions that were seen in a span, or all."""

    def __init__(self, context: CommandContext, since: str = "all") -> None:
        super().__init__(context, f"/v1/sessions?since={since}")

    def read(self, agents: Sequence[str] | None = None) -> DaemonSessions:
        """Return the sessions of these agents, or of all."""
        sessions = self.read_items(KnownSession)
        if sessions is None:
            return DaemonSessions()
        return DaemonSessions(
            "daemon",
            {
                (each.session.agent, each.session.id): each
                for each in sessions
                if each.threads and (agents is None or each.session.agent in agents)
            },
        )


def merge_survey(survey: StatusSurvey, known: DaemonSessions) -> list[SessionStatus]:
    """Return the sessions of files and daemon, each once."""
    files = {(each.agent, each.session): each for each in survey.sessions}
    short_ids = shorten_ids([*survey.ids, *(session for _, session in known.by_key)])
    merged = [
        _merge_session(files[key], session) if key in files else _session_status(session)
        for key, session in known.by_key.items()
    ]
    merged += [each for key, each in files.items() if key not in known.by_key]
    return [msgspec.structs.replace(each, short_id=short_ids[each.session]) for each in merged]


def _session_status(known: KnownSession) -> SessionStatus:
    row = known.session
    main = known.thread(MAIN) or known.threads[0]
    return SessionStatus(
        row.agent,
        row.id,
        row.id,
        row.project,
        row.title,
        row.seen_at,
        _thread_status(main, row.agent),
        tuple(_thread_status(each, row.agent) for each in known.threads if each is not main),
        calls_left=known.calls_left,
        quotas=known.quotas,
        prompt_cache=known.prompt_cache,
        handoff=known.handoff and known.handoff.state,
        calls_since_handoff=known.handoff and known.handoff.calls_since,
        unread=known.unread,
        undeliverable=known.undeliverable,
        cost=known.cost,
        budget=known.budget,
        has_ended=row.has_ended,
        continued_as=row.continued_as,
        is_fork=row.is_fork,
    )


def _merge_session(files: SessionStatus, known: KnownSession) -> SessionStatus:
    own = _session_status(known)
    ahead = {
        row.thread: _thread_ahead(row, known)
        for row in files.threads
        if (thread := known.thread(row.thread)) is None or thread.is_behind(row.reading)
    }
    threads = {row.thread: row for row in own.subagents} | ahead
    threads.pop(own.main.thread, None)
    return msgspec.structs.replace(
        own,
        project=own.project or files.project,
        title=own.title or files.title,
        cost=files.cost if own.cost is None else own.cost,
        kept_part=files.kept_part,
        modified=max(own.modified, files.modified),
        main=ahead.get(own.main.thread, own.main),
        subagents=tuple(
            sorted(threads.values(), key=lambda row: row.reading.at or 0.0, reverse=True)
        ),
    )


def _thread_ahead(row: ThreadStatus, known: KnownSession) -> ThreadStatus:
    """Return a thread that the daemon has not read to its end, with its window and limit."""
    return msgspec.structs.replace(row, reading=known.merge(row.thread, row.model, row.reading))


def _thread_status(known: KnownThread, agent: str) -> KnownStatus:
    reading = known.reading(agent)
    return KnownStatus(
        known.thread,
        known.model,
        known.cycle,
        reading,
        known.title,
        loop=known.loop,
        kept=known.kept,
        fullness=known.fullness,
    )


class _StoredTimeline(msgspec.Struct, frozen=True):
    calls: list[CallRow]
    compactions: list[CompactionRow]


def load_stored_session(context: CommandContext, known: KnownSession) -> LoadedSession:
    """Return a session from the calls that the daemon has stored; raises NotRunning."""
    # Imported here, as only these sessions need them.
    from brimline.api.client.request import DaemonRequest, session_path
    from brimline.monitor.restore import replay_rows

    path = session_path(known.session.id, "/timeline")
    timeline = decode_json(DaemonRequest(context.state, "GET", path).read(), _StoredTimeline)
    events = replay_rows(timeline.calls, timeline.compactions, known.threads)
    return LoadedSession(fold(known.without_calls(), events), Tally())


def has_lost_calls(session: Session, known: KnownSession) -> bool:
    """Return whether the daemon has calls of the main thread that the files do not have."""
    stored, read = known.thread(MAIN), session.threads.get(MAIN)
    return stored is not None and stored.calls > (len(read.calls) if read else 0)
