"""The records of a transcript, in bounded memory and time, however it is stored."""

import os
import sqlite3
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from brimline.agents.opencode.connection import ask
from brimline.agents.opencode.source import SQLITE
from brimline.transcripts.document import read_whole
from brimline.transcripts.lines import MALFORMED, Lines, open_transcript

WHOLE = 64 << 20
"""A larger file of lines is read only at its beginning and its end."""

HEAD = 4 << 20
"""So much of the beginning: the user's first words are there."""

CHUNK_BYTES = 64 << 10
"""So much is read at a time: a daemon drafts all day, and its memory goes up by what that takes."""

PAGE = 500
"""How many parts of messages one query fetches."""

PARTS = """
    SELECT message.time_created, message.id, part.id, message.data, part.data
    FROM message JOIN part ON part.message_id = message.id
    WHERE message.session_id = ? AND (message.time_created, message.id, part.id) > (?, ?, ?)
    ORDER BY message.time_created, message.id, part.id LIMIT ?
"""


class _Document(msgspec.Struct, frozen=True):
    messages: list[msgspec.Raw]


_document = msgspec.json.Decoder(_Document)


def iter_records(path: str, session: str | None = None) -> Iterator[bytes]:
    """A transcript's records, one JSON object each; of a database, those of one session.

    A file of lines (Claude Code, Codex, Pi, Gemini CLI), a document with `messages` (older
    chats of Gemini CLI, exports of opencode), or opencode's database. Raises UnreadableTranscript.
    """
    with open_transcript(path) as file:
        head = file.read(len(SQLITE))
        file.seek(0)
        if head == SQLITE:
            yield from _rows(path, session or "")
        elif path.endswith(".json"):
            yield from _messages(read_whole(path, file))
        else:
            yield from _lines(file)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    lines = Lines(file, chunk_bytes=CHUNK_BYTES)
    for line in lines:
        yield line
        if size > WHOLE and lines.offset > HEAD:
            yield from _tail(file, size)
            return
    yield lines.rest


def _tail(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines of the end; the first is a part of one, which no listener can read."""
    file.seek(max(HEAD, size - WHOLE + HEAD))
    lines = Lines(file, chunk_bytes=CHUNK_BYTES)
    yield from lines
    yield lines.rest


def _messages(data: bytes) -> Iterator[bytes]:
    """The messages of a document; one that is cut off or something else has none."""
    try:
        found = _document.decode(data).messages
    except MALFORMED:
        return
    yield from map(bytes, found)


def _rows(path: str, session: str) -> Iterator[bytes]:
    """Each part with its message, as an export has them."""
    place: tuple[object, ...] = (-1, "", "")
    while page := ask(path, lambda opened, at=place: _page(opened, session, at)):
        for *_, info, part in page:
            if isinstance(info, bytes) and isinstance(part, bytes):
                yield b'{"info":' + info + b',"parts":[' + part + b"]}"
        place = tuple(_key(value) for value in page[-1][:3])


def _page(
    opened: sqlite3.Connection, session: str, place: tuple[object, ...]
) -> list[tuple[object, ...]]:
    return opened.execute(PARTS, (session, *place, PAGE)).fetchall()


def _key(value: object) -> object:
    """A column to go on from: a text comes as bytes, and is compared as a text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
