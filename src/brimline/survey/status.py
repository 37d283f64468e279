"""A glance at every active session: what its threads hold now."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from brimline.agents import source
from brimline.events import MAIN
from brimline.survey.files import SessionFiles, sessions, transcripts
from brimline.survey.index import Knowledge
from brimline.tracker import Reading, Session, Thread, read
from brimline.transcripts.source import Places
from brimline.windows import ClientSettings, Overrides

COMPACTION_FILE = "acompact-"
"""How Claude Code names the thread in which it only writes a compaction's summary."""


class Row(msgspec.Struct, frozen=True):
    """One thread of a session; `cycle` is None where only the end of a file was read."""

    thread: str
    model: str | None
    cycle: int | None
    reading: Reading


class Glance(msgspec.Struct, frozen=True):
    """One session: its own thread, and its subagents, the latest first."""

    agent: str
    session: str
    project: str | None
    modified: float
    main: Row
    subagents: tuple[Row, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All threads."""
        return (self.main, *self.subagents)


class Found(msgspec.Struct, frozen=True):
    """The sessions, how many transcripts there are in all, and what could not be read."""

    glances: list[Glance]
    transcripts: int
    problems: list[str]


def glances(
    places: Places,
    agents: Iterable[str],
    since: float | None,
    overrides: Overrides,
    cache: Path,
) -> Found:
    """Every session that was active since then, or ever."""
    found = transcripts(places, agents)
    active = [files for files in sessions(found) if since is None or files.modified >= since]
    wanted = [transcript for files in active for transcript in files.transcripts]
    knowledge = Knowledge.of(cache)
    knowledge.learn(wanted, tails=True)
    knowledge.save()
    seen: list[Glance] = []
    settings: dict[tuple[str, str | None], ClientSettings] = {}
    for files in active:
        glance = _glance(files, knowledge, places, settings, overrides)
        if glance:
            seen.append(glance)
    return Found(seen, len(found), knowledge.problems)


def _glance(
    files: SessionFiles,
    knowledge: Knowledge,
    places: Places,
    settings: dict[tuple[str, str | None], ClientSettings],
    overrides: Overrides,
) -> Glance | None:
    rows: list[Row] = []
    project: str | None = None
    for transcript in files.transcripts:
        session = knowledge.session(transcript)
        if session is None:
            continue
        project = project or session.project
        key = (files.agent, session.project)
        if key not in settings:
            settings[key] = source(files.agent).settings(places, session.project)
        whole = knowledge.is_whole(transcript)
        rows += [_row(session, t, settings[key], overrides, whole) for t in _shown(session)]
    own = next((row for row in rows if row.thread == MAIN), None)
    others = sorted((row for row in rows if row is not own), key=_latest)
    if own is None:
        return None
    return Glance(files.agent, files.session, project, files.modified, own, tuple(others))


def _latest(row: Row) -> float:
    return -(row.reading.at or 0.0)


def _shown(session: Session) -> list[Thread]:
    return [t for t in session.threads.values() if not t.name.startswith(COMPACTION_FILE)]


def _row(
    session: Session, thread: Thread, settings: ClientSettings, overrides: Overrides, whole: bool
) -> Row:
    reading = read(session, thread, "transcript", overrides, settings)
    return Row(thread.name, thread.model, thread.cycle if whole else None, reading)
