"""Kimi Code: how its files and streams are recognised and read."""

from collections.abc import Sequence

from brimline.agents.kimi import paths
from brimline.agents.kimi.records import STREAM_ROLES, KimiHead
from brimline.agents.kimi.transcript import WireParser
from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.source import Form, Parser, Transcript
from brimline.context.events import AnyEvent, SessionSeen
from brimline.files.foreign_json import JsonDecoder

_head = JsonDecoder(KimiHead)


class KimiStreamParser(Parser):
    """One run of `kimi --output-format stream-json`: no usage, and the session at its end."""

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _head.decode(record)
        if line.role == "meta" and line.session_id is not None:
            return (SessionSeen(session=line.session_id, agent="kimi"),)
        return () if line.role in STREAM_ROLES else None


class Kimi(LineSource):
    """Kimi Code 2: a file of lines for each thread of a session."""

    agent = "kimi"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def parser(self, transcript: Transcript, carry: bytes = b"") -> WireParser:
        return WireParser(carry, transcript.session, transcript.thread, transcript.project)

    def stream(self) -> KimiStreamParser:
        return KimiStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """A file begins with the version of its protocol, a stream with that of the client."""
        for line in head.split(b"\n")[:8]:
            first = _head.decode_or_none(line) or KimiHead()
            if first.type == "metadata" and first.protocol_version is not None:
                return "transcript"
            if first.role == "meta" and first.type in ("system.version", "session.resume_hint"):
                return "stream"
        return None


SOURCE = Kimi()
