"""Attributes of an OpenTelemetry span of a model call, as a dict."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from brimline.events import AnyEvent, Call
from brimline.observe.memory import StreamMemory
from brimline.providers.opentelemetry import PREFIX, SPAN

NAME = "the attributes of an OpenTelemetry span with `gen_ai.usage`"

RESPONSE_ID = "gen_ai.response.id"
# Google ADK 2.13 has only the model that was asked for.
MODEL, ASKED_MODEL = "gen_ai.response.model", "gen_ai.request.model"


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a span's attributes, or None."""
    if not isinstance(seen, Mapping) or f"{PREFIX}input_tokens" not in seen:
        return None
    attributes = cast("Mapping[str, Any]", seen)
    call = Call(
        id=attributes.get(RESPONSE_ID) or memory.new_call_id(),
        usage=SPAN.usage(_nest_counts(attributes)),
        model=attributes.get(MODEL) or attributes.get(ASKED_MODEL),
        thread=thread,
    )
    return [call]


def _nest_counts(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """`cache_read.input_tokens` as a field of a field, even if `cache_read` is there, too."""
    counts: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(PREFIX):
            parent, _, last = name.removeprefix(PREFIX).rpartition(".")
            (parts.setdefault(parent, {}) if parent else counts)[last] = value
    return counts | parts
