"""One transcript or stream, wherever it is: a path, a session's id, or standard input."""

import os
import stat
from typing import BinaryIO, cast

from brimline.errors import UnreadableTranscript
from brimline.events import MAIN
from brimline.sources import AGENTS, source
from brimline.sources.base import Form, Places, Reader, Transcript
from brimline.sources.lines import JsonLines, opened
from brimline.survey.files import HEAD, Folded, SessionFiles, by_id, recognise, whole
from brimline.tracker import Session, fold

STDIN = "-"


def find(target: str, places: Places, stdin: BinaryIO, agent: str | None = None) -> Folded:
    """What a target holds, read whole; `agent` says whose it is where that cannot be told."""
    if target == STDIN:
        return _loose(_Prefixed(stdin), "standard input", agent)
    if os.path.lexists(target):
        return _file(target, places, agent)
    if os.sep in target:
        raise UnreadableTranscript(target, "there is no such file")
    return whole(by_id(places, target, [agent] if agent else AGENTS))


def _file(path: str, places: Places, agent: str | None) -> Folded:
    _check(path)
    with opened(path) as file:
        head = file.read(HEAD)
    known, form = recognise(head, path) if agent is None else (agent, _form(agent, head))
    if form == "stream":
        return _loose(_Prefixed(opened(path)), path, known)
    status = os.stat(path)
    transcript = Transcript(known, path, status.st_mtime, status.st_size)
    files = [transcript, *_subagents(transcript, places)]
    folded = whole(SessionFiles(known, "", tuple(files)))
    if folded.problems and folded.tally.records == 0:
        raise UnreadableTranscript(path, folded.problems[0])
    return folded


def _check(path: str) -> None:
    """Refuse what is no regular file before it is opened: a pipe would hang, a folder reads not."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise UnreadableTranscript(path, error.strerror or str(error)) from error
    if stat.S_ISDIR(mode):
        raise UnreadableTranscript(path, "it is a directory", "Name a transcript inside it.")
    if not stat.S_ISREG(mode):
        raise UnreadableTranscript(path, "it is no regular file", "Pipe it in, and name it `-`.")


def _form(agent: str, head: bytes) -> Form:
    return source(agent).recognise(head) or "transcript"


def _subagents(transcript: Transcript, places: Places) -> list[Transcript]:
    """The other files of the session, where the transcript lies among its agent's own."""
    every = list(source(transcript.agent).transcripts(places))
    mine = os.path.realpath(transcript.path)
    own = next((t for t in every if os.path.realpath(t.path) == mine), None)
    if own is None or own.session is None or own.thread != MAIN:
        return []
    return [other for other in every if other.session == own.session and other.thread != MAIN]


def _loose(file: "_Prefixed", place: str, agent: str | None) -> Folded:
    head = file.peek(HEAD)
    known, form = recognise(head, place) if agent is None else (agent, _form(agent, head))
    made = source(known)
    readable = cast("BinaryIO", file)
    reader: Reader = (
        JsonLines(readable, made.stream()) if form == "stream" else made.parse(readable)
    )
    session = fold(Session(agent=known), reader)
    return Folded(session, reader.tally)


class _Prefixed:
    """A file whose beginning can be looked at before it is read; it need not be seekable."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._head = b""

    def peek(self, size: int) -> bytes:
        """The first bytes, up to a size; what is read later begins with them."""
        while len(self._head) < size and (chunk := self._file.read(size - len(self._head))):
            self._head += chunk
        return self._head

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._file.read(size)

    def __enter__(self) -> "_Prefixed":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
