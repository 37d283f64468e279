"""The current context usage of every active session."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from brimline.agents import source
from brimline.events import MAIN
from brimline.survey.files import SessionFiles, find_transcripts, group_by_session
from brimline.survey.index import TranscriptIndex
from brimline.tracker import Reading, Session, Thread, read
from brimline.transcripts.source import Places
from brimline.windows import ClientSettings, Overrides

# Claude Code's name of a thread that only writes the summary of a compaction.
COMPACTION_THREAD_PREFIX = "acompact-"


class ThreadStatus(msgspec.Struct, frozen=True):
    """One thread of a session; `cycle` is None if only the end of the file was read."""

    thread: str
    model: str | None
    cycle: int | None
    reading: Reading


class SessionStatus(msgspec.Struct, frozen=True):
    """One session: its main thread and its subagents, the newest first."""

    agent: str
    session: str
    project: str | None
    modified: float
    main: ThreadStatus
    subagents: tuple[ThreadStatus, ...]

    @property
    def threads(self) -> tuple[ThreadStatus, ...]:
        return (self.main, *self.subagents)


class StatusSurvey(msgspec.Struct, frozen=True):
    """The active sessions, the number of all transcripts, and what could not be read."""

    sessions: list[SessionStatus]
    transcripts: int
    problems: list[str]


def survey_sessions(
    places: Places,
    agents: Iterable[str],
    since: float | None,
    overrides: Overrides,
    cache: Path,
) -> StatusSurvey:
    """Return every session that was active since a time, or all sessions if it is None."""
    transcripts = find_transcripts(places, agents)
    active = [
        files for files in group_by_session(transcripts) if since is None or files.modified >= since
    ]
    wanted = [transcript for files in active for transcript in files.transcripts]
    index = TranscriptIndex.load(cache)
    index.update(wanted, tails=True)
    index.save()
    sessions: list[SessionStatus] = []
    settings: dict[tuple[str, str | None], ClientSettings] = {}
    for files in active:
        glance = _session_status(files, index, places, settings, overrides)
        if glance:
            sessions.append(glance)
    return StatusSurvey(sessions, len(transcripts), index.problems)


def _session_status(
    files: SessionFiles,
    index: TranscriptIndex,
    places: Places,
    settings: dict[tuple[str, str | None], ClientSettings],
    overrides: Overrides,
) -> SessionStatus | None:
    rows: list[ThreadStatus] = []
    project: str | None = None
    for transcript in files.transcripts:
        session = index.session(transcript)
        if session is None:
            continue
        project = project or session.project
        key = (files.agent, session.project)
        if key not in settings:
            settings[key] = source(files.agent).settings(places, session.project)
        whole = index.is_fully_read(transcript)
        rows += [
            _thread_status(session, t, settings[key], overrides, whole)
            for t in _visible_threads(session)
        ]
    own = next((row for row in rows if row.thread == MAIN), None)
    others = sorted((row for row in rows if row is not own), key=_newest_first)
    if own is None:
        return None
    return SessionStatus(files.agent, files.session, project, files.modified, own, tuple(others))


def _newest_first(row: ThreadStatus) -> float:
    return -(row.reading.at or 0.0)


def _visible_threads(session: Session) -> list[Thread]:
    return [t for t in session.threads.values() if not t.name.startswith(COMPACTION_THREAD_PREFIX)]


def _thread_status(
    session: Session, thread: Thread, settings: ClientSettings, overrides: Overrides, whole: bool
) -> ThreadStatus:
    reading = read(session, thread, "transcript", overrides, settings)
    return ThreadStatus(thread.name, thread.model, thread.cycle if whole else None, reading)
