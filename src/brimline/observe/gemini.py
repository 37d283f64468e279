"""The `google-genai` package: answers and chunks of generateContent, and interactions."""

from collections.abc import Sequence
from typing import cast

from brimline.events import AnyEvent, Call
from brimline.observe.memory import Memory
from brimline.providers.gemini import INTERACTION, generate_usage, without_hops
from brimline.providers.rows import walk

NAME = "a Gemini answer, chunk or interaction"


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in an answer, a chunk or an interaction; None where it is none of these."""
    if walk(seen, "usage.total_input_tokens") is not None:
        return [_interaction(seen, memory, thread)]
    usage = generate_usage(seen)
    if usage is None:
        return [] if isinstance(walk(seen, "candidates"), Sequence) else None
    name = _text(seen, "response_id", "responseId")
    return [
        Call(
            id=name or memory.unnamed(),
            usage=without_hops(usage, walk(seen, "usage_metadata.initial_prompt_token_count")),
            model=_text(seen, "model_version", "modelVersion"),
            thread=thread,
            final=_ended(seen),
        )
    ]


def _interaction(seen: object, memory: Memory, thread: str) -> Call:
    usage = INTERACTION.usage(walk(seen, "usage"))
    return Call(
        id=_text(seen, "id") or memory.unnamed(),
        usage=without_hops(usage, walk(seen, "usage.initial_input_tokens")),
        model=_text(seen, "model"),
        thread=thread,
        final=walk(seen, "status") != "in_progress",
    )


def _ended(answer: object) -> bool:
    candidates = walk(answer, "candidates")
    if not isinstance(candidates, Sequence) or not candidates:
        return True
    first = cast("Sequence[object]", candidates)[0]
    return walk(first, "finish_reason") is not None or walk(first, "finishReason") is not None


def _text(answer: object, *names: str) -> str | None:
    values = (walk(answer, name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)
