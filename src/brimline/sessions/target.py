"""Load one session by path, by session id, or from standard input."""

import io
import os
import stat
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

from brimline.agents import agent_names, display_name, get_agent, source
from brimline.agents.transcripts.database import SQLITE, read_head
from brimline.agents.transcripts.lines import JsonLines, open_transcript
from brimline.agents.transcripts.source import Form, Lookalike, Places, Reader, Transcript
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold
from brimline.errors import UnreadableTranscript, UnrecognisedFormat
from brimline.sessions.files import (
    HEAD_BYTES,
    LoadedSession,
    SessionFiles,
    detect_agent,
    find_session,
    find_transcripts,
    load_session,
)
from brimline.sessions.format_drift import describe_drift, find_drift

STDIN = "-"
STDIN_NAME = "standard input"
MAX_HEAD_BYTES = 4 << 20  # the longest line seen had 1.4 MB
LIST_HINT = "`brimline status --all` lists the sessions on this machine."


def is_file_target(target: str) -> bool:
    """Return whether a target is standard input or a path, and not a session."""
    return target == STDIN or os.path.lexists(target) or os.sep in target


def load_target(
    target: str, places: Places, stdin: BinaryIO, agent: str | None = None
) -> LoadedSession:
    """Load a session; `agent` says whose it is, and is detected if None."""
    if agent is not None:
        get_agent(agent)
    try:
        return _load(target, places, stdin, agent)
    except OSError as error:
        raise UnreadableTranscript(target, error.strerror or str(error)) from error


def _load(target: str, places: Places, stdin: BinaryIO, agent: str | None) -> LoadedSession:
    if target == STDIN:
        return _load_stream(_PeekableFile(stdin), STDIN_NAME, agent)
    if os.path.lexists(target):
        return _load_file(target, places, agent)
    if os.sep in target:
        raise UnreadableTranscript(target, "no such file", LIST_HINT)
    return load_session(find_session(places, target, [agent] if agent else agent_names()))


def files_of_path(path: str, places: Places, agent: str | None = None) -> SessionFiles:
    """Return a transcript with those of its subagents.

    Raises UnreadableTranscript, also for a client's stream.
    """
    owner, form = _detect_file(path, places, agent)
    _require_transcript(path, form)
    return _session_files(owner, path, places)


def files_of_target(
    target: str, places: Places, stdin: BinaryIO, agent: str | None = None
) -> tuple[SessionFiles, BinaryIO | None]:
    """Return the transcripts of a path or of standard input, and the file of the latter.

    Raises UnreadableTranscript, also for a client's stream.
    """
    if target != STDIN:
        return files_of_path(target, places, agent), None
    file = _PeekableFile(stdin)
    owner, form = _detect(file.peek(), STDIN_NAME, agent)
    _require_transcript(STDIN_NAME, form)
    transcript = Transcript(owner, STDIN_NAME, 0.0, 0)
    return SessionFiles(owner, "", (transcript,)), cast("BinaryIO", file)


def _require_transcript(place: str, form: Form) -> None:
    if form == "stream":
        reason = (
            "it is a client's stream: prompts, added texts or the usage of each call are not in it"
        )
        hint = "Pass the session's transcript or id; `brimline inspect` reads streams."
        raise UnreadableTranscript(place, reason, hint)


def _detect_file(path: str, places: Places, agent: str | None) -> tuple[str, Form]:
    """A file in an agent's folder is that agent's, also if its first lines are damaged."""
    _require_regular_file(path)
    with _PeekableFile(open_transcript(path)) as file:
        head = file.peek()
    if head.startswith(SQLITE):
        head = read_head(path)
    try:
        return _detect(head, path, agent)
    except UnrecognisedFormat:
        listed = _find_listed(path, find_transcripts(places))
        if not listed:
            raise
        return listed[0].agent, "transcript"


