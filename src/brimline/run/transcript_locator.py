"""The transcript that an agent writes while it runs: which one it is, and what is new in it."""

import os
from collections.abc import Iterable, Sequence

import msgspec

from brimline.agents import source
from brimline.events import MAIN
from brimline.run.totals import Seen
from brimline.survey.files import UNREADABLE
from brimline.tracker import Session, fold
from brimline.transcripts.source import START, Cursor, Places, Transcript

GOES_ON = frozenset({"-c", "--continue", "-r", "--resume", "resume", "--last", "-s", "--session"})
"""Words by which a command goes on with an older session."""

SLACK = 0.05
"""A file's time is of a coarser clock than ours, and may be this much behind."""


class Hunt(msgspec.Struct, frozen=True):
    """Whose transcript is looked for: an agent's, in a folder, of a run that began at a time."""

    agent: str
    places: Places
    folder: str
    since: float
    command: Sequence[str]

    def names(self, session: str | None) -> bool:
        """Whether the command itself names a session, as a word or as an option's value."""
        return session is not None and any(
            word == session or word.endswith(f"={session}") for word in self.command
        )


class Follower:
    """Finds the transcript of a run and reads on in it; `session` is what it holds."""

    def __init__(self, hunt: Hunt) -> None:
        self._hunt = hunt
        self._transcript: Transcript | None = None
        self._cursor: Cursor = START
        self.session: Session | None = None

    def look(self, session: str | None, last: bool = False) -> None:
        """Read what is new; `session` is its id where that is known.

        The last look also reads the subagents' transcripts. What cannot be read tells nothing: it
        may be half written.
        """
        try:
            if self._transcript is None:
                self._find(session)
            else:
                self._read_on()
            if last and self._transcript is not None:
                self._add_subagents(self._transcript)
        except UNREADABLE:
            return

    def _find(self, session: str | None) -> None:
        hunt = self._hunt
        mains = [t for t in source(hunt.agent).transcripts(hunt.places) if t.thread == MAIN]
        for transcript in _candidates(mains, hunt, session):
            self._cursor, read = _read(transcript, START, Session(agent=hunt.agent))
            if session is not None or _is_ours(transcript, read, hunt):
                self._transcript, self.session = transcript, read
                return

    def _read_on(self) -> None:
        if self._transcript is not None and self.session is not None:
            self._cursor, self.session = _read(self._transcript, self._cursor, self.session)

    def _add_subagents(self, own: Transcript) -> None:
        for other in source(own.agent).transcripts(self._hunt.places):
            if other.session == own.session and other.thread != MAIN and self.session is not None:
                _, self.session = _read(other, START, self.session)


def _candidates(
    mains: Iterable[Transcript], hunt: Hunt, session: str | None
) -> Iterable[Transcript]:
    """The session of this id; else those written since the run began, the newest first."""
    if session is not None:
        return [t for t in mains if t.session == session]
    fresh = [t for t in mains if t.modified >= hunt.since - SLACK]
    named = [t for t in fresh if hunt.names(t.session)]
    return named or sorted(fresh, key=lambda t: -t.modified)


def _read(transcript: Transcript, cursor: Cursor, session: Session) -> tuple[Cursor, Session]:
    reader = source(transcript.agent).read(transcript, cursor)
    project = session.project
    folded = fold(session, reader)
    if project is not None:
        folded = msgspec.structs.replace(folded, project=project)
    return reader.cursor, folded


def _is_ours(transcript: Transcript, session: Session, hunt: Hunt) -> bool:
    """Whether a session runs in our folder and began with us, or is one that we go on with."""
    if hunt.names(transcript.session):
        return True
    project = transcript.project or session.project
    if project is None or os.path.realpath(project) != os.path.realpath(hunt.folder):
        return False
    seen = Seen(session, "transcript", hunt.since)
    goes_on = not GOES_ON.isdisjoint(hunt.command)
    return bool(seen.calls) and (goes_on or len(seen.calls) == len(seen.main.calls))
