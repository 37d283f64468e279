"""The `cohere` package: answers of its Chat API, version 2, and events of its stream."""

from collections.abc import Sequence

from brimline.context.events import AnyEvent, Call
from brimline.context.providers.rows import CountRow, UsageShape, get_path, get_text
from brimline.sdk.memory import StreamMemory

CHAT_V2 = UsageShape(
    "subset",
    (
        CountRow("input", ("tokens.input_tokens",), required=True),
        CountRow("cache_read", ("cached_tokens",)),
        CountRow("output", ("tokens.output_tokens",), required=True),
    ),
)

SILENT_PREFIXES = ("message-start", "content-", "tool-", "citation-")


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The call of an answer or of a stream's last event, or None."""
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
