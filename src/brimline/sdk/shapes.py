"""Recognise SDK objects by their shape: no SDK is imported.

A usage may come without its answer: it then has no id, and each one is a new call.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import cast

import msgspec

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.anthropic import usage_of
from brimline.context.providers.gemini import GENERATE
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage, UnrecognisedObject
from brimline.sdk.anthropic import read_anthropic, read_claude_agent
from brimline.sdk.frameworks import (
    REQUEST,
    USAGE_METADATA,
    read_langchain,
    read_langgraph,
    read_openai_agents,
    read_pydantic_ai,
    read_span,
)
from brimline.sdk.openai import RESPONSES, chat_usage, read_openai
from brimline.sdk.other_providers import (
    converse_usage,
    read_bedrock,
    read_cohere,
    read_gemini,
    read_invocation,
    read_ollama,
)
from brimline.sdk.stream import StreamMemory
from brimline.sdk.summed_usage import check_one_call, check_type

# Vercel's AI SDK, for all providers; the newest name first.
GENERATED = UsageShape(
    "subset",
    (
        CountRow("input", ("inputTokens",), required=True),
        CountRow("cache_read", ("inputTokenDetails.cacheReadTokens", "cachedInputTokens")),
        CountRow("cache_write", ("inputTokenDetails.cacheWriteTokens",)),
        CountRow("output", ("outputTokens",), required=True),
        CountRow("reasoning", ("outputTokenDetails.reasoningTokens", "reasoningTokens")),
    ),
)

# CrewAI's usage of a call, by its own clients.
CREWAI = UsageShape(
    "subset",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cached_prompt_tokens",)),
        CountRow("cache_write", ("cache_creation_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
        CountRow("reasoning", ("reasoning_tokens",)),
    ),
)

MIXED = "These are fields of different APIs: pass the usage as one of them reported it."


class Marks(msgspec.Struct, frozen=True):
    """How the usage of an API is recognised: it has `counts`, and of the other marks only `own`."""

    read: Callable[[object], Usage | None]
    counts: tuple[str, ...]
    own: tuple[str, ...] = ()


# Of several that fit, the first is used: they then differ in nothing that is there.
KNOWN = (
    Marks(
        usage_of,
        ("input_tokens", "output_tokens"),
        (
            "cache_creation",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
            "iterations",
            "output_tokens_details",
        ),
    ),
    Marks(
        RESPONSES.usage,
        ("input_tokens", "output_tokens"),
        ("input_tokens_details", "output_tokens_details", "total_tokens"),
    ),
    Marks(
        REQUEST.usage,
        ("input_tokens", "output_tokens"),
        ("cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "total_tokens"),
    ),
    Marks(
        USAGE_METADATA.usage,
        ("input_tokens", "output_tokens"),
        ("input_token_details", "output_token_details", "total_tokens"),
    ),
    Marks(
        converse_usage,
        ("inputTokens", "outputTokens"),
        ("cacheReadInputTokens", "cacheWriteInputTokens", "totalTokens"),
    ),
    Marks(
        GENERATED.usage,
        ("inputTokens", "outputTokens"),
        (
            "cachedInputTokens",
            "inputTokenDetails",
            "outputTokenDetails",
            "reasoningTokens",
            "totalTokens",
        ),
    ),
    Marks(
        CREWAI.usage,
        ("input_tokens", "output_tokens"),
        ("cached_prompt_tokens", "cache_creation_tokens", "reasoning_tokens", "total_tokens"),
    ),
    Marks(chat_usage, ("prompt_tokens", "completion_tokens")),
    Marks(GENERATE.usage, ("prompt_token_count",)),
    Marks(GENERATE.usage, ("promptTokenCount",)),
)


def read_usage(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a usage, or None. Raises SummedUsage for the usage of several calls."""
    check_one_call(seen)
    candidates = [marks for marks in KNOWN if all(_has(seen, name) for name in marks.counts)]
    if not candidates:
        return None
    usage = _recognise(seen, candidates).read(seen)
    return [] if usage is None else [Call(id=memory.new_call_id(), usage=usage, thread=thread)]


def _recognise(seen: object, candidates: Sequence[Marks]) -> Marks:
    """The candidate that has all marks that are there. Raises InvalidUsage if none has."""
    marks = {name for each in candidates for name in each.own if get_path(seen, name) is not None}
    fitting = [each for each in candidates if marks.issubset(each.own)]
    names = sorted(marks) if not fitting else sorted({each.counts[0] for each in fitting})
    if not fitting or len(names) > 1:
        others = ", ".join(repr(name) for name in names[:-1])
        raise InvalidUsage(
            names[-1], get_path(seen, names[-1]), f"absent if {others} is present", MIXED
        )
    return fitting[0]


def _has(seen: object, name: str) -> bool:
    return name in seen if isinstance(seen, Mapping) else hasattr(seen, name)


# Where frameworks keep the provider's answer, or its usage: `raw` is LlamaIndex's name,
# `inner_content` Semantic Kernel's.
INNER = ("raw", "inner_content", "usage")

# What can be observed, in the order in which it is tried: the most certain first.
READERS = (
    ("a Claude Agent SDK message or a line of Claude Code's stream", read_claude_agent),
    ("an Anthropic message or one of its stream events", read_anthropic),
    ("an OpenAI Agents SDK response or stream event", read_openai_agents),
    ("an OpenAI response, completion, chunk or stream event", read_openai),
    ("a LangChain message or chunk", read_langchain),
    ("an item of a LangGraph stream", read_langgraph),
    ("a Gemini answer, chunk or interaction, or an event of Google ADK", read_gemini),
    ("a Pydantic AI response or node", read_pydantic_ai),
    ("a Bedrock Converse answer or stream event", read_bedrock),
    ("a chunk of Bedrock's InvokeModel", read_invocation),
    ("a Cohere answer or stream event", read_cohere),
    ("an Ollama answer or chunk", read_ollama),
    ("the attributes of an OpenTelemetry span with `gen_ai.usage`", read_span),
    (
        (
            "a usage of Anthropic, OpenAI, Gemini, Bedrock, LiteLLM, LangChain, Pydantic AI "
            "or Vercel's SDK"
        ),
        read_usage,
    ),
)


def read_events(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent]:
    """The events of an object; empty if it has no usage.

    Raises UnrecognisedObject or InvalidUsage; `memory` is then unchanged.
    """
    events = _read(seen, memory, thread)
    if events is None:
        events = _read_inner(seen, memory, thread)
    if events is None:
        raise UnrecognisedObject(_describe(seen), [name for name, _ in READERS])
    return [event for event in events if not _is_empty_call(event)]


def _read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    check_type(seen)
    results = (read(seen, memory, thread) for _, read in READERS)
    return next((events for events in results if events is not None), None)


def _read_inner(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of a provider's answer or usage in an object of a framework, or None.

    The usage of a batch, of an evaluation and so on, which is a sum, has the kind of its `object`.
    """
    for name in INNER:
        inner = get_path(seen, name)
        is_other = name == "usage" and get_path(seen, "object") is not None
        if inner is None or is_other or callable(inner):
            continue
        events = _read(inner, memory, thread)
        if events is not None:
            id = get_text(seen, "id", "response_id")
            return events if name != "usage" or id is None else [_with_id(e, id) for e in events]
    return None


def _with_id(event: AnyEvent, id: str) -> AnyEvent:
    """A call of a bare usage gets the id of the object, so that it counts once."""
    return msgspec.structs.replace(event, id=id) if isinstance(event, Call) else event


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
