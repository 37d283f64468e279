"""Google, Amazon Bedrock, Cohere and Ollama: what their packages return and stream."""

from collections.abc import Sequence
from typing import Any

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.gemini import generate_usage
from brimline.context.providers.rows import CountRow, UsageShape, get_items, get_path, get_text
from brimline.context.usage import Usage
from brimline.errors import MalformedJson
from brimline.files.foreign_json import decode_json
from brimline.sdk.anthropic import read_anthropic
from brimline.sdk.stream import StreamMemory

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


def read_gemini(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a `google-genai` answer, chunk or interaction, or None.

    Events of `google-adk` have the same usage; those of a stream in progress are `partial`.
    """
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


CONVERSE = UsageShape(
    "disjoint",
    (
        CountRow("input", ("inputTokens",), required=True),
        CountRow("cache_read", ("cacheReadInputTokens",)),
        CountRow("cache_write", ("cacheWriteInputTokens",)),
        CountRow("output", ("outputTokens",), required=True),
    ),
)

# Some frameworks give other providers' usage these names, with the cache in the prompt.
INCLUSIVE_CONVERSE = UsageShape("subset", CONVERSE.rows)


def converse_usage(reported: object) -> Usage:
    """The usage of Converse; its total shows whether the prompt includes the cache."""
    usage = CONVERSE.usage(reported)
    cached = usage.cache_read + usage.cache_write
    is_included = get_path(reported, "totalTokens") == usage.input + usage.output
    return INCLUSIVE_CONVERSE.usage(reported) if is_included and cached <= usage.input else usage


# The figures of `InvokeModel` are in the last chunk of its stream, whatever the model.
INVOCATION = UsageShape(
    "disjoint",
    (
        CountRow("input", ("inputTokenCount",), required=True),
        CountRow("cache_read", ("cacheReadInputTokenCount",)),
        CountRow("cache_write", ("cacheWriteInputTokenCount",)),
        CountRow("output", ("outputTokenCount",), required=True),
    ),
)


def read_invocation(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a chunk of `invoke_model_with_response_stream`, or None."""
    data = get_path(seen, "chunk.bytes")
    if not isinstance(data, bytes):
        return None
    try:
        chunk: object = decode_json(data, dict[str, Any])
    except MalformedJson:
        return None
    events = read_anthropic(chunk, memory, thread)
    if events is not None:
        return events
    metrics = get_path(chunk, "amazon-bedrock-invocationMetrics")
    if metrics is None:
        return []
    return [Call(id=memory.new_call_id(), usage=INVOCATION.usage(metrics), thread=thread)]


SILENT_EVENTS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
)


def read_bedrock(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a Converse answer or of a stream's last event, which are dicts; or None."""
    reported = get_path(seen, "usage")
    if reported is None:
        reported = get_path(seen, "metadata.usage")
    if get_path(reported, "inputTokens") is None:
        is_event = any(get_path(seen, name) is not None for name in SILENT_EVENTS)
        return [] if is_event else None
    name = get_text(seen, "ResponseMetadata.RequestId") or memory.new_call_id()
    return [Call(id=name, usage=converse_usage(reported), thread=thread)]


CHAT_V2 = UsageShape(
    "subset",
    (
        CountRow("input", ("tokens.input_tokens",), required=True),
        CountRow("cache_read", ("cached_tokens",)),
        CountRow("output", ("tokens.output_tokens",), required=True),
    ),
)

SILENT_PREFIXES = ("message-start", "content-", "tool-", "citation-")


def read_cohere(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of an answer of the Chat API, version 2, or of a stream's last event; or None."""
    reported = get_path(seen, "usage")
    if reported is None:
        reported = get_path(seen, "delta.usage")
    if get_path(reported, "tokens") is None:
        kind = get_text(seen, "type") or ""
        return [] if kind.startswith(SILENT_PREFIXES) else None
    counts = {
        "tokens": {
            name: _whole(get_path(reported, f"tokens.{name}"))
            for name in ("input_tokens", "output_tokens")
        },
        "cached_tokens": _whole(get_path(reported, "cached_tokens")),
    }
    name = get_text(seen, "id") or memory.new_call_id()
    return [Call(id=name, usage=CHAT_V2.usage(counts), thread=thread)]


def _whole(count: object) -> object:
    """Cohere's counts are floats."""
    return int(count) if isinstance(count, float) and count.is_integer() else count


# The cache is not reported. Some versions leave out the count of a prompt that was cached: such an
# answer is refused.
ANSWER = UsageShape(
    "disjoint",
    (
        CountRow("input", ("prompt_eval_count",), required=True),
        CountRow("output", ("eval_count",), required=True),
    ),
)


def read_ollama(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of an answer, or of a stream's last chunk; or None."""
    done, at = get_path(seen, "done"), get_text(seen, "created_at")
    if not isinstance(done, bool) or at is None:
        return None
    if not done:
        return []
    model = get_text(seen, "model")
    # An answer has no id: its time, to the nanosecond, stands for it.
    return [Call(id=f"{model}-{at}", usage=ANSWER.usage(seen), model=model, thread=thread)]
