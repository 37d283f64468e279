"""What every source offers: where an agent's transcripts are, and the events in them."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from brimline.events import MAIN, AnyEvent
from brimline.regular_file import open_regular_file
from brimline.windows import ClientSettings

Form: TypeAlias = Literal["transcript", "stream"]
ReadMode: TypeAlias = Literal["every", "quick", "end"]


class Places(msgspec.Struct, frozen=True):
    """Where to look: a home folder and an environment, so that a test has its own."""

    home: Path
    env: Mapping[str, str]

    @classmethod
    def here(cls) -> "Places":
        """This user's own."""
        return cls(home=Path.home(), env=os.environ)

    def folder(self, variable: str, default: str) -> Path:
        """The folder that an agent's variable names, else its default below home."""
        named = self.env.get(variable)
        return Path(named) if named else self.home / default


class Transcript(msgspec.Struct, frozen=True):
    """One file (or one session of a database) that an agent keeps.

    `session` is None where only the content tells it; `thread` is not `main` in a subagent's file.
    `size` counts bytes where the file is the session's own, and is 0 in a database.
    """

    agent: str
    path: str
    modified: float
    size: int
    session: str | None = None
    thread: str = MAIN
    project: str | None = None


class Cursor(msgspec.Struct, frozen=True):
    """How far a transcript was read, and what its parser must remember from there on."""

    offset: int = 0
    carry: bytes = b""


START = Cursor()
HEAD_BYTES = 4096  # how much of a file is looked at for the session that it names


class Tally(msgspec.Struct):
    """What was read, and what was skipped; `places` names the first malformed records."""

    records: int = 0
    unknown: int = 0
    malformed: int = 0
    places: list[str] = msgspec.field(default_factory=list[str])

    def add_malformed(self, place: str, limit: int = 5) -> None:
        """Count a malformed record, and keep its place while there are few."""
        self.malformed += 1
        if len(self.places) < limit:
            self.places.append(place)


class Parser(Protocol):
    """Turns an agent's records into events, one record at a time."""

    def feed(self, record: bytes) -> Iterable[AnyEvent] | None:
        """The events of one JSON object; None where its kind is unknown.

        Raises msgspec.DecodeError or InvalidUsage where it is malformed, and has then changed
        nothing that it remembers.
        """
        ...

    def carry(self) -> bytes:
        """What a parser made later from this carry must know to go on from here."""
        ...


class Reader(Protocol):
    """The events of a transcript from a cursor on; afterwards, how far it came."""

    def __iter__(self) -> Iterator[AnyEvent]: ...

    @property
    def cursor(self) -> Cursor:
        """Where the next reading begins."""
        ...

    @property
    def tally(self) -> Tally:
        """What was read and what was skipped."""
        ...


class Source(Protocol):
    """One agent: its files, its streams, its own settings."""

    @property
    def agent(self) -> str:
        """Our name of the agent."""
        ...

    def folders(self, places: Places) -> list[Path]:
        """The folders at or below which its transcripts are, or would be."""
        ...

    def read(
        self, transcript: Transcript, cursor: Cursor = START, how: ReadMode = "every"
    ) -> Reader:
        """Its events from the cursor on.

        `every` record is looked at; `quick` may pass over what no figure comes from, and its tally
        with it; `end` may look at the end of the file alone, and knows nothing of what was before.
        """
        ...

    def parse(self, file: BinaryIO) -> Reader:
        """The events of a transcript that comes from anywhere, standard input too."""
        ...

    def stream(self) -> Parser:
        """A parser for what the client prints in its JSON stream format."""
        ...

    def recognise(self, head: bytes) -> Form | None:
        """Whether a file or stream that begins like this is this agent's."""
        ...

    def settings(self, places: Places, project: str | None = None) -> ClientSettings:
        """What the user told the client about its compaction."""
        ...


def files_below(folder: str, suffix: str) -> "Iterator[os.DirEntry[str]]":
    """Everything with this ending below a folder; a folder that cannot be read is passed over."""
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
    """A file as a transcript whose session its content tells; None where it is no file, or gone."""
    try:
        status = entry.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Transcript(agent, entry.path, status.st_mtime, status.st_size)


TextT = TypeVar("TextT", str, str | None)


def to_text(name: TextT) -> TextT:
    """A name out of a path, which may be no text, as text."""
    if name is None or name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')


@lru_cache(maxsize=1 << 14)
def read_session_id(path: str) -> str | None:
    """The session that a file's beginning names, which never changes."""
    try:
        with os.fdopen(open_regular_file(path), "rb", buffering=0) as file:
            named = _SESSION.search(file.read(HEAD_BYTES))
    except OSError:
        return None
    return named[1].decode("utf-8", "replace") if named else None


_from_iso = datetime.fromisoformat


def parse_time(text: str | None) -> float | None:
    """An ISO 8601 time in seconds since the epoch; None where it is none."""
    if not text:
        return None
    try:
        return _from_iso(text).timestamp()
    except (ValueError, OverflowError):
        return None
