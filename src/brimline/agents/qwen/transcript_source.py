"""Qwen Code: how its files and streams are recognised and read, and the events of a stream."""

from collections.abc import Sequence

from brimline.agents.qwen import paths
from brimline.agents.qwen.records import CHAT_KINDS, STREAM_KINDS, QwenHead, QwenStreamLine
from brimline.agents.qwen.transcript import QwenChatParser
from brimline.agents.transcripts.line_source import LineSource
from brimline.agents.transcripts.source import Form, Parser, Transcript
from brimline.context.events import MAIN, AnyEvent, Call, SessionSeen
from brimline.context.usage import from_subset
from brimline.files.foreign_json import JsonDecoder

_line = JsonDecoder(QwenStreamLine)
_head = JsonDecoder(QwenHead)


class QwenStreamParser(Parser):
    """One run of `qwen --output-format stream-json`, with the calls of the main thread.

    The usage of its `result` is that of the whole session, also of the runs before.
    """

    def feed(self, record: bytes) -> Sequence[AnyEvent] | None:
        line = _line.decode(record)
        if line.type == "system" and line.subtype == "init":
            return (
                SessionSeen(
                    session=line.session_id,
                    agent="qwen",
                    project=line.cwd,
                    version=line.qwen_code_version,
                ),
            )
        if line.type == "assistant":
            return _calls(line)
        return () if line.type in STREAM_KINDS else None


def _calls(line: QwenStreamLine) -> Sequence[AnyEvent]:
    message = line.message
    if message is None or message.id is None or message.usage is None:
        return ()
    counts = message.usage
    if not (counts.input_tokens or counts.output_tokens):
        return ()  # a part of a reply that goes on
    usage = from_subset(
        counts.input_tokens, counts.cache_read_input_tokens, 0, counts.output_tokens, 0
    )
    thread = line.parent_tool_use_id or MAIN
    return (Call(id=message.id, usage=usage, model=message.model, thread=thread),)


class Qwen(LineSource):
    """Qwen Code 0.15 and newer; the window is in its records since 0.24."""

    agent = "qwen"
    folders = staticmethod(paths.folders)
    settings = staticmethod(paths.settings)
    transcripts = staticmethod(paths.transcripts)

    def parser(self, transcript: Transcript, carry: bytes = b"") -> QwenChatParser:
        is_main = transcript.thread == MAIN
        model = None if is_main else paths.read_subagent_file(transcript.path).model
        return QwenChatParser(carry, transcript.thread, transcript.path, model)

    def stream(self) -> QwenStreamParser:
        return QwenStreamParser()

    def recognise(self, head: bytes) -> Form | None:
        """A chat's messages have `parts`, as Google's API; a stream names the client's version."""
        for line in head.split(b"\n"):
            first = _head.decode_or_none(line)
            if first is None:
                continue
            if first.qwen_code_version is not None:
                return "stream"
            if first.type in CHAT_KINDS and first.session_id is not None:
                has_parts = b'"parts"' in bytes(first.message)
                return "transcript" if has_parts or bytes(first.system_payload) else None
        return None


SOURCE = Qwen()
