"""OpenAI Responses as a stream: each item is opened empty, filled by deltas, and closed whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..prompt import COMPACTION
from . import Json, ServerSentEvent

StreamEvents = Iterator[Json]


def numbered(events: Iterable[Json]) -> Iterator[ServerSentEvent]:
    """The events of a stream, each with its number."""
    for number, data in enumerate(events):
        yield ServerSentEvent(data | {"sequence_number": number}, str(data["type"]))


def item_events(place: int, item: Json) -> StreamEvents:
    """One output item from its opening to its end."""
    at = {"output_index": place}
    yield {"type": "response.output_item.added", **at, "item": item | EMPTY[item["type"]]}
    for data in FILLING[item["type"]](item):
        yield data | at | {"item_id": item["id"]}
    yield {"type": "response.output_item.done", **at, "item": item}


def _message(item: Json) -> StreamEvents:
    part = item["content"][0]
    at: Json = {"content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": part | {"text": ""}}
    logged: Json = at | {"logprobs": []}
    yield {"type": "response.output_text.delta", **logged, "delta": part["text"]}
    yield {"type": "response.output_text.done", **logged, "text": part["text"]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _function_call(item: Json) -> StreamEvents:
    kind, arguments = "response.function_call_arguments", item["arguments"]
    yield {"type": f"{kind}.delta", "delta": arguments}
    yield {"type": f"{kind}.done", "arguments": arguments, "name": item["name"]}


def _reasoning(item: Json) -> StreamEvents:
    part, kind = item["summary"][0], "response.reasoning_summary"
    at = {"summary_index": 0}
    yield {"type": f"{kind}_part.added", **at, "part": part | {"text": ""}}
    yield {"type": f"{kind}_text.delta", **at, "delta": part["text"]}
    yield {"type": f"{kind}_text.done", **at, "text": part["text"]}
    yield {"type": f"{kind}_part.done", **at, "part": part}


def _compaction(item: Json) -> StreamEvents:
    yield {"type": "response.compaction.compacting"}


EMPTY: dict[str, Json] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "reasoning": {"summary": []},
    COMPACTION: {"encrypted_content": ""},
}
FILLING: dict[str, Callable[[Json], StreamEvents]] = {
    "message": _message,
    "function_call": _function_call,
    "reasoning": _reasoning,
    COMPACTION: _compaction,
}
