"""The `google-genai` package: answers and streamed chunks of generateContent."""

from collections.abc import Sequence
from typing import cast

from brimline.events import AnyEvent, Call
from brimline.observe.memory import Memory
from brimline.providers.gemini import generate_usage
from brimline.providers.rows import walk

NAME = "a Gemini answer or chunk"


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in an answer or a chunk; None where it is neither."""
    usage = generate_usage(seen)
    if usage is None:
        return [] if isinstance(walk(seen, "candidates"), Sequence) else None
    name = _text(seen, "response_id", "responseId")
    return [
        Call(
            id=name or memory.unnamed(),
            usage=usage,
            model=_text(seen, "model_version", "modelVersion"),
            thread=thread,
            final=_ended(seen),
        )
    ]


def _ended(answer: object) -> bool:
    candidates = walk(answer, "candidates")
    if not isinstance(candidates, Sequence) or not candidates:
        return True
    first = cast("Sequence[object]", candidates)[0]
    return walk(first, "finish_reason") is not None or walk(first, "finishReason") is not None


def _text(answer: object, *names: str) -> str | None:
    values = (walk(answer, name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)
