"""The `pydantic-ai` package: a model's response with its usage; never a run's sums."""

from collections.abc import Sequence

from brimline.events import AnyEvent, Call
from brimline.observe.memory import Memory
from brimline.providers.pydantic_ai import REQUEST
from brimline.providers.rows import walk

NAME = "a Pydantic AI response"


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in a response, none in a request; None where it is neither."""
    kind = walk(seen, "kind")
    if kind == "request" and walk(seen, "parts") is not None:
        return []
    if kind != "response" or walk(seen, "parts") is None:
        return None
    name, model = walk(seen, "provider_response_id"), walk(seen, "model_name")
    if walk(seen, "usage.unmeasured_requests"):
        return []
    return [
        Call(
            id=name if isinstance(name, str) else memory.unnamed(),
            usage=REQUEST.usage(walk(seen, "usage")),
            model=model if isinstance(model, str) else None,
            thread=thread,
        )
    ]