def _find_listed(path: str, transcripts: Iterable[Transcript]) -> list[Transcript]:
    """Return those of the listed transcripts that are in this file."""
    real_path = os.path.realpath(path)
    return [each for each in transcripts if os.path.realpath(each.path) == real_path]


def _session_files(owner: str, path: str, places: Places) -> SessionFiles:
    """Return a file with those of its subagents if it is in its agent's own folder."""
    every = list(get_agent(owner).transcripts(places))
    listed = _find_listed(path, every)
    if len(listed) != 1 or listed[0].session is None:
        status = os.stat(path)
        return SessionFiles(owner, "", (Transcript(owner, path, status.st_mtime, status.st_size),))
    own, session = listed[0], listed[0].session
    is_main = own.thread == MAIN
    others = [t for t in every if is_main and t.session == session and t.thread != MAIN]
    return SessionFiles(owner, session, (own, *others))


def _load_file(path: str, places: Places, agent: str | None) -> LoadedSession:
    owner, form = _detect_file(path, places, agent)
    if form == "stream":
        return _load_stream(_PeekableFile(open_transcript(path)), path, owner)
    folded = load_session(_session_files(owner, path, places))
    if folded.problems and folded.tally.records == 0:
        raise UnreadableTranscript(path, folded.problems[0].removeprefix(f"cannot read {path}: "))
    return folded


def _require_regular_file(path: str) -> None:
    """Refuse anything but a regular file before it is opened: opening a pipe would hang."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise UnreadableTranscript(path, "no such file", LIST_HINT) from error
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    if stat.S_ISDIR(mode):
        raise UnreadableTranscript(path, "it is a directory", "Name a transcript file inside it.")
    if not stat.S_ISREG(mode):
        raise UnreadableTranscript(
            path, "it is not a regular file", "Pipe it to the command, and pass - as its path."
        )


def _detect(head: bytes, place: str, agent: str | None) -> tuple[str, Form]:
    """Return whose file or stream it is, and which of the two; `agent` is the user's word."""
    if agent is None:
        return detect_agent(head, place)
    match = get_agent(agent).recognise(head)
    if not isinstance(match, Lookalike):
        return agent, match or "transcript"
    if match.is_foreign:
        reason = f"it resembles {display_name(agent)}'s {match.form}, but {match.doubt}"
        raise UnreadableTranscript(place, reason, "Brimline does not read this client.")
    return agent, match.form


def _load_stream(file: "_PeekableFile", place: str, agent: str | None) -> LoadedSession:
    head = file.peek()
    owner, form = _detect(head, place, agent)
    agent_source = source(owner)
    readable = cast("BinaryIO", file)
    reader: Reader = (
        JsonLines(readable, agent_source.stream())
        if form == "stream"
        else agent_source.parse(readable)
    )
    session = fold(Session(agent=owner), reader)
    drift = find_drift(Transcript(owner, place, 0.0, 0), session, reader.tally)
    problems = (describe_drift(owner, [drift]),) if drift else ()
    return LoadedSession(session, reader.tally, problems, parts=(session,))


class _PeekableFile(io.RawIOBase):
    """A file whose start can be read without consuming it; it need not be seekable."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._head = b""

    def readable(self) -> bool:
        return True

    def peek(self) -> bytes:
        """Return the first line, up to MAX_HEAD_BYTES, and what follows it, up to HEAD_BYTES.

        Later reads start with it again.
        """
        while self._may_need_more and (chunk := self._file.read(HEAD_BYTES)):
            self._head += chunk
        return self._head

    @property
    def _may_need_more(self) -> bool:
        size = len(self._head)
        return size < HEAD_BYTES or (size < MAX_HEAD_BYTES and b"\n" not in self._head)

    def readinto(self, into: Any, /) -> int:
        view = memoryview(into).cast("B")
        chunk = self._head[: len(view)] or self._file.read(len(view))
        self._head = self._head[len(chunk) :]
        view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._file.close()
        super().close()
