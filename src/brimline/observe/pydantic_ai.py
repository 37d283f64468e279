"""The `pydantic-ai` package: a model's response with its usage; never a run's sums."""

from collections.abc import Iterable, Sequence
from typing import cast

from brimline.events import AnyEvent, Call, Edited
from brimline.observe.memory import Memory
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import walk
from brimline.usage import Usage

NAME = "a Pydantic AI response"

MARK = "__pydantic_ai__"
CONTEXT = ("context_input_tokens", "initial_input_tokens")
"""Where it says what was sent when its usage is the cost of several requests; newest name first."""


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in a response, none in a request; None where it is neither."""
    kind = walk(seen, "kind")
    if kind == "request" and walk(seen, "parts") is not None:
        return []
    if kind != "response" or walk(seen, "parts") is None:
        return None
    if walk(seen, "usage.unmeasured_requests"):
        return []
    told, model = walk(seen, "provider_response_id"), walk(seen, "model_name")
    call = Call(
        id=told if isinstance(told, str) else memory.unnamed(),
        usage=_usage(seen),
        model=model if isinstance(model, str) else None,
        thread=thread,
        final=walk(seen, "state") != "incomplete",
    )
    parts = cast("Iterable[object]", walk(seen, "parts"))
    if any(walk(part, "part_kind") == "compaction" for part in parts):
        return [Edited(call=call.id, kind="compaction", thread=thread), call]
    return [call]


def _usage(response: object) -> Usage:
    """What the thread sent: of several requests in one response the last, where it is told."""
    billed = REQUEST.usage(walk(response, "usage"))
    sent = _context(response)
    if sent is None or sent >= billed.sent:
        return billed
    told = walk(response, "usage.details.output_tokens")
    output = told if type(told) is int and 0 <= told <= billed.output else billed.output
    cached = min(billed.cache_read, sent)
    return Usage(sent - cached, cached, 0, output)


def _context(response: object) -> int | None:
    told = (walk(response, f"metadata.{MARK}.{name}") for name in CONTEXT)
    return next((count for count in told if type(count) is int and count > 0), None)
