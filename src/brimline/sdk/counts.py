"""A usage without its answer: it has no id, so each one is a new call."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.anthropic import usage_of
from brimline.context.providers.gemini import GENERATE
from brimline.context.providers.rows import CountRow, UsageShape, get_path
from brimline.context.usage import Usage
from brimline.errors import InvalidUsage
from brimline.sdk.frameworks import REQUEST, USAGE_METADATA, check_single_request
from brimline.sdk.openai import RESPONSES, chat_usage
from brimline.sdk.other_providers import CONVERSE
from brimline.sdk.stream import StreamMemory

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
        CONVERSE.usage,
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
    Marks(chat_usage, ("prompt_tokens", "completion_tokens")),
    Marks(GENERATE.usage, ("prompt_token_count",)),
    Marks(GENERATE.usage, ("promptTokenCount",)),
)


def read_usage(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of a usage, or None."""
    candidates = [marks for marks in KNOWN if all(_has(seen, name) for name in marks.counts)]
    if not candidates:
        return None
    check_single_request(seen)
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
