"""Find transcripts and the sessions that they belong to."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from brimline.agents import agent_names, agents_present, display_name, get_agent, source
from brimline.agents.transcripts.source import (
    START,
    Form,
    Lookalike,
    Places,
    Tally,
    Transcript,
    to_text,
)
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold, merge_sessions
from brimline.context.tracker.session_fold import shorten_title
from brimline.errors import UnknownSession, UnreadableTranscript, UnrecognisedFormat
from brimline.sessions.format_drift import describe_damage, describe_drift, find_drift

HEAD_BYTES = 64 << 10  # enough of a file to detect its agent
MIN_SHORT_ID_CHARS = 8
READ_ERRORS = (UnreadableTranscript, OSError)

PROMPT_SEARCH_BYTES = 256 << 10  # a first prompt that begins later is not looked for


def describe_read_error(transcript: Transcript, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot read {transcript.path}: {error.strerror or error}"
    return str(error)


class SessionFiles(msgspec.Struct, frozen=True):
    """The transcripts of one session, its main one first.

    `session` is empty if the id is only inside the records.
    """

    agent: str
    session: str
    transcripts: tuple[Transcript, ...]

    @property
    def modified(self) -> float:
        return max(transcript.modified for transcript in self.transcripts)


class LoadedSession(msgspec.Struct, frozen=True):
    """A session that was read from the beginning, with counts and problems of the reading.

    `damage` names the files with malformed records, which `tally` counts. `parts` are
    what its files contain, `paths` the files; none if it is a stream. `main` is the transcript of
    its main thread.
    """

    session: Session
    tally: Tally
    problems: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    parts: tuple[Session, ...] = ()
    paths: tuple[str, ...] = ()
    main: Transcript | None = None


def find_transcripts(places: Places, agents: Iterable[str] | None = None) -> list[Transcript]:
    """Return the transcripts of these agents, or of all."""
    named, here = agent_names() if agents is None else agents, agents_present(places)
    return [t for agent in named if agent in here for t in get_agent(agent).transcripts(places)]


def group_by_session(transcripts: Iterable[Transcript]) -> list[SessionFiles]:
    """Group transcripts by session; one without a session id is a session of its own."""
    groups: dict[tuple[str, str], list[Transcript]] = {}
    for transcript in transcripts:
        session = transcript.session or to_text(transcript.path)
        groups.setdefault((transcript.agent, session), []).append(transcript)
    return [
        SessionFiles(agent, session, tuple(sorted(group, key=lambda t: (t.thread != MAIN, t.path))))
        for (agent, session), group in groups.items()
    ]


def load_session(files: SessionFiles) -> LoadedSession:
    """Read a session and its subagents; unreadable files become problems."""
    parts: list[tuple[Transcript, Session]] = []
    tally = Tally()
    problems: list[str] = []
    damage: list[str] = []
    for transcript in files.transcripts:
        try:
            reader = source(files.agent).read(transcript, START)
            folded = fold(Session(agent=files.agent), reader)
            parts.append((transcript, with_title(folded, transcript)))
        except READ_ERRORS as error:
            problems.append(describe_read_error(transcript, error))
            continue
        tally.add(reader.tally)
        if drift := find_drift(transcript, parts[-1][1], reader.tally):
            problems.append(describe_drift(files.agent, [drift]))
        if damaged := describe_damage(transcript, parts[-1][1], reader.tally):
            damage.append(damaged)
    session = merge_transcripts(files.agent, parts)
    named = msgspec.structs.replace(session, id=files.session) if files.session else session
    paths = tuple(transcript.path for transcript in files.transcripts)
    sessions = tuple(part for _, part in parts)
    mains = [transcript for transcript, part in parts if MAIN in part.threads]
    main = max(mains, key=lambda transcript: transcript.modified, default=None)
    return LoadedSession(named, tally, tuple(problems), tuple(damage), sessions, paths, main)


def merge_transcripts(agent: str, parts: Iterable[tuple[Transcript, Session]]) -> Session:
    """Return the session that its transcripts contain; of two with one thread, the newer counts."""
    ordered = sorted(parts, key=lambda part: (part[0].thread == MAIN, part[0].modified))
    session = merge_sessions([Session(agent=agent), *(session for _, session in ordered)])
    folders = (transcript.project for transcript, _ in ordered if transcript.project)
    return msgspec.structs.replace(session, project=session.project or next(folders, None))


def find_session(places: Places, name: str, agents: Iterable[str] | None = None) -> SessionFiles:
    """Return the session with this id, or the only one whose id starts with it.

    Raises UnknownSession if there is none, or more than one.
    """
    sessions = group_by_session(find_transcripts(places, agents))
    exact = [files for files in sessions if files.session == name]
    matches = exact or [files for files in sessions if files.session.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    raise UnknownSession(name, sorted(f"{f.session} ({f.agent})" for f in matches)[:5])


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each id that no other id has, of at least MIN_SHORT_ID_CHARS.

    The ids of Codex and opencode begin with the time: eight characters are not always enough.
    """
    ordered = sorted(set(ids))
    return {
        id: id[: max(MIN_SHORT_ID_CHARS, most + 1)]
        for id, most in zip(ordered, _most_shared(ordered), strict=True)
    }


