"""A title for sessions that their client did not name: the first words of the first prompt."""

from collections.abc import Iterable, Iterator

import msgspec

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN
from brimline.context.tracker import Session
from brimline.context.tracker.session_fold import shorten_title
from brimline.errors import UnreadableTranscript

HEAD_BYTES = 256 << 10  # a first prompt that begins later is not looked for


def with_title(session: Session, transcript: Transcript, read_from: int = 0) -> Session:
    """Return a session with a title, if its client gave none and its transcript has a prompt.

    `read_from` is the offset from which the transcript was read: what stands before was searched.
    """
    if session.title is not None or transcript.thread != MAIN or read_from > HEAD_BYTES:
        return session
    return msgspec.structs.replace(session, title=_first_prompt(transcript, read_from))


def _first_prompt(transcript: Transcript, start: int) -> str | None:
    """Return the first words of what the user wrote first, from an offset on."""
    # Imported here: it takes 30 ms, and the sessions of most commands have a title already.
    from brimline.agents.content import UserText, read_content
    from brimline.handoff import iter_records

    reader = get_agent(transcript.agent).content_reader()
    records = _head(iter_records(transcript.path, transcript.session, start), HEAD_BYTES - start)
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
