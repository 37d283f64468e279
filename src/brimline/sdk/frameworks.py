"""Frameworks above the providers: Pydantic AI, LangChain, LangGraph, OpenAI Agents, spans.

The answers of a model are read, not the sums of a run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from brimline.context.events import API_COMPACTION, AnyEvent, Call, Edited
from brimline.context.providers.opentelemetry import (
    ASKED_MODEL,
    MODEL,
    RESPONSE_ID,
    has_span_usage,
    read_span_usage,
)
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.context.usage import Usage
from brimline.sdk.openai import RESPONSES, SHARED_ID, read_openai
from brimline.sdk.stream import StreamMemory
from brimline.sdk.summed_usage import check_one_call

REQUEST = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read_tokens",)),
        CountRow("cache_write", ("cache_write_tokens",)),
        CountRow("cache_write_1h", ("cache_write_1h_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_reasoning_tokens", "details.reasoning_tokens")),
    ),
)

NODE_MODULES = ("pydantic_ai._agent_graph", "pydantic_graph")

METADATA_KEY = "__pydantic_ai__"
# Metadata with what was sent if the usage is the sum of several requests; newest name first.
SENT_FIELDS = ("context_input_tokens", "initial_input_tokens")


def read_pydantic_ai(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a `pydantic-ai` response or node; empty for a request; None for others."""
    if type(seen).__module__.startswith(NODE_MODULES):
        return read_pydantic_ai(get_path(seen, "model_response"), memory, thread) or []
    kind = get_path(seen, "kind")
    if kind == "request" and get_path(seen, "parts") is not None:
        return []
    if kind != "response" or get_path(seen, "parts") is None:
        return None
    if get_path(seen, "usage.unmeasured_requests"):
        return []
    response_id = get_text(seen, "provider_response_id")
    call = Call(
        id=memory.new_call_id() if response_id is None else response_id,
        usage=_request_usage(seen),
        model=get_text(seen, "model_name"),
        thread=thread,
        final=get_path(seen, "state") != "incomplete",
    )
    parts = cast("Iterable[object]", get_path(seen, "parts"))
    if any(get_path(part, "part_kind") == "compaction" for part in parts):
        return [call, Edited(call=call.id, kind=API_COMPACTION, thread=thread)]
    return [call]


def _request_usage(response: object) -> Usage:
    """What the thread sent: in the last of several requests, if that is known."""
    billed = REQUEST.usage(get_path(response, "usage"))
    sent = _sent_tokens(response)
    if sent is None or sent >= billed.sent:
        return billed
    last = get_path(response, "usage.details.output_tokens")
    output = last if type(last) is int and 0 <= last <= billed.output else billed.output
    cached = min(billed.cache_read, sent)
    return Usage(sent - cached, cached, 0, output)


def _sent_tokens(response: object) -> int | None:
    counts = (get_path(response, f"metadata.{METADATA_KEY}.{name}") for name in SENT_FIELDS)
    return next((count for count in counts if type(count) is int and count > 0), None)


# langchain-anthropic sets `cache_creation` to 0 if it has the writes by their time to live.
USAGE_METADATA = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("input_token_details.cache_read",)),
        CountRow("cache_write", ("input_token_details.cache_creation",)),
        CountRow("cache_write", ("input_token_details.ephemeral_5m_input_tokens",)),
        CountRow("cache_write", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("cache_write_1h", ("input_token_details.ephemeral_1h_input_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("output_token_details.reasoning",)),
    ),
)

MESSAGE_TYPES = frozenset({"ai", "AIMessageChunk"})
OTHER_TYPES = frozenset({"human", "system", "tool", "HumanMessageChunk", "ToolMessageChunk"})


def read_langchain(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a message, or of a chunk of its stream, which add up to one; or None."""
    if not isinstance(get_path(seen, "response_metadata"), Mapping):
        return None
    kind = get_text(seen, "type")
    if kind not in MESSAGE_TYPES:
        return [] if kind in OTHER_TYPES else None
    reported = get_path(seen, "usage_metadata")
    if reported is None:
        return []
    name = get_text(seen, "id", "response_metadata.id") or memory.new_call_id()
    usage = USAGE_METADATA.usage(reported)
    is_chunk = kind == "AIMessageChunk"
    return [
        Call(
            id=name,
            usage=memory.add_chunk(name, usage) if is_chunk else usage,
            model=get_text(
                seen, "response_metadata.model_name", "response_metadata.model", "model_name"
            ),
            thread=thread,
            final=not is_chunk or usage.output > 0,
        )
    ]


def read_langgraph(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The calls of what a graph of LangGraph streams, or None.

    That is a message with its metadata, an update of each node, or the whole state, and with
    several stream modes or subgraphs a tuple that ends with one of these.
    """
    if isinstance(seen, tuple):
        item = cast("tuple[object, ...]", seen)
        is_message = len(item) == 2 and isinstance(item[1], Mapping)
        if is_message and (events := read_langchain(item[0], memory, thread)) is not None:
            return events
        return read_langgraph(item[-1], memory, thread) if item else None
    if not isinstance(seen, Mapping):
        return None
    state = cast("Mapping[str, object]", seen)
    updates = [state] if "messages" in state else list(state.values())
    read = [
        events
        for update in updates
        for message in _new_messages(update)
        if (events := read_langchain(message, memory, thread)) is not None
    ]
    return [event for events in read for event in events] if read else None


def _new_messages(update: object) -> Sequence[object]:
    """The messages behind the last one of the user: those before it are of earlier runs."""
    if not isinstance(update, Mapping):
        return []
    messages = get_path(cast("Mapping[str, object]", update), "messages")
    if not isinstance(messages, Sequence):
        return [] if messages is None else [messages]
    listed = list(cast("Sequence[object]", messages))
    starts = [place for place, each in enumerate(listed) if get_path(each, "type") == "human"]
    return listed[starts[-1] :] if starts else listed


def read_span(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a span's attributes, or None."""
    if not isinstance(seen, Mapping):
        return None
    attributes = cast("Mapping[str, Any]", seen)
    if not has_span_usage(attributes):
        return None
    call = Call(
        id=attributes.get(RESPONSE_ID) or memory.new_call_id(),
        usage=read_span_usage(attributes),
        model=attributes.get(MODEL) or attributes.get(ASKED_MODEL),
        thread=thread,
    )
    return [call]


# Events of a run that only repeat what raw events said.
REPEATING_EVENTS = frozenset({"agent_updated_stream_event", "run_item_stream_event"})


def read_openai_agents(
    seen: object, memory: StreamMemory, thread: str
) -> Sequence[AnyEvent] | None:
    """The events of an `openai-agents` response or stream event, or None."""
    match get_path(seen, "type"):
        case "raw_response_event":
            return read_openai(get_path(seen, "data"), memory, thread) or []
        case kind if isinstance(kind, str) and kind in REPEATING_EVENTS:
            return []
        case _:
            return _agents_response(seen, memory, thread) if hasattr(seen, "response_id") else None


def _agents_response(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    reported = get_path(seen, "usage")
    if not hasattr(seen, "output") or not hasattr(reported, "requests"):
        return None
    if not get_path(reported, "requests"):  # the provider reported no usage
        return []
    check_one_call(reported)
    name = get_text(seen, "response_id")
    if name is None or name == SHARED_ID:
        name = memory.new_call_id()
    return [Call(id=name, usage=RESPONSES.usage(reported), thread=thread)]
