"""The `google-genai` package: answers and chunks of generateContent, and interactions.

Events of `google-adk` have the same usage; those of a stream in progress are `partial`.
"""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.gemini import generate_usage
from brimline.context.providers.rows import CountRow, UsageShape, get_items, get_path, get_text
from brimline.context.usage import Usage
from brimline.sdk.memory import StreamMemory

INTERACTION = UsageShape(
    "subset",
    (
        CountRow("input", ("total_input_tokens",), required=True),
        CountRow("input", ("total_tool_use_tokens",)),
        CountRow("cache_read", ("total_cached_tokens",)),
        CountRow("output", ("total_output_tokens",)),
        CountRow("output", ("total_thought_tokens",)),
        CountRow("reasoning", ("total_thought_tokens",)),
    ),
)


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


def collapse_requests(usage: Usage, initial: object) -> Usage:
    """The usage of an answer for which the SDK made several requests and added up their prompts.

    `initial` is the first prompt: with all output it is what is held. The usage is returned as it
    is if there was one request, or if the first prompt is unknown.
    """
    if type(initial) is not int or not 0 < initial < usage.sent:
        return usage
    cached = min(usage.cache_read, initial)
    return Usage(initial - cached, cached, 0, usage.output, usage.reasoning)
