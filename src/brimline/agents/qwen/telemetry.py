"""Qwen Code's log records: one `api_response` for each call (0.24.4).

Its spans have the same calls; of these only the window is read, which no log record has.
"""

from collections.abc import Sequence

import msgspec

from brimline.agents.telemetry import (
    EVENT_NAME,
    LogRecord,
    SpanRecord,
    TelemetryEvent,
    TelemetryReader,
    get_count,
    get_id,
    get_text,
    get_time,
)
from brimline.context.events import MAIN, Call, Compacted, WindowReported
from brimline.context.usage import MAX_TOKENS, from_subset
from brimline.errors import MalformedJson
from brimline.files.foreign_json import decode_json

SERVICE = "qwen-code"  # also the name of its scope
API_RESPONSE = "qwen-code.api_response"
CHAT_COMPRESSION = "qwen-code.chat_compression"
CONTEXT_USAGE = "qwen-code.context.usage"


class QwenContextUsage(msgspec.Struct):
    """What a span says about the context, as JSON in a text."""

    window_size_tokens: int


class QwenTelemetry(TelemetryReader):
    def is_own(self, service: str, scope: str) -> bool:
        return SERVICE in (service, scope)

    def read_log(self, record: LogRecord) -> Sequence[TelemetryEvent]:
        fields = record.attributes
        if fields.get(EVENT_NAME) not in (API_RESPONSE, CHAT_COMPRESSION):
            return ()
        session = get_id(fields, "session.id")
        if fields.get(EVENT_NAME) == API_RESPONSE:
            id = get_text(fields, "response_id") or get_time(record)
            return [TelemetryEvent(id, session, _read_call(id, record))]
        # `tokens_after` is 0 in real records: it says nothing.
        event = Compacted(at=record.at, before=get_count(fields, "tokens_before"))
        return [TelemetryEvent(f"compression {get_time(record)}", session, event)]

    def read_span(self, span: SpanRecord) -> Sequence[TelemetryEvent]:
        session, usage = (get_text(span.attributes, name) for name in ("session.id", CONTEXT_USAGE))
        try:
            window = decode_json(usage, QwenContextUsage).window_size_tokens
        except MalformedJson:
            return ()
        if not session or not 0 < window <= MAX_TOKENS:
            return ()
        model = get_text(span.attributes, "gen_ai.request.model") or None
        event = WindowReported(tokens=window, model=model)
        return [TelemetryEvent(f"window {window} {model}", session, event)]


def _read_call(id: str, record: LogRecord) -> Call:
    """A call; thoughts are a part of the output count, unlike Gemini CLI's."""
    fields = record.attributes
    usage = from_subset(
        get_count(fields, "input_token_count"),
        get_count(fields, "cached_content_token_count", 0),
        0,
        get_count(fields, "output_token_count"),
        get_count(fields, "thoughts_token_count", 0),
    )
    thread = get_text(fields, "subagent_name") or MAIN
    model = get_text(fields, "model") or None
    return Call(at=record.at, id=id, usage=usage, model=model, thread=thread)


TELEMETRY = QwenTelemetry()
