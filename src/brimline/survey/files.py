"""The transcripts on this machine, and the sessions that they belong to."""

from collections.abc import Iterable

import msgspec

from brimline.agents import AGENTS, present, source
from brimline.errors import UnknownSession, UnreadableTranscript, UnrecognisedFormat
from brimline.events import MAIN
from brimline.tracker import Session, fold
from brimline.transcripts.source import START, Form, Places, Tally, Transcript

HEAD = 64 << 10
"""How much of a file is looked at to tell whose it is."""


UNREADABLE = (UnreadableTranscript, OSError)
"""What reading a transcript may end with."""


def problem(transcript: Transcript, error: Exception) -> str:
    """Why a transcript could not be read, in a line."""
    if isinstance(error, OSError):
        return f"cannot read {transcript.path}: {error.strerror or error}"
    return str(error)


class SessionFiles(msgspec.Struct, frozen=True):
    """The transcripts of one session, its own first; `session` is empty where records tell it."""

    agent: str
    session: str
    transcripts: tuple[Transcript, ...]

    @property
    def modified(self) -> float:
        """When the newest was last written."""
        return max(transcript.modified for transcript in self.transcripts)


class Folded(msgspec.Struct, frozen=True):
    """A session that was read whole, what was read of it, and what could not be."""

    session: Session
    tally: Tally
    problems: tuple[str, ...] = ()


def transcripts(places: Places, agents: Iterable[str] = AGENTS) -> list[Transcript]:
    """Every transcript of these agents."""
    here = present(places)
    return [t for agent in agents if agent in here for t in source(agent).transcripts(places)]


def sessions(found: Iterable[Transcript]) -> list[SessionFiles]:
    """The transcripts by session; one that does not tell its session stands for itself."""
    groups: dict[tuple[str, str], list[Transcript]] = {}
    for transcript in found:
        session = transcript.session or transcript.path
        groups.setdefault((transcript.agent, session), []).append(transcript)
    return [
        SessionFiles(agent, session, tuple(sorted(group, key=lambda t: (t.thread != MAIN, t.path))))
        for (agent, session), group in groups.items()
    ]


def whole(files: SessionFiles) -> Folded:
    """A session read from the beginning, with its subagents; unreadable files are told."""
    session = Session(agent=files.agent)
    tally = Tally()
    problems: list[str] = []
    for transcript in files.transcripts:
        try:
            reader = source(files.agent).read(transcript, START)
            folded = fold(session, reader)
        except UNREADABLE as error:
            problems.append(problem(transcript, error))
            continue
        project = session.project or folded.project
        session = msgspec.structs.replace(folded, project=project)
        add(tally, reader.tally)
    named = msgspec.structs.replace(session, id=files.session) if files.session else session
    return Folded(named, tally, tuple(problems))


def add(tally: Tally, other: Tally) -> None:
    """Add one tally to another."""
    tally.records += other.records
    tally.unknown += other.unknown
    for place in other.places:
        tally.add_malformed(place)
    tally.malformed += other.malformed - len(other.places)


def by_id(places: Places, name: str, agents: Iterable[str] = AGENTS) -> SessionFiles:
    """The session with this id, or the only one whose id begins so."""
    found = sessions(transcripts(places, agents))
    exact = [files for files in found if files.session == name]
    fitting = exact or [files for files in found if files.session.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    raise UnknownSession(name, sorted(f"{f.session} ({f.agent})" for f in fitting)[:5])


def recognise(head: bytes, place: str) -> tuple[str, Form]:
    """Whose file or stream begins like this, and which of the two it is."""
    for agent in AGENTS:
        if form := source(agent).recognise(head):
            return agent, form
    raise UnrecognisedFormat(place, AGENTS)
