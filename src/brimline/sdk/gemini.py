"""The `google-genai` package: answers and chunks of generateContent, and interactions.

Events of `google-adk` have the same usage; those of a stream in progress are `partial`.
"""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.gemini import INTERACTION, collapse_requests, generate_usage
from brimline.context.providers.rows import get_items, get_path, get_text
from brimline.sdk.memory import StreamMemory

NAME = "a Gemini answer, chunk or interaction, or an event of Google ADK"


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of an answer, a chunk or an interaction, or None."""
    if get_path(seen, "usage.total_input_tokens") is not None:
        return [_interaction(seen, memory, thread)]
    is_event = hasattr(seen, "invocation_id") and hasattr(seen, "author")
    if is_event and get_path(seen, "partial"):
        return []
    usage = generate_usage(seen)
    if usage is None:
        return [] if is_event or isinstance(get_path(seen, "candidates"), Sequence) else None
    initial = get_path(seen, "usage_metadata.initial_prompt_token_count")
    ids = ("response_id", "responseId", *(("id",) if is_event else ()))
    return [
        Call(
            id=get_text(seen, *ids) or memory.new_call_id(),
            usage=collapse_requests(usage, initial),
            model=get_text(seen, "model_version", "modelVersion"),
            thread=thread,
            final=_is_final(seen),
        )
    ]


def _interaction(seen: object, memory: StreamMemory, thread: str) -> Call:
    usage = INTERACTION.usage(get_path(seen, "usage"))
    return Call(
        id=get_text(seen, "id") or memory.new_call_id(),
        usage=collapse_requests(usage, get_path(seen, "usage.initial_input_tokens")),
        model=get_text(seen, "model"),
        thread=thread,
        final=get_path(seen, "status") != "in_progress",
    )


def _is_final(answer: object) -> bool:
    candidates = get_items(answer, "candidates")
    reasons = ("finish_reason", "finishReason")
    return not candidates or any(get_path(candidates[0], name) is not None for name in reasons)
