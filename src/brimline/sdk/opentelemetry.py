"""Attributes of an OpenTelemetry span of a model call, as a dict."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.opentelemetry import (
    ASKED_MODEL,
    MODEL,
    RESPONSE_ID,
    has_span_usage,
    read_span_usage,
)
from brimline.sdk.memory import StreamMemory


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a span's attributes, or None."""
    if not isinstance(seen, Mapping):
        return None
    attributes = cast("Mapping[str, Any]", seen)
    if not has_span_usage(attributes):
        return None
    call = Call(
        id=attributes.get(RESPONSE_ID) or memory.new_call_id(),
        usage=read_span_usage(attributes),
        model=attributes.get(MODEL) or attributes.get(ASKED_MODEL),
        thread=thread,
    )
    return [call]
