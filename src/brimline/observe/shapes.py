"""Whose object it is, told by its shape: no SDK is imported, and none is a dependency."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import cast

from brimline.errors import UnrecognisedObject
from brimline.events import AnyEvent, Call
from brimline.observe import anthropic, claude_sdk, counts, gemini, openai, pydantic_ai
from brimline.observe.memory import Memory

SHAPES = (claude_sdk, anthropic, openai, gemini, pydantic_ai, counts)
"""In the order in which they are tried: what is told most surely comes first."""


def events_of(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent]:
    """The events in an object; nothing where it tells none, an error where its shape is unknown.

    Raises UnrecognisedObject or InvalidUsage, and has then changed nothing.
    """
    for shape in SHAPES:
        found = shape.read(seen, memory, thread)
        if found is not None:
            return [event for event in found if not _empty(event)]
    raise UnrecognisedObject(_name(seen), [shape.NAME for shape in SHAPES])


def _empty(event: AnyEvent) -> bool:
    """A call with no token at all: the provider left the usage out."""
    return isinstance(event, Call) and event.usage.held == 0


def _name(seen: object) -> str:
    kind = type(seen)
    if isinstance(seen, Mapping):
        known = cast("Mapping[object, object]", seen)
        keys = ", ".join(repr(key) for key in islice(known, 8))
        return f"a dict with the keys {keys}" if keys else "an empty dict"
    return f"{kind.__module__}.{kind.__qualname__}"
