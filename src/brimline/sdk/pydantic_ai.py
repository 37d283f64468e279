"""The `pydantic-ai` package: responses of a model with their usage, not the sums of a run."""

from collections.abc import Iterable, Sequence
from typing import cast

from brimline.context.events import AnyEvent, Call, Edited
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.context.usage import Usage
from brimline.sdk.memory import StreamMemory

REQUEST = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read_tokens",)),
        CountRow("cache_write", ("cache_write_tokens",)),
        CountRow("cache_write_1h", ("cache_write_1h_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_reasoning_tokens", "details.reasoning_tokens")),
    ),
)

NODE_MODULES = ("pydantic_ai._agent_graph", "pydantic_graph")

METADATA_KEY = "__pydantic_ai__"
# Metadata with what was sent if the usage is the sum of several requests; newest name first.
SENT_FIELDS = ("context_input_tokens", "initial_input_tokens")


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a response or a node; empty for a request; None for other objects."""
    if type(seen).__module__.startswith(NODE_MODULES):
        return read(get_path(seen, "model_response"), memory, thread) or []
    kind = get_path(seen, "kind")
    if kind == "request" and get_path(seen, "parts") is not None:
        return []
    if kind != "response" or get_path(seen, "parts") is None:
        return None
    if get_path(seen, "usage.unmeasured_requests"):
        return []
    response_id = get_text(seen, "provider_response_id")
    call = Call(
        id=memory.new_call_id() if response_id is None else response_id,
        usage=_usage(seen),
        model=get_text(seen, "model_name"),
        thread=thread,
        final=get_path(seen, "state") != "incomplete",
    )
    parts = cast("Iterable[object]", get_path(seen, "parts"))
    if any(get_path(part, "part_kind") == "compaction" for part in parts):
        return [Edited(call=call.id, kind="compaction", thread=thread), call]
    return [call]


def _usage(response: object) -> Usage:
    """What the thread sent: in the last of several requests, if that is known."""
    billed = REQUEST.usage(get_path(response, "usage"))
    sent = _sent_tokens(response)
    if sent is None or sent >= billed.sent:
        return billed
    last = get_path(response, "usage.details.output_tokens")
    output = last if type(last) is int and 0 <= last <= billed.output else billed.output
    cached = min(billed.cache_read, sent)
    return Usage(sent - cached, cached, 0, output)


def _sent_tokens(response: object) -> int | None:
    counts = (get_path(response, f"metadata.{METADATA_KEY}.{name}") for name in SENT_FIELDS)
    return next((count for count in counts if type(count) is int and count > 0), None)
