"""The `openai` package and compatible ones: Responses, Chat Completions, streams."""

from collections.abc import Iterator, Sequence

from brimline.context.events import (
    API_COMPACTION,
    AnyEvent,
    Call,
    Edited,
    Trimmed,
    compaction_thread,
)
from brimline.context.providers.rows import CountRow, UsageShape, get_items, get_path, get_text
from brimline.context.usage import Usage
from brimline.sdk.stream import StreamMemory

RESPONSES = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("input_tokens_details.cached_tokens",)),
        CountRow("cache_write", ("input_tokens_details.cache_write_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_tokens_details.reasoning_tokens",)),
    ),
)

CHAT = UsageShape(
    "subset",
    (
        CountRow("input", ("prompt_tokens",), required=True),
        # The second name is CrewAI's.
        CountRow("cache_read", ("prompt_tokens_details.cached_tokens", "cached_prompt_tokens")),
        CountRow("cache_write", ("prompt_tokens_details.cache_write_tokens",)),
        CountRow("output", ("completion_tokens",), required=True),
        CountRow("reasoning", ("completion_tokens_details.reasoning_tokens",)),
    ),
)

# xAI's models count reasoning in addition to the completion tokens.
CHAT_WITH_SEPARATE_REASONING = UsageShape(
    "subset",
    (
        *CHAT.rows,
        CountRow("output", ("completion_tokens_details.reasoning_tokens",)),
    ),
)

# The OpenAI Agents SDK gives this id to every response that it made of a chat completion.
SHARED_ID = "__fake_id__"
UNFINISHED = frozenset({"queued", "in_progress"})
# Events of the chat helper: without usage.
HELPER_PREFIXES = ("content.", "refusal.", "logprobs.", "tool_calls.")


def read_openai(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of an answer or a stream event, or None."""
    match get_path(seen, "object"):
        case "response":
            return list(_response(seen, memory, thread))
        case "response.compaction":
            return list(_compacted(seen, memory, thread))
        case "chat.completion" | "chat.completion.chunk":
            return list(_chat(seen, memory, thread))
        case _:
            return _event(seen, memory, thread)


def _event(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    kind = get_path(seen, "type")
    if get_path(seen, "data.object") == "chat.completion.chunk":  # an event of `mistralai`
        return read_openai(get_path(seen, "data"), memory, thread)
    if not isinstance(kind, str):
        return None
    if kind.startswith("response."):
        answer = get_path(seen, "response")
        return [] if answer is None else list(_response(answer, memory, thread))
    if kind == "chunk":
        return read_openai(get_path(seen, "chunk"), memory, thread)
    return [] if kind.startswith(HELPER_PREFIXES) else None


def _response(answer: object, memory: StreamMemory, thread: str) -> Iterator[AnyEvent]:
    name, reported = get_text(answer, "id"), get_path(answer, "usage")
    if name is None or reported is None:
        return
    if name == SHARED_ID:
        name = memory.new_call_id()
    usage, model = RESPONSES.usage(reported), get_text(answer, "model")
    final = get_path(answer, "status") not in UNFINISHED
    yield Call(id=name, usage=usage, model=model, thread=thread, final=final)
    if any(get_path(item, "type") == "compaction" for item in get_items(answer, "output")):
        yield Edited(call=name, kind=API_COMPACTION, thread=thread)


def _compacted(answer: object, memory: StreamMemory, thread: str) -> Iterator[AnyEvent]:
    """`responses.compact`: it is billed, and the occupancy is unknown until the next call."""
    name, reported = get_text(answer, "id") or memory.new_call_id(), get_path(answer, "usage")
    if reported is not None:
        yield Call(id=name, usage=RESPONSES.usage(reported), thread=compaction_thread(thread))
    yield Edited(call=name, kind=API_COMPACTION, thread=thread)
    yield Trimmed(thread=thread)


def _chat(answer: object, memory: StreamMemory, thread: str) -> Iterator[AnyEvent]:
    """One chunk of a stream has the usage; some servers send a growing one with each."""
    name, reported = get_text(answer, "id"), get_path(answer, "usage")
    choices = get_items(answer, "choices")
    ended = not choices or any(get_path(each, "finish_reason") is not None for each in choices)
    if reported is None:
        if ended and name:
            memory.mark_ended(name)
        return
    yield Call(
        id=name or memory.new_call_id(),
        usage=chat_usage(reported),
        model=get_text(answer, "model"),
        thread=thread,
        final=ended or memory.is_ended(name),
    )


def chat_usage(reported: object) -> Usage:
    """The usage of a chat completion; its total shows whether it includes reasoning."""
    if get_path(reported, "completion_tokens_details.reasoning_tokens"):
        usage = CHAT_WITH_SEPARATE_REASONING.usage(reported)
        if get_path(reported, "total_tokens") == usage.held:
            return usage
    return CHAT.usage(reported)
