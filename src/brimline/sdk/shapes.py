"""Recognise SDK objects by their shape: no SDK is imported."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from brimline.context.events import AnyEvent, Call
from brimline.errors import UnrecognisedObject
from brimline.sdk import (
    anthropic,
    bedrock,
    claude_sdk,
    cohere,
    counts,
    gemini,
    langchain,
    ollama,
    openai,
    openai_agents,
    opentelemetry,
    pydantic_ai,
)
from brimline.sdk.memory import StreamMemory

# In the order in which they are tried: the most certain first.
SHAPES = (
    claude_sdk,
    anthropic,
    openai_agents,
    openai,
    langchain,
    gemini,
    pydantic_ai,
    bedrock,
    cohere,
    ollama,
    opentelemetry,
    counts,
)


def read_events(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent]:
    """The events of an object; empty if it has no usage.

    Raises UnrecognisedObject or InvalidUsage; `memory` is then unchanged.
    """
    for shape in SHAPES:
        events = shape.read(seen, memory, thread)
        if events is not None:
            return [event for event in events if not _is_empty_call(event)]
    raise UnrecognisedObject(_describe(seen), [shape.NAME for shape in SHAPES])


def _is_empty_call(event: AnyEvent) -> bool:
    """A call with no token at all: the provider left the usage out."""
    return isinstance(event, Call) and event.usage.held == 0


def _describe(seen: object) -> str:
    kind = type(seen)
    if isinstance(seen, Mapping):
        mapping = cast("Mapping[object, object]", seen)
        keys = ", ".join(repr(key) for key in islice(mapping, 8))
        return f"a dict with the keys {keys}" if keys else "an empty dict"
    return f"{kind.__module__}.{kind.__qualname__}"
