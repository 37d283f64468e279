"""opencode's older storage: a JSON file per session, per message and per part.

| layout | session | messages | parts |
|---|---|---|---|
| the oldest | session/info/S.json | session/message/S/M.json | session/part/S/M/P.json |
| before 1.2.0 | session/PROJECT/S.json | message/S/M.json | part/M/P.json |
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from brimline.agents.opencode.conversation import MessageRow, StoredMessage, StoredPart
from brimline.agents.opencode.records import OpencodePart, SessionInfo
from brimline.agents.transcripts.source import MALFORMED
from brimline.errors import UnreadableTranscript
from brimline.files.foreign_json import BYTE_ORDER_MARK, JsonDecoder, compact_json
from brimline.files.regular_file import read_regular_file

MAX_MESSAGE_BYTES = 32 << 20  # a larger message counts as malformed and is never held

_info = JsonDecoder(SessionInfo)
_part = JsonDecoder(OpencodePart)


class FolderHistory:
    """One session in the older storage, by its own file; a MessageHistory."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._messages, self._parts = message_folders(self._path)

    def changed(self, since: int) -> tuple[SessionInfo, Iterator[MessageRow]]:
        return self._read_info(), self._rows(since)

    def every(self) -> Iterator[MessageRow]:
        return self._rows(0)

    def _read_info(self) -> SessionInfo:
        path = str(self._path)
        try:
            return _info.decode(read_regular_file(self._path, MAX_MESSAGE_BYTES))
        except OSError as error:
            raise UnreadableTranscript(path, error.strerror or str(error)) from error
        except MALFORMED as error:
            raise UnreadableTranscript(path, f"not an opencode session: {error}") from error

    def _rows(self, since: int) -> Iterator[MessageRow]:
        """The messages in the order of their names, which is that of their creation."""
        for entry in sorted(json_files(self._messages), key=lambda entry: entry.name):
            with suppress(OSError):
                status = entry.stat()
                updated = status.st_mtime_ns // 1_000_000
                if updated >= since:
                    is_small = status.st_size <= MAX_MESSAGE_BYTES
                    data = read_regular_file(entry.path, MAX_MESSAGE_BYTES) if is_small else b""
                    data = data.removeprefix(BYTE_ORDER_MARK)  # it becomes a part of a record
                    yield MessageRow(entry.name.removesuffix(".json"), updated, data)

    def parts(self, message: str) -> list[OpencodePart]:
        decoded = (_part.decode_or_none(stored.data) for stored in self._stored_parts(message))
        return [part for part in decoded if part is not None]

    def messages(self) -> Iterator[StoredMessage]:
        for row in self._rows(0):
            yield StoredMessage(row.id, row.data, [*self._stored_parts(row.id)])

    def _stored_parts(self, message: str) -> Iterator[StoredPart]:
        """Yield the parts in the order of their names, which is that of their creation."""
        for entry in sorted(json_files(self._parts / message), key=lambda entry: entry.name):
            with suppress(OSError, *MALFORMED):
                data = compact_json(read_regular_file(entry.path, MAX_MESSAGE_BYTES))
                yield StoredPart(entry.name.removesuffix(".json"), data)


def message_folders(path: Path) -> tuple[Path, Path]:
    """Return the folders of a session's messages and parts, by the path of its own file."""
    kind, session = path.parent, path.stem
    if kind.name == "info":
        return kind.parent / "message" / session, kind.parent / "part" / session
    return kind.parent.parent / "message" / session, kind.parent.parent / "part"


def json_files(folder: Path) -> "list[os.DirEntry[str]]":
    """Return the JSON files of a folder; none if it cannot be read."""
    try:
        return [e for e in os.scandir(folder) if e.name.endswith(".json") and e.is_file()]
    except OSError:
        return []
