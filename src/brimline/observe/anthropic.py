"""The `anthropic` package: messages, raw SSE events, and the events of its stream helper."""

from collections.abc import Iterator, Sequence
from typing import cast

from brimline.events import AnyEvent, Call, Edited, Trimmed, compaction_thread
from brimline.observe.memory import Memory
from brimline.providers.anthropic import summed_up, usage_of
from brimline.providers.rows import walk

NAME = "an Anthropic message or one of its stream events"

QUIET = frozenset(
    {
        "citation",
        "compaction",
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "error",
        "input_json",
        "ping",
        "signature",
        "text",
        "thinking",
    }
)
"""Stream events that tell no usage."""


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in a message or a stream event; None where it is neither."""
    match walk(seen, "type"):
        case "message" if walk(seen, "role") == "assistant" and walk(seen, "usage") is not None:
            return _whole(seen, memory, thread)
        case "message_start":
            return _streamed(seen, memory, thread)
        case "message_delta":
            return _delta(seen, memory, thread)
        case "message_stop":
            message = walk(seen, "message")
            return [] if message is None else _whole(message, memory, thread)
        case kind if isinstance(kind, str) and kind in QUIET:
            return []
        case _:
            return None


def _whole(message: object, memory: Memory, thread: str) -> list[AnyEvent]:
    """A whole message; what its stream told goes before what a helper gathered: it may have lost
    the passes, and have their sums alone."""
    name = walk(message, "id")
    streamed = isinstance(name, str) and memory.message(thread).ended(name)
    if streamed and walk(message, "usage.iterations") is None:
        return []
    return list(_message(message, thread))


def _message(message: object, thread: str) -> Iterator[AnyEvent]:
    name, model = walk(message, "id"), walk(message, "model")
    if not isinstance(name, str):
        return
    reported = walk(message, "usage")
    usage = usage_of(reported)
    yield from _edits(message, reported, name, thread)
    if usage is not None:
        yield Call(
            id=name,
            usage=usage,
            model=model if isinstance(model, str) else None,
            thread=thread,
            final=walk(message, "stop_reason") is not None,
        )
    yield from _left_unknown(reported, thread)


def _streamed(event: object, memory: Memory, thread: str) -> list[AnyEvent]:
    told = memory.message(thread).feed(event)
    if told is None:
        return []
    return [Call(id=told.id, usage=told.usage, model=told.model, thread=thread, final=told.final)]


def _delta(event: object, memory: Memory, thread: str) -> list[AnyEvent]:
    calls = _streamed(event, memory, thread)
    reported = walk(event, "usage")
    name = next((call.id for call in calls if isinstance(call, Call)), None)
    edits = [] if name is None else list(_edits(event, reported, name, thread))
    return [*edits, *calls, *_left_unknown(reported, thread)]


def _edits(message: object, reported: object, name: str, thread: str) -> Iterator[AnyEvent]:
    """What the API itself did to the prompt: tool results cleared, thinking cleared, summed up."""
    applied = walk(message, "context_management.applied_edits")
    for edit in cast("Sequence[object]", applied) if isinstance(applied, Sequence) else ():
        kind, tokens = walk(edit, "type"), walk(edit, "cleared_input_tokens")
        yield Edited(
            call=name,
            kind=kind if isinstance(kind, str) else "edit",
            tokens=tokens if isinstance(tokens, int) else None,
            thread=thread,
        )
    if (compaction := summed_up(reported)) is not None:
        yield Edited(call=name, kind="compaction", thread=thread)
        yield Call(
            id=f"{name}/compaction", usage=compaction.usage, thread=compaction_thread(thread)
        )


def _left_unknown(reported: object, thread: str) -> Iterator[AnyEvent]:
    """After a compaction that the thread's call did not follow, what is held is not known."""
    compaction = summed_up(reported)
    if compaction is not None and not compaction.went_on:
        yield Trimmed(thread=thread)
