"""OpenTelemetry of clients: the decoded form, the readers of records, the settings that send them.

JSON and protobuf are decoded into the same values. What is particular to one client is in
`agents/<name>/telemetry.py`; the spans of any other program are read by the conventions `gen_ai`.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from brimline.context.events import MAIN, AnyEvent, Call
from brimline.context.providers.opentelemetry import (
    ASKED_MODEL,
    CALL_OPERATIONS,
    MODEL,
    OPERATION,
    RESPONSE_ID,
    has_span_usage,
    read_span_usage,
)
from brimline.context.usage import MAX_TOKENS
from brimline.errors import InvalidUsage

Attributes: TypeAlias = Mapping[str, str | int | float | bool]

EVENT_NAME, EVENT_TIMESTAMP = "event.name", "event.timestamp"
MAX_DIGITS = len(str(MAX_TOKENS))


class LogRecord(msgspec.Struct, frozen=True):
    attributes: Attributes
    at: float | None = None


class SpanEvent(msgspec.Struct, frozen=True):
    name: str
    attributes: Attributes
    at: float | None = None


class SpanRecord(msgspec.Struct, frozen=True):
    """A span; `at` is its end, ids are in hexadecimal digits."""

    id: str
    parent: str
    attributes: Attributes
    at: float | None = None
    events: tuple[SpanEvent, ...] = ()


class ScopeTelemetry(msgspec.Struct, frozen=True):
    """The records of one scope, which is a part of a program, in one process of it."""

    resource: Attributes
    scope: str = ""
    logs: tuple[LogRecord, ...] = ()
    spans: tuple[SpanRecord, ...] = ()


class TelemetryEvent(msgspec.Struct, frozen=True):
    """An event of a session; the `id` is equal if the same record is sent again."""

    id: str
    session: str
    event: AnyEvent


class TelemetryReader:
    """Reads the records of one agent's client; only figures and names are taken.

    A record of another kind has no events. The record of a call or a compaction raises InvalidUsage
    if its session, what identifies it or a count is missing, or a count is no number.
    """

    reports_version = True  # whether the resource's `service.version` is the client's

    def is_own(self, service: str, scope: str) -> bool:
        """Whether records are of this client, by the resource's `service.name` and their scope.

        A user may have set another `service.name` for all programs.
        """
        raise NotImplementedError

    def read_log(self, record: LogRecord) -> Sequence[TelemetryEvent]:
        return ()

    def read_span(self, span: SpanRecord) -> Sequence[TelemetryEvent]:
        return ()


def get_text(fields: Attributes, *names: str) -> str:
    """Return the first of these attributes that is there as text, empty if none is."""
    return next((str(fields[name]) for name in names if fields.get(name)), "")


def get_id(fields: Attributes, name: str) -> str:
    """Return the attribute that identifies a session or a record; raises InvalidUsage."""
    if id := get_text(fields, name):
        return id
    raise InvalidUsage(name, None, "an id")


def get_time(record: LogRecord) -> str:
    """Return the time that stands for the id of a record without one; raises InvalidUsage."""
    if time := get_text(record.attributes, EVENT_TIMESTAMP):
        return time
    if record.at is None:
        raise InvalidUsage(EVENT_TIMESTAMP, None, "a time")
    return str(record.at)


def get_count(fields: Attributes, name: str, default: int | None = None) -> int:
    """Return a token count, which some clients send as text; raises InvalidUsage."""
    value = fields.get(name, default)
    is_short = isinstance(value, str) and len(value) <= MAX_DIGITS  # Python reads up to 4,300
    if isinstance(value, str) and is_short and value.isascii() and value.isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidUsage(name, value)


CONVERSATION = "gen_ai.conversation.id"
COMPACTED = "gen_ai.conversation.compacted"


class GenAiTelemetry(TelemetryReader):
    """Reads the spans of model calls; those of agents, which have sums of calls, are skipped."""

    def is_own(self, service: str, scope: str) -> bool:
        return True

    def read_span(self, span: SpanRecord) -> Sequence[TelemetryEvent]:
        return [read_call_span(span)] if is_call_span(span.attributes) else ()


def is_call_span(fields: Attributes) -> bool:
    return fields.get(OPERATION) in CALL_OPERATIONS and has_span_usage(fields)


def read_call_span(span: SpanRecord, thread: str = MAIN) -> TelemetryEvent:
    """Return the call of a span; raises InvalidUsage.

    Two spans of one call, by a framework and by a provider's SDK, have the same response id.
    """
    fields = span.attributes
    session = get_id(fields, CONVERSATION)
    id = get_text(fields, RESPONSE_ID) or span.id or get_id(fields, RESPONSE_ID)
    call = Call(
        at=span.at,
        id=id,
        usage=read_span_usage(fields),
        model=get_text(fields, MODEL, ASKED_MODEL) or None,
        thread=thread,
        is_compacted=fields.get(COMPACTED) is True,
    )
    return TelemetryEvent(span.id or id, session, call)


GEN_AI = GenAiTelemetry()

TOKEN_MARK = "TOKEN"  # stands for the token in every text
OTLP_HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
# With a space: Claude Code 2.1.325 does not decode %20, Gemini CLI 0.61 takes both.
OTLP_HEADERS = f"Authorization=Bearer {TOKEN_MARK}"


class ManagedSettingsFile(msgspec.Struct, frozen=True):
    """The text of a file, and its place; `~` is each user's home."""

    linux: str
    macos: str
    text: str


class ManagedSettings(msgspec.Struct, frozen=True):
    """Settings that point a client's telemetry at the fleet's server; a note for administrators.

    They are rolled out to every machine; nothing of Brimline is installed there.
    """

    client: str
    files: list[ManagedSettingsFile]
    note: str
