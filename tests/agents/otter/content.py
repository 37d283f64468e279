"""The content of Otter's transcripts."""

from collections.abc import Iterator

from brimline.agents.content import Location, Piece, ReplyText, UserText

from .transcript_source import decode_record


class OtterContent:
    """Reads one transcript or stream."""

    silent_prefixes: tuple[bytes, ...] = ()
    outcome_marks: tuple[bytes, ...] = ()

    def read_record(self, record: bytes) -> Iterator[Piece]:
        """Return the pieces of one line."""
        line = decode_record(record)
        if line.cwd is not None:
            yield Location(line.cwd)
        if line.user is not None:
            yield UserText(line.user, line.at)
        if line.reply:
            yield ReplyText(line.reply, line.at)

    read_line = read_record


CONTENT_READER = OtterContent
