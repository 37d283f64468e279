"""Iterate over the records of a transcript, in bounded memory and time."""

import os
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from brimline.agents.goose.database import has_ledger
from brimline.agents.goose.transcript_source import read_message_records
from brimline.agents.opencode.conversation import StoredMessage
from brimline.agents.opencode.database import read_parts
from brimline.agents.opencode.json_storage import FolderHistory
from brimline.agents.transcripts.database import SQLITE
from brimline.agents.transcripts.document import read_whole
from brimline.agents.transcripts.lines import Lines, open_transcript
from brimline.files.foreign_json import JsonDecoder

MAX_WHOLE_FILE_BYTES = 256 << 20  # of a larger file only the beginning and the end are read
HEAD_BYTES = 4 << 20  # of the beginning, with the first user message
# Small, because the daemon drafts all day and its memory grows by this.
CHUNK_BYTES = 64 << 10


class _MessagesDocument(msgspec.Struct, frozen=True):
    messages: list[msgspec.Raw] | None = None


_document = JsonDecoder(_MessagesDocument)


def iter_records(
    path: str,
    session: str | None = None,
    start: int = 0,
    most_bytes: int = MAX_WHOLE_FILE_BYTES,
) -> Iterator[bytes]:
    """Yield a transcript's records, one JSON object each; of a database, those of one session.

    Of a file of lines only those from the offset `start` on, where a line begins, and only its
    beginning and its end if it has more than `most_bytes`.

    Reads files of lines (Claude Code, Codex, Pi, Gemini CLI), documents with `messages` (older
    chats of Gemini CLI, exports of opencode), the databases of opencode and Goose, and opencode's
    older storage. Raises UnreadableTranscript.
    """
    with open_transcript(path) as file:
        if is_file_of_lines(path, file):
            yield from _read_lines(file, start, most_bytes)
        elif path.endswith(".json"):
            yield from _read_messages(path, read_whole(path, file))
        else:
            yield from _read_database(path, session or "")


def is_file_of_lines(path: str, file: BinaryIO) -> bool:
    """Return whether an open transcript has a record in each line."""
    head = file.read(len(SQLITE))
    file.seek(0)
    return head != SQLITE and not path.endswith(".json")


def _read_lines(file: BinaryIO, start: int, most_bytes: int) -> Iterator[bytes]:
    size = file.seek(0, os.SEEK_END)
    file.seek(start)
    lines = Lines(file, start, CHUNK_BYTES)
    for line in lines:
        yield line
        if size > most_bytes and lines.offset > HEAD_BYTES:
            yield from _read_tail(file, size, most_bytes)
            return
    yield lines.rest


def _read_tail(file: BinaryIO, size: int, most_bytes: int) -> Iterator[bytes]:
    """Yield the lines of the end; the first is incomplete, and skipped as malformed."""
    file.seek(max(HEAD_BYTES, size - most_bytes + HEAD_BYTES))
    lines = Lines(file, chunk_bytes=CHUNK_BYTES)
    yield from lines
    yield lines.rest


def _read_messages(path: str, data: bytes) -> Iterator[bytes]:
    """Yield the messages of a document, or those that opencode stored in other files."""
    document = _document.decode_or_none(data)
    if document is None:
        return
    if document.messages is not None:
        yield from map(bytes, document.messages)
        return
    for message in FolderHistory(path).messages():
        yield message.encode()


def _read_database(path: str, session: str) -> Iterator[bytes]:
    """Yield each part with its message, in the shape of an export; of Goose's, each message."""
    if has_ledger(path):
        yield from read_message_records(path, session)
        return
    for row in read_parts(path, session):
        if row.part is not None:
            yield StoredMessage(row.message, row.message_data, (row.part,)).encode()
