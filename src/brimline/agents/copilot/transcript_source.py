"""Copilot CLI: how its files and streams are recognised and read."""

import re
from collections.abc import Sequence

import msgspec

from brimline.agents.copilot import paths
from brimline.agents.copilot.records import STORED_KINDS, STREAM_END, CopilotHead
from brimline.agents.copilot.transcript import EventsParser
from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.source import Form, Parser, Transcript, parse_time
from brimline.context.events import AnyEvent, SessionSeen
from brimline.files.foreign_json import JsonDecoder

_head = JsonDecoder(CopilotHead)
_producer = re.compile(rb'"producer"\s*:\s*"copilot-agent"')


class CopilotStreamParser(Parser):
    """One run of `copilot --output-format json`: no usage at all, and the session at its end."""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _head.decode(record)
        if line.type == STREAM_END:
            at = parse_time(line.timestamp)
            return (SessionSeen(at=at, session=line.session_id, agent="copilot"),)
        return () if line.ephemeral or line.type in STORED_KINDS else None


class Copilot(LineSource):
    """Copilot CLI: one file of lines for a session and its subagents."""

    agent = "copilot"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def parser(self, transcript: Transcript, carry: bytes = b"") -> EventsParser:
        return EventsParser(carry, transcript.session)

    def stream(self) -> CopilotStreamParser:
        return CopilotStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """By its producer or the shape of its lines; only a stream has ephemeral ones."""
        lines = [line for each in head.split(b"\n") if (line := _head.decode_or_none(each))]
        own = [line for line in lines if _is_own(line)]
        if any(line.ephemeral or line.type == STREAM_END for line in own):
            return "stream"
        return "transcript" if own or _producer.search(head) else None


def _is_own(line: CopilotHead) -> bool:
    if line.type == STREAM_END:
        return line.session_id is not None and line.exit_code is not None
    has_envelope = line.id is not None and line.timestamp is not None and bool(line.data)
    has_parent = not isinstance(line.parent_id, msgspec.UnsetType)
    return has_envelope and has_parent and (line.ephemeral or line.type in STORED_KINDS)


SOURCE = Copilot()
