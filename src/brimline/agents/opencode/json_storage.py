"""opencode's older storage: one JSON file a session, one a message, one a part.

| layout | session | messages | parts |
|---|---|---|---|
| the oldest | session/info/S.json | session/message/S/M.json | session/part/S/M/P.json |
| before 1.2.0 | session/PROJECT/S.json | message/S/M.json | part/M/P.json |
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from brimline.agents.opencode.incremental import Row
from brimline.agents.opencode.records import Part, SessionInfo
from brimline.errors import UnreadableTranscript
from brimline.regular_file import read_regular_file
from brimline.transcripts.source import MALFORMED

LARGEST = 32 << 20  # a larger message is counted as malformed and never held

_info = msgspec.json.Decoder(SessionInfo)
_part = msgspec.json.Decoder(Part)


class FolderHistory:
    """One session in the older storage, by its own file; a History."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._messages, self._parts = folders(self._path)

    def changed(self, since: int) -> tuple[SessionInfo, Iterator[Row]]:
        """What the session says of itself, and its messages that changed at that time or later."""
        return self._info(), self._rows(since)

    def every(self) -> Iterator[Row]:
        """All its messages."""
        return self._rows(0)

    def _info(self) -> SessionInfo:
        path = str(self._path)
        try:
            return _info.decode(read_regular_file(self._path, LARGEST))
        except OSError as error:
            raise UnreadableTranscript(path, error.strerror or str(error)) from error
        except MALFORMED as error:
            raise UnreadableTranscript(path, f"not an opencode session: {error}") from error

    def _rows(self, since: int) -> Iterator[Row]:
        """Its messages; their names sort as they came."""
        for entry in sorted(files(self._messages), key=lambda entry: entry.name):
            try:
                told = entry.stat()
                updated = told.st_mtime_ns // 1_000_000
                if updated >= since:
                    small = told.st_size <= LARGEST
                    data = read_regular_file(entry.path, LARGEST) if small else b""
                    yield Row(entry.name.removesuffix(".json"), updated, data)
            except OSError:
                continue

    def parts(self, message: str) -> list[Part]:
        """The parts of a message; those that are not as expected are passed over."""
        found: list[Part] = []
        for entry in files(self._parts / message):
            try:
                found.append(_part.decode(read_regular_file(entry.path, LARGEST)))
            except (OSError, *MALFORMED):
                continue
        return found


def folders(path: Path) -> tuple[Path, Path]:
    """Where the messages and the parts of a session lie, by the place of its own file."""
    kind, session = path.parent, path.stem
    if kind.name == "info":
        return kind.parent / "message" / session, kind.parent / "part" / session
    return kind.parent.parent / "message" / session, kind.parent.parent / "part"


def files(folder: Path) -> "list[os.DirEntry[str]]":
    """The JSON files of a folder; none where it cannot be read."""
    try:
        return [e for e in os.scandir(folder) if e.name.endswith(".json") and e.is_file()]
    except OSError:
        return []