def shorten_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return the end of each path that no other path has, in whole folders: `cli`, `a/web`."""
    ordered = sorted(path[::-1] for path in set(paths))
    ends: dict[str, str] = {}
    for turned, most in zip(ordered, _most_shared(ordered), strict=True):
        path = turned[::-1]
        before = max(path.rfind(separator, 0, len(path) - most) for separator in "/\\")
        ends[path] = path[before + 1 :]
    return ends


def _most_shared(ordered: Sequence[str]) -> list[int]:
    """Return how many characters each text begins with in common with any other."""
    shared = [_shared_chars(*pair) for pair in pairwise(ordered)]
    return list(map(max, [0, *shared], [*shared, 0]))[: len(ordered)]


def _shared_chars(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def detect_agent(head: bytes, place: str) -> tuple[str, Form]:
    """Return the agent whose file or stream starts like this, and which of the two it is.

    Raises UnrecognisedFormat, which says what it resembles.
    """
    resembles: str | None = None
    for agent in agent_names():
        match = get_agent(agent).recognise(head)
        if isinstance(match, Lookalike):
            resembles = f"{display_name(agent)}'s {match.form}, but {match.doubt}"
        elif match is not None:
            return agent, match
    raise UnrecognisedFormat(place, agent_names(), resembles)


def with_title(session: Session, transcript: Transcript, read_from: int = 0) -> Session:
    """Return a session with a title, if its client gave none and its transcript has a prompt.

    `read_from` is the offset from which the transcript was read: what stands before was searched.
    In a subagent's transcript its thread gets one.
    """
    if read_from > PROMPT_SEARCH_BYTES:
        return session
    if transcript.thread != MAIN:
        return _with_subagent_title(session, transcript)
    if session.title is not None:
        return session
    return msgspec.structs.replace(session, title=_first_prompt(transcript, read_from))


def _with_subagent_title(session: Session, transcript: Transcript) -> Session:
    """Return a session whose subagent has its client's title, else the first words of its task."""
    thread = session.threads.get(transcript.thread)
    if thread is None or thread.title is not None:
        return session
    title = transcript.title or get_agent(transcript.agent).subagent_title(transcript.path)
    shown = shorten_title(title) if title else None
    if shown is None and transcript.size:  # not one of several in a database
        shown = _first_prompt(transcript, 0)
    named = msgspec.structs.replace(thread, title=shown)
    return msgspec.structs.replace(session, threads={**session.threads, thread.name: named})


def _first_prompt(transcript: Transcript, start: int) -> str | None:
    """Return the first words of what the user wrote first, from an offset on."""
    # Imported here: it takes 30 ms, and the sessions of most commands have a title already.
    from brimline.agents.content import UserText, read_content
    from brimline.handoff import iter_records

    reader = get_agent(transcript.agent).content_reader(transcript.thread != MAIN)
    records = _head(
        iter_records(transcript.path, transcript.session, start), PROMPT_SEARCH_BYTES - start
    )
    try:
        for piece in read_content(records, reader):
            if isinstance(piece, UserText):
                title = shorten_title(piece.text)
                if title is not None:
                    return title
    except (UnreadableTranscript, OSError):
        return None
    return None


def _head(records: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the records that begin in the first `size` bytes."""
    for record in records:
        yield record
        size -= len(record)
        if size < 0:
            return
