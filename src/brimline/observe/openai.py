"""The `openai` package, and what speaks its protocols: Responses, Chat Completions, streams."""

from collections.abc import Iterator, Sequence
from typing import cast

from brimline.events import AnyEvent, Call, Edited, Trimmed, compaction_thread
from brimline.observe.memory import Memory
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.rows import walk

NAME = "an OpenAI response, completion, chunk or stream event"

UNDER_WAY = frozenset({"queued", "in_progress"})
HELPED = ("content.", "refusal.", "logprobs.", "tool_calls.")
"""How the chat helper's own events begin; they tell no usage."""


def read(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    """The events in an answer or a stream event; None where it is none of these."""
    match walk(seen, "object"):
        case "response":
            return list(_response(seen, thread))
        case "response.compaction":
            return list(_compacted(seen, thread))
        case "chat.completion" | "chat.completion.chunk":
            return list(_chat(seen, memory, thread))
        case _:
            return _event(seen, memory, thread)


def _event(seen: object, memory: Memory, thread: str) -> Sequence[AnyEvent] | None:
    kind = walk(seen, "type")
    if not isinstance(kind, str):
        return None
    if kind.startswith("response."):
        answer = walk(seen, "response")
        return [] if answer is None else list(_response(answer, thread))
    if kind == "chunk":
        return read(walk(seen, "chunk"), memory, thread)
    return [] if kind.startswith(HELPED) else None


def _response(answer: object, thread: str) -> Iterator[AnyEvent]:
    name, reported = walk(answer, "id"), walk(answer, "usage")
    if not isinstance(name, str) or reported is None:
        return
    usage = RESPONSES.usage(reported)
    if "compaction" in _kinds(answer):
        yield Edited(call=name, kind="compaction", thread=thread)
    final = walk(answer, "status") not in UNDER_WAY
    yield Call(id=name, usage=usage, model=_model(answer), thread=thread, final=final)


def _compacted(answer: object, thread: str) -> Iterator[AnyEvent]:
    """`responses.compact`: it is billed; what the next call sends is not known before it."""
    name, reported = walk(answer, "id"), walk(answer, "usage")
    if isinstance(name, str) and reported is not None:
        yield Call(id=name, usage=RESPONSES.usage(reported), thread=compaction_thread(thread))
        yield Edited(call=name, kind="compaction", thread=thread)
    yield Trimmed(thread=thread)


def _chat(answer: object, memory: Memory, thread: str) -> Iterator[AnyEvent]:
    """Only one chunk of a stream has the usage; some servers send a growing one with each."""
    told, reported = walk(answer, "id"), walk(answer, "usage")
    name = told if isinstance(told, str) and told else None
    ended = _ended(answer)
    if reported is None:
        if ended and name is not None:
            memory.end(name)
        return
    yield Call(
        id=name or memory.unnamed(),
        usage=CHAT.usage(reported),
        model=_model(answer),
        thread=thread,
        final=ended or memory.ended(name),
    )


def _ended(answer: object) -> bool:
    choices = walk(answer, "choices")
    if not isinstance(choices, Sequence) or not choices:
        return True
    return any(
        walk(choice, "finish_reason") is not None for choice in cast("Sequence[object]", choices)
    )


def _kinds(answer: object) -> list[object]:
    items = walk(answer, "output")
    if not isinstance(items, Sequence):
        return []
    return [walk(item, "type") for item in cast("Sequence[object]", items)]


def _model(answer: object) -> str | None:
    model = walk(answer, "model")
    return model if isinstance(model, str) else None
