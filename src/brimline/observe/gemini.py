"""The `google-genai` package: answers and chunks of generateContent, and interactions."""

from collections.abc import Sequence
from typing import cast

from brimline.events import AnyEvent, Call
from brimline.observe.memory import StreamMemory
from brimline.providers.gemini import INTERACTION, collapse_requests, generate_usage
from brimline.providers.rows import get_path

NAME = "a Gemini answer, chunk or interaction"


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of an answer, a chunk or an interaction, or None."""
    if get_path(seen, "usage.total_input_tokens") is not None:
        return [_interaction(seen, memory, thread)]
    usage = generate_usage(seen)
    if usage is None:
        return [] if isinstance(get_path(seen, "candidates"), Sequence) else None
    name = _text(seen, "response_id", "responseId")
    return [
        Call(
            id=name or memory.new_call_id(),
            usage=collapse_requests(
                usage, get_path(seen, "usage_metadata.initial_prompt_token_count")
            ),
            model=_text(seen, "model_version", "modelVersion"),
            thread=thread,
            final=_is_final(seen),
        )
    ]


def _interaction(seen: object, memory: StreamMemory, thread: str) -> Call:
    usage = INTERACTION.usage(get_path(seen, "usage"))
    return Call(
        id=_text(seen, "id") or memory.new_call_id(),
        usage=collapse_requests(usage, get_path(seen, "usage.initial_input_tokens")),
        model=_text(seen, "model"),
        thread=thread,
        final=get_path(seen, "status") != "in_progress",
    )


def _is_final(answer: object) -> bool:
    candidates = get_path(answer, "candidates")
    if not isinstance(candidates, Sequence) or not candidates:
        return True
    first = cast("Sequence[object]", candidates)[0]
    return (
        get_path(first, "finish_reason") is not None or get_path(first, "finishReason") is not None
    )


def _text(answer: object, *names: str) -> str | None:
    values = (get_path(answer, name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)
