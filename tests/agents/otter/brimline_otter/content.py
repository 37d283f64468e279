"""The content of Otter's transcripts: messages, tool calls and their results."""

from collections.abc import Iterator

from brimline.agents.content import ContentReader, Location, Piece, ReplyText, SummaryText, UserText

from .transcript_source import decode_record


class OtterContent:
    usage_follows_reply = False
    resends_reasoning = False
    silent_prefixes: tuple[bytes, ...] = ()
    outcome_marks: tuple[bytes, ...] = ()

    def read_record(self, record: bytes) -> Iterator[Piece]:
        line = decode_record(record)
        if line.cwd is not None:
            yield Location(line.cwd)
        if line.user is not None:
            yield UserText(line.user, line.at)
        if line.reply:
            yield ReplyText(line.reply, line.at)
        if line.compacted is not None:
            yield SummaryText(line.compacted, line.at)

    def read_line(self, line: bytes) -> Iterator[Piece]:
        return self.read_record(line)


CONTENT_READER: type[ContentReader] = OtterContent
