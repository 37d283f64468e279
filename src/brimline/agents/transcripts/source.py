"""What every source offers: where an agent's transcripts are, and the events in them."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from brimline.context.events import MAIN, AnyEvent
from brimline.context.window import ClientSettings
from brimline.errors import InvalidUsage, MalformedJson
from brimline.files.regular_file import open_regular_file
from brimline.redaction import redact

Form: TypeAlias = Literal["transcript", "stream"]
ReadMode: TypeAlias = Literal["every", "quick", "end"]

# What a parser raises on a record that it cannot read.
MALFORMED = (MalformedJson, InvalidUsage)


class Lookalike(msgspec.Struct, frozen=True):
    """A file or stream of an agent's shape without its marks: perhaps another client's.

    `doubt` says what speaks against the agent, as the end of a sentence. `is_foreign`: it has a
    mark of another client, so that it is not read even if the user names the agent.
    """

    form: Form
    doubt: str
    is_foreign: bool = False


class Places(msgspec.Struct, frozen=True):
    """Where to look: a home folder and an environment, so that a test has its own."""

    home: Path
    env: Mapping[str, str]

    @classmethod
    def here(cls) -> "Places":
        return cls(home=Path.home(), env=os.environ)

    def folder(self, variable: str, default: str) -> Path:
        """The folder that an agent's variable names, else its default below home."""
        named = self.env.get(variable)
        return Path(named) if named else self.home / default


class Transcript(msgspec.Struct, frozen=True):
    """One file (or one session of a database) that an agent keeps.

    `session` is None if only the content has it; `thread` is not `main` in a subagent's file.
    `size` is in bytes if the file is the session's own, and 0 for a database. `title` is the
    client's own of a subagent, if the list of transcripts has it.
    """

    agent: str
    path: str
    modified: float
    size: int
    session: str | None = None
    thread: str = MAIN
    project: str | None = None
    title: str | None = None


class Cursor(msgspec.Struct, frozen=True):
    """How far a transcript was read, and the parser's state at that point."""

    offset: int = 0
    carry: bytes = b""


START = Cursor()
HEAD_BYTES = 4096  # how much of a file is searched for its session's id
START_BYTES = 64 << 10  # and for when it was begun, which may stand behind a long prompt
MESSAGE_KEY = b'"role":'  # in every message of Claude Code and Pi


MAX_PLACES = 5

Events: TypeAlias = Iterable[AnyEvent]


class Record(NamedTuple):
    """One record of a transcript, as the content reader takes it, its events and its thread.

    `data` is empty if the record has no content. `is_earlier`: it is in another file, which the
    transcript continues without repeating it; its calls are not the session's.
    """

    data: bytes
    events: Events
    thread: str
    is_earlier: bool = False


class Tally(msgspec.Struct):
    """What was read, and what was skipped; `places` names the first malformed records.

    `is_whole`: it counts a file from its start, also if the file was read before.
    """

    records: int = 0
    unknown: int = 0
    malformed: int = 0
    places: list[str] = msgspec.field(default_factory=list[str])
    is_whole: bool = False

    def add_malformed(self, place: str) -> None:
        self.malformed += 1
        if len(self.places) < MAX_PLACES:
            self.places.append(redact(place))  # errors of the decoder quote values

    def add(self, other: "Tally") -> None:
        self.records += other.records
        self.unknown += other.unknown
        for place in other.places:
            self.add_malformed(place)
        self.malformed += other.malformed - len(other.places)

    def continue_from(self, before: "Tally") -> None:
        """Add the counts of what was read of the same file before."""
        if not self.is_whole:
            self.add(before)

    def read(self, parse: Callable[[], Events | None], place: str) -> Events:
        """Count a record and return its events; none if its kind is unknown or it is malformed."""
        self.records += 1
        try:
            events = parse()
        except MALFORMED as error:
            self.add_malformed(f"{place}: {error}")
            return ()
        if events is None:
            self.unknown += 1
        return events or ()


class Parser(Protocol):
    """Turns an agent's records into events, one record at a time."""

    def feed(self, record: bytes) -> Events | None:
        """Return the events of one JSON object; None if its kind is unknown.

        Raises an error of MALFORMED, and has then changed nothing that it remembers.
        """
        ...

    def carry(self) -> bytes:
        """Return the state from which another parser can continue; a stream's has none."""
        return b""


