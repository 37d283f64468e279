"""Spans by OpenTelemetry's conventions `gen_ai`: model calls of any program."""

from collections.abc import Sequence

from brimline.agents.telemetry import (
    Attributes,
    Span,
    TelemetryEvent,
    TelemetryReader,
    get_id,
    get_text,
)
from brimline.context.events import MAIN, Call
from brimline.context.providers.opentelemetry import (
    ASKED_MODEL,
    CALL_OPERATIONS,
    MODEL,
    OPERATION,
    RESPONSE_ID,
    has_span_usage,
    read_span_usage,
)

CONVERSATION = "gen_ai.conversation.id"
COMPACTED = "gen_ai.conversation.compacted"


class GenAiTelemetry(TelemetryReader):
    """Reads the spans of model calls; those of agents, which have sums of calls, are skipped."""

    def is_own(self, service: str, scope: str) -> bool:
        return True

    def read_span(self, span: Span) -> Sequence[TelemetryEvent]:
        return [read_call(span)] if is_call(span.attributes) else ()


def is_call(fields: Attributes) -> bool:
    return fields.get(OPERATION) in CALL_OPERATIONS and has_span_usage(fields)


def read_call(span: Span, thread: str = MAIN) -> TelemetryEvent:
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
