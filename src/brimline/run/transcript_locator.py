"""Find the transcript of a run, and read on in it."""

import os
from collections.abc import Iterable, Sequence

import msgspec

from brimline.agents import get_agent, source
from brimline.agents.transcripts.source import START, Cursor, Places, Transcript
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold
from brimline.run.totals import RunView
from brimline.sessions.files import READ_ERRORS

# words of a command that resumes an older session
RESUME_WORDS = frozenset(
    {"-c", "--continue", "-r", "--resume", "resume", "--last", "-s", "--session"}
)
CLOCK_SLACK_S = 0.05  # file times are of a coarser clock, and may lag by this


class RunClues(msgspec.Struct, frozen=True):
    """What is known of a run whose transcript is looked for; `since` is when it started."""

    agent: str
    places: Places
    folder: str
    since: float
    command: Sequence[str]

    def is_named(self, session: str | None) -> bool:
        """Whether the command names this session, as a word or as an option's value."""
        return session is not None and any(
            word == session or word.endswith(f"={session}") for word in self.command
        )


class TranscriptLocator:
    """Finds a run's transcript and reads on in it; `session` is its content, if found."""

    def __init__(self, clues: RunClues) -> None:
        self._clues = clues
        self._transcript: Transcript | None = None
        self._cursor: Cursor = START
        self.session: Session | None = None

    def read_new(self, session: str | None, last: bool = False) -> None:
        """Read what is new; `session` is the session's id, if known.

        The last call also reads the subagents' transcripts. Unreadable files are skipped: they may
        be half written.
        """
        try:
            if self._transcript is None:
                self._find(session)
            else:
                self._read_on()
            if last and self._transcript is not None:
                self._add_subagents(self._transcript)
        except READ_ERRORS:
            return

    def _find(self, session: str | None) -> None:
        clues = self._clues
        mains = [t for t in get_agent(clues.agent).transcripts(clues.places) if t.thread == MAIN]
        for transcript in _candidates(mains, clues, session):
            self._cursor, read = _read(transcript, START, Session(agent=clues.agent))
            if session is not None or _belongs_to_run(transcript, read, clues):
                self._transcript, self.session = transcript, read
                return

    def _read_on(self) -> None:
        if self._transcript is not None and self.session is not None:
            self._cursor, self.session = _read(self._transcript, self._cursor, self.session)

    def _add_subagents(self, own: Transcript) -> None:
        for other in get_agent(own.agent).transcripts(self._clues.places):
            if other.session == own.session and other.thread != MAIN and self.session is not None:
                _, self.session = _read(other, START, self.session)


def _candidates(
    mains: Iterable[Transcript], clues: RunClues, session: str | None
) -> Iterable[Transcript]:
    """The session of this id; else those written since the run started, newest first."""
    if session is not None:
        return [t for t in mains if t.session == session]
    fresh = [t for t in mains if t.modified >= clues.since - CLOCK_SLACK_S]
    named = [t for t in fresh if clues.is_named(t.session)]
    return named or sorted(fresh, key=lambda t: -t.modified)


def _read(transcript: Transcript, cursor: Cursor, session: Session) -> tuple[Cursor, Session]:
    reader = source(transcript.agent).read(transcript, cursor)
    project = session.project
    folded = fold(session, reader)
    if project is not None:
        folded = msgspec.structs.replace(folded, project=project)
    return reader.cursor, folded


def _belongs_to_run(transcript: Transcript, session: Session, clues: RunClues) -> bool:
    """Whether a session is in the run's folder and started with it, or is resumed by it."""
    if clues.is_named(transcript.session):
        return True
    project = transcript.project or session.project
    if project is None or os.path.realpath(project) != os.path.realpath(clues.folder):
        return False
    view = RunView(session, "transcript", clues.since)
    is_resumed = not RESUME_WORDS.isdisjoint(clues.command)
    return bool(view.calls) and (is_resumed or len(view.calls) == len(view.main.calls))
