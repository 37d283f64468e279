"""One transcript or stream, wherever it is: a path, a session's id, or standard input."""

import io
import os
import stat
from typing import Any, BinaryIO, cast

from brimline.agents import AGENTS, known, source
from brimline.errors import UnreadableTranscript
from brimline.events import MAIN
from brimline.survey.files import HEAD, Folded, SessionFiles, by_id, recognise, whole
from brimline.tracker import Session, fold
from brimline.transcripts.lines import JsonLines, open_transcript
from brimline.transcripts.source import Form, Places, Reader, Transcript

STDIN = "-"


def find(target: str, places: Places, stdin: BinaryIO, agent: str | None = None) -> Folded:
    """What a target holds, read whole; `agent` says whose it is where that cannot be told."""
    if agent is not None:
        known(agent)
    try:
        return _find(target, places, stdin, agent)
    except OSError as error:
        raise UnreadableTranscript(target, error.strerror or str(error)) from error


def _find(target: str, places: Places, stdin: BinaryIO, agent: str | None) -> Folded:
    if target == STDIN:
        return _loose(_Prefixed(stdin), "standard input", agent)
    if os.path.lexists(target):
        return _file(target, places, agent)
    if os.sep in target:
        hint = "`brimline status --all` lists the sessions on this machine."
        raise UnreadableTranscript(target, "there is no such file", hint)
    return whole(by_id(places, target, [agent] if agent else AGENTS))


def _file(path: str, places: Places, agent: str | None) -> Folded:
    _check(path)
    with open_transcript(path) as file:
        head = file.read(HEAD)
    owner, form = recognise(head, path) if agent is None else (agent, _form(agent, head))
    if form == "stream":
        return _loose(_Prefixed(open_transcript(path)), path, owner)
    status = os.stat(path)
    transcript = Transcript(owner, path, status.st_mtime, status.st_size)
    files = [transcript, *_subagents(transcript, places)]
    folded = whole(SessionFiles(owner, "", tuple(files)))
    if folded.problems and folded.tally.records == 0:
        raise UnreadableTranscript(path, folded.problems[0].removeprefix(f"cannot read {path}: "))
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
    here = [t for t in every if os.path.realpath(t.path) == mine]
    if len(here) != 1 or here[0].session is None or here[0].thread != MAIN:
        return []
    return [other for other in every if other.session == here[0].session and other.thread != MAIN]


def _loose(file: "_Prefixed", place: str, agent: str | None) -> Folded:
    head = file.peek(HEAD)
    owner, form = recognise(head, place) if agent is None else (agent, _form(agent, head))
    made = source(owner)
    readable = cast("BinaryIO", file)
    reader: Reader = (
        JsonLines(readable, made.stream()) if form == "stream" else made.parse(readable)
    )
    session = fold(Session(agent=owner), reader)
    return Folded(session, reader.tally)


class _Prefixed(io.RawIOBase):
    """A file whose beginning can be looked at before it is read; it need not be seekable."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._head = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def peek(self, size: int) -> bytes:
        """The first bytes, up to a size; what is read later begins with them."""
        while len(self._head) < size and (chunk := self._file.read(size - len(self._head))):
            self._head += chunk
        return self._head

    def readinto(self, into: Any, /) -> int:
        """The next bytes, as many as are there."""
        view = memoryview(into).cast("B")
        chunk = self._head[: len(view)] or self._file.read(len(view))
        self._head = self._head[len(chunk) :]
        view[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        """Close what it reads from."""
        self._file.close()
        super().close()
