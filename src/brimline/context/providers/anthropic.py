"""Anthropic Messages: usage of an answer, and of a stream by its SSE events."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from brimline.context.events import Spent
from brimline.context.providers.rows import CountRow, UsageShape, get_items, get_path, get_text
from brimline.context.usage import ZERO, Usage

MESSAGES = UsageShape(
    "disjoint",
    (
        CountRow("input", ("input_tokens",), required=True),
        CountRow("cache_read", ("cache_read_input_tokens",)),
        CountRow("cache_write", ("cache_creation_input_tokens",)),
        CountRow("cache_write_1h", ("cache_creation.ephemeral_1h_input_tokens",)),
        CountRow("output", ("output_tokens",), required=True),
    ),
)

ADVICE = "advisor_message"
COMPACTION = "compaction"
# Passes that are not the thread's own: another model's advice, and the API's own compaction.
OTHER_PASSES = frozenset({ADVICE, COMPACTION})


class CacheCreation(msgspec.Struct, frozen=True, gc=False):
    """Cache writes by their lifetime."""

    ephemeral_1h_input_tokens: int | None = 0


class CallPass(msgspec.Struct, frozen=True, gc=False):
    """An entry of `usage.iterations`: one pass of a call that the API made in several."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_creation: CacheCreation | None = None
    type: str | None = None
    model: str | None = None


class MessageUsage(msgspec.Struct, frozen=True, gc=False):
    """The `usage` of a message, typed for bulk reading.

    By the API's reference, null counts of the cache mean that it was not used.
    """

    input_tokens: int | None
    output_tokens: int | None
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_creation: CacheCreation | None = None
    iterations: tuple[CallPass, ...] | None = None
    speed: str | None = None
    service_tier: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether it has counts; some proxies put null in their place."""
        return self.input_tokens is not None and self.output_tokens is not None


STANDARD_TIERS = frozenset({None, "standard"})
NO_TOKENS = Usage(0, 0, 0, 0)


def usage_of(reported: object) -> Usage | None:
    """The usage of a message; None if it is unknown, or all zero because it was no call.

    With several passes the top level is their sum, so the thread's last own pass counts. Zeros at
    the top level with passes below are an old message that was written again: no call.
    """
    if isinstance(reported, MessageUsage):  # faster than MESSAGES, for bulk reading
        if reported.input_tokens is None or reported.output_tokens is None:
            return None
        written, creation = reported.cache_creation_input_tokens or 0, reported.cache_creation
        usage = Usage(
            reported.input_tokens,
            reported.cache_read_input_tokens or 0,
            written,
            reported.output_tokens,
            None,
            0 if creation is None else min(creation.ephemeral_1h_input_tokens or 0, written),
        )
        passes = reported.iterations
    else:
        usage, passes = MESSAGES.usage(reported), get_items(reported, "iterations")
    if usage == NO_TOKENS:
        return None
    if passes is None or len(passes) < 2:
        return usage
    own = [each for each in passes if get_path(each, "type") not in OTHER_PASSES]
    return MESSAGES.usage(own[-1]) if own else usage


def service_tier_of(reported: object) -> str | None:
    """The price variant of a call: fast mode or a service tier; None for the standard one."""
    if isinstance(reported, MessageUsage):  # faster, for bulk reading
        speed, tier = reported.speed, reported.service_tier
    else:
        speed, tier = get_text(reported, "speed"), get_text(reported, "service_tier")
    if speed == "fast":
        return "fast"
    return None if tier in STANDARD_TIERS else tier


PassKey: TypeAlias = tuple[str | None, str | None]  # model and service tier


def other_passes(
    reported: object, model: str | None, service_tier: str | None = None
) -> dict[PassKey, Usage]:
    """What was billed in addition to the usage of a message: its other passes.

    The service tier is that of the message's own passes; its advisor is another model's call. The
    API's own compaction is not among them: `find_api_compaction` has it.
    """
    passes = get_items(reported, "iterations")
    if len(passes) < 2 or usage_of(reported) is None:
        return {}
    own = [each for each in passes if get_path(each, "type") not in OTHER_PASSES]
    advice = [each for each in passes if get_path(each, "type") == ADVICE]
    tiers = [*(service_tier for _ in own[:-1]), *(None for _ in advice)]
    usages: dict[PassKey, Usage] = {}
    for each, tier in zip((*own[:-1], *advice), tiers, strict=True):
        key = get_text(each, "model") or model, tier
        usages[key] = usages.get(key, NO_TOKENS) + MESSAGES.usage(each)
    return usages


def spent_on(
    usages: Mapping[PassKey, Usage], call: str, thread: str, at: float | None = None
) -> list[Spent]:
    """The events of what was billed in addition to a call."""
    return [
        Spent(at=at, usage=usage, model=model, thread=thread, id=call, service_tier=tier)
        for (model, tier), usage in usages.items()
    ]


class ApiCompaction(msgspec.Struct, frozen=True):
    """A compaction by the API itself: its usage, and whether the thread's call came after it."""

    usage: Usage
    has_call_after: bool


def find_api_compaction(reported: object) -> ApiCompaction | None:
    """The compaction in a message's usage, or None."""
    passes = get_items(reported, "iterations")
    kinds = [get_path(each, "type") for each in passes]
    if COMPACTION not in kinds:
        return None
    place = len(kinds) - 1 - kinds[::-1].index(COMPACTION)
    return ApiCompaction(MESSAGES.usage(passes[place]), has_call_after=place < len(kinds) - 1)


class StreamedMessage(msgspec.Struct, frozen=True):
    """What is known of a streamed message so far."""

    id: str
    model: str | None
    usage: Usage
    final: bool
    others: dict[PassKey, Usage] = msgspec.field(default_factory=dict[PassKey, Usage])
    service_tier: str | None = None


class MessageStream:
    """Reads the SSE events of a message: input at message_start, output at message_delta."""

    def __init__(self) -> None:
        self._message: StreamedMessage | None = None

    def is_current(self, call: str) -> bool:
        return self._message is not None and self._message.id == call

    def feed(self, event: object) -> StreamedMessage | None:
        """The message after this event; None if nothing changed."""
        match get_path(event, "type"):
            case "message_start":
                return self._start(get_path(event, "message"))
            case "message_delta":
                return self._delta(get_path(event, "usage"))
            case _:
                return None

    def _start(self, message: object) -> StreamedMessage | None:
        name, model = get_text(message, "id"), get_text(message, "model")
        if not name:
            self._message = None
            return None
        reported = get_path(message, "usage")
        usage = usage_of(reported)
        self._message = StreamedMessage(
            name, model, usage or ZERO, final=False, service_tier=service_tier_of(reported)
        )
        return self._message if usage else None

    def _delta(self, reported: object) -> StreamedMessage | None:
        if self._message is None or reported is None:
            return None
        start = self._message.usage
        counts = {  # of message_start, unless the delta repeats them
            "input_tokens": start.input,
            "cache_read_input_tokens": start.cache_read,
            "cache_creation_input_tokens": start.cache_write,
        }
        answer = {
            **{name: get_path(reported, name) or count for name, count in counts.items()},
            "cache_creation": get_path(reported, "cache_creation")
            or CacheCreation(start.cache_write_1h),
            "output_tokens": get_path(reported, "output_tokens"),
            "iterations": get_path(reported, "iterations"),
        }
        usage = usage_of(answer)
        if usage is None:
            return None
        others = other_passes(answer, self._message.model, self._message.service_tier)
        self._message = msgspec.structs.replace(
            self._message, usage=usage, final=True, others=others
        )
        return self._message