class Reader(Protocol):
    """The events of a transcript from a cursor on; afterwards its new cursor."""

    def __iter__(self) -> Iterator[AnyEvent]: ...

    @property
    def cursor(self) -> Cursor: ...

    @property
    def tally(self) -> Tally: ...


class Source(Protocol):
    """One agent: its transcripts, its streams, its own settings."""

    @property
    def agent(self) -> str: ...

    def folders(self, places: Places) -> list[Path]:
        """Return the folders at or below which its transcripts are, or would be."""
        ...

    def transcripts(self, places: Places) -> Iterable[Transcript]:
        """Return its transcripts; unreadable folders are skipped."""
        ...

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        """Return the user's settings of the client's window and compaction."""
        ...

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        """Return a reader of its events from the cursor on.

        `every` decodes each record; `quick` may skip records without figures, and not count them;
        `end` may read only the end of the file.
        """
        ...

    def records(self, transcript: Transcript, file: BinaryIO | None = None) -> Iterator[Record]:
        """Yield each record that can be read; the events are those of `read`, in the same order.

        Those of a file that it continues come first. `file` is a transcript without a path, such
        as standard input: then `transcript` only names it.
        """
        ...

    def parse(self, file: BinaryIO) -> Reader:
        """Return a reader of a transcript without a path, such as standard input."""
        ...

    def stream(self) -> Parser:
        """Return a parser for the client's JSON stream format."""
        ...

    def recognise(self, head: bytes) -> Form | Lookalike | None:
        """Return what a file or stream that begins like this is; None if not this agent's.

        `head` begins with text. Only a mark that no other client writes makes it the agent's own.
        """
        ...


def files_below(folder: str, suffix: str) -> "Iterator[os.DirEntry[str]]":
    """Yield the files with this ending below a folder; unreadable folders are skipped."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(entry.path, suffix)
        elif entry.name.endswith(suffix):
            yield entry


def transcript_from_entry(agent: str, entry: "os.DirEntry[str]") -> Transcript | None:
    """Return a file as a transcript of an unknown session; None if it is no file, or gone."""
    try:
        status = entry.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Transcript(agent, entry.path, status.st_mtime, status.st_size)


TextT = TypeVar("TextT", str, str | None)


def to_text(name: TextT) -> TextT:
    """Replace the bytes of a path that are no text."""
    if name is None or name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')


@lru_cache(maxsize=1 << 14)
def read_session_id(path: str) -> str | None:
    """Return the session's id in the beginning of a file, which never changes."""
    try:
        with os.fdopen(open_regular_file(path), "rb", buffering=0) as file:
            named = _SESSION.search(file.read(HEAD_BYTES))
    except OSError:
        return None
    return named[1].decode("utf-8", "replace") if named else None


MAX_TIME_S = 253_402_214_400  # the last day of the year 9999: every time zone can show it


_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"\\]+)"')


def begun_at(path: str) -> float | None:
    """Return when a file was begun, by its records; None if its beginning has no time.

    That is the latest time before its first message, else the first one. A fork copies the records
    of its original with their times, but what is before the messages has the fork's own time too:
    the header of Pi, queue operations and snapshots of Claude Code 2.1.325.
    """
    try:
        with os.fdopen(open_regular_file(path), "rb", buffering=0) as file:
            head = file.read(START_BYTES)
    except OSError:
        return None
    message = head.find(MESSAGE_KEY)
    before = _TIMESTAMP.findall(head if message < 0 else head[:message])
    times = [max(before)] if before else _TIMESTAMP.findall(head)[:1]
    return parse_time(times[0].decode("utf-8", "replace")) if times else None


def parse_branch(text: str | None) -> str | None:
    """Return the name of a git branch; None for a detached head, which clients call `HEAD`."""
    return None if text == "HEAD" else text or None


def parse_time(value: str | float | None) -> float | None:
    """Return an ISO 8601 time, or milliseconds since the epoch, in seconds; None if it is none."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value / 1_000
    except (ValueError, OverflowError):
        return None
    return at if 0 <= at < MAX_TIME_S else None
