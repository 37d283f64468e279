"""The `openai` package and compatible ones: Responses, Chat Completions, streams."""

from collections.abc import Iterator, Sequence
from typing import cast

from brimline.events import AnyEvent, Call, Edited, Trimmed, compaction_thread
from brimline.observe.memory import StreamMemory
from brimline.providers.openai import CHAT, RESPONSES
from brimline.providers.rows import get_path

NAME = "an OpenAI response, completion, chunk or stream event"

UNFINISHED = frozenset({"queued", "in_progress"})
# Events of the chat helper: without usage.
HELPER_PREFIXES = ("content.", "refusal.", "logprobs.", "tool_calls.")


def read(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    """The events of an answer or a stream event, or None."""
    match get_path(seen, "object"):
        case "response":
            return list(_response(seen, thread))
        case "response.compaction":
            return list(_compacted(seen, thread))
        case "chat.completion" | "chat.completion.chunk":
            return list(_chat(seen, memory, thread))
        case _:
            return _event(seen, memory, thread)


def _event(seen: object, memory: StreamMemory, thread: str) -> Sequence[AnyEvent] | None:
    kind = get_path(seen, "type")
    if not isinstance(kind, str):
        return None
    if kind.startswith("response."):
        answer = get_path(seen, "response")
        return [] if answer is None else list(_response(answer, thread))
    if kind == "chunk":
        return read(get_path(seen, "chunk"), memory, thread)
    return [] if kind.startswith(HELPER_PREFIXES) else None


def _response(answer: object, thread: str) -> Iterator[AnyEvent]:
    name, reported = get_path(answer, "id"), get_path(answer, "usage")
    if not isinstance(name, str) or reported is None:
        return
    usage = RESPONSES.usage(reported)
    if "compaction" in _kinds(answer):
        yield Edited(call=name, kind="compaction", thread=thread)
    final = get_path(answer, "status") not in UNFINISHED
    yield Call(id=name, usage=usage, model=_model(answer), thread=thread, final=final)


def _compacted(answer: object, thread: str) -> Iterator[AnyEvent]:
    """`responses.compact`: it is billed, and the occupancy is unknown until the next call."""
    name, reported = get_path(answer, "id"), get_path(answer, "usage")
    if isinstance(name, str) and reported is not None:
        yield Call(id=name, usage=RESPONSES.usage(reported), thread=compaction_thread(thread))
        yield Edited(call=name, kind="compaction", thread=thread)
    yield Trimmed(thread=thread)


def _chat(answer: object, memory: StreamMemory, thread: str) -> Iterator[AnyEvent]:
    """One chunk of a stream has the usage; some servers send a growing one with each."""
    answer_id, reported = get_path(answer, "id"), get_path(answer, "usage")
    name = answer_id if isinstance(answer_id, str) and answer_id else None
    ended = _is_final(answer)
    if reported is None:
        if ended and name is not None:
            memory.mark_ended(name)
        return
    yield Call(
        id=name or memory.new_call_id(),
        usage=CHAT.usage(reported),
        model=_model(answer),
        thread=thread,
        final=ended or memory.is_ended(name),
    )


def _is_final(answer: object) -> bool:
    choices = get_path(answer, "choices")
    if not isinstance(choices, Sequence) or not choices:
        return True
    return any(
        get_path(choice, "finish_reason") is not None
        for choice in cast("Sequence[object]", choices)
    )


def _kinds(answer: object) -> list[object]:
    items = get_path(answer, "output")
    if not isinstance(items, Sequence):
        return []
    return [get_path(item, "type") for item in cast("Sequence[object]", items)]


def _model(answer: object) -> str | None:
    model = get_path(answer, "model")
    return model if isinstance(model, str) else None
