"""OpenAI Responses: the cached tokens are a part of the input tokens."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from ..cache import OPENAI_GRAIN, PrefixCache, PromptSplit
from ..prompt import COMPACTION, Block, Prompt, begins, block, text_of
from ..scenario import ErrorKind
from . import Json, ModelTurn, ServerSentEvent, Wire

ERROR_CODES: dict[ErrorKind, tuple[str, str]] = {
    "overloaded": ("server_error", "server_is_overloaded"),
    "rate_limited": ("requests", "rate_limit_exceeded"),
    "server": ("server_error", "server_error"),
    "prompt_too_long": ("invalid_request_error", "context_length_exceeded"),
}


class _ResponsesRequest(msgspec.Struct):
    model: str
    input: str | list[Json]
    instructions: str | None = None
    tools: list[Json] = []
    stream: bool = False


def read(body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """Read a Responses request; a body of another shape is msgspec.ValidationError."""
    request = msgspec.json.decode(body, type=_ResponsesRequest)
    items = _items(request.input)
    start = begins([one.get("type") for one in items])
    instructions = [one for one in items if one.get("role") in INSTRUCTION_ROLES]
    heads: list[Any] = [*request.tools, request.instructions]
    pieces = [block(one, in_conversation=False) for one in heads if one is not None]
    counted = [one for place, one in enumerate(items) if place >= start or one in instructions]
    pieces += [block(one, in_conversation=one not in instructions) for one in counted]
    return Prompt(
        model=request.model,
        stream=request.stream,
        blocks=tuple(pieces),
        system=text_of([request.instructions, *instructions]),
        newest=text_of(_newest(items)),
        tools=tuple(str(tool.get("name", tool.get("type", ""))) for tool in request.tools),
        headers=headers,
        summarise=path.partition("?")[0].endswith(COMPACT),
    )


def _items(given: str | list[Json]) -> list[Json]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


INSTRUCTION_ROLES = ("system", "developer")
MODEL_ITEMS = (COMPACTION, "reasoning", "function_call", "custom_tool_call", "local_shell_call")


def _newest(items: list[Json]) -> list[Json]:
    """The items after the model's last answer."""
    newest: list[Json] = []
    for item in items:
        by_model = item.get("role") == "assistant" or item.get("type") in MODEL_ITEMS
        newest = [] if by_model else [*newest, item]
    return newest


def split(
    cache: PrefixCache, blocks: tuple[Block, ...], added: int, tell_writes: bool
) -> PromptSplit:
    """Read the longest known prefix and write the rest, in grains of 128 tokens."""
    return cache.automatic(blocks, added, grain=OPENAI_GRAIN, tell_writes=tell_writes)


def message_id(turn: ModelTurn) -> str:
    """The id of the answer."""
    return f"resp_fake{turn.sequence:06d}"


def raw(turn: ModelTurn) -> Json:
    """The usage of an answer: details are parts of their totals."""
    usage = turn.usage
    details = {"cached_tokens": usage.cache_read}
    if turn.tell_writes:
        details["cache_write_tokens"] = usage.cache_write
    sent = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": sent,
        "input_tokens_details": details,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": sent + usage.output,
    }


def items(turn: ModelTurn) -> list[Json]:
    """The output items of an answer."""
    reply, number = turn.reply, f"{turn.sequence:06d}"
    output: list[Json] = []
    if turn.summary is not None:
        hidden = base64.b64encode(turn.summary.text.encode()).decode()
        output.append({"type": COMPACTION, "id": f"cmp_fake{number}", "encrypted_content": hidden})
    if reply.reasoning is not None:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        output.append({"type": "reasoning", "id": f"rs_fake{number}", "summary": summary})
    if reply.text is not None:
        text: Json = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append({"type": "message", "id": f"msg_fake{number}", "content": [text]})
        output[-1] |= {"role": "assistant", "status": "completed"}
    for place, tool in enumerate(reply.tools):
        call: Json = {"type": "function_call", "id": turn.tool_id("fc_fake", place)}
        call |= {"call_id": turn.tool_id("call_fake", place), "name": tool.name}
        call |= {"arguments": msgspec.json.encode(tool.input).decode(), "status": "completed"}
        if tool.namespace is not None:
            call["namespace"] = tool.namespace
        output.append(call)
    return output


def answer(turn: ModelTurn) -> Json:
    """A whole answer."""
    return _response(turn, "completed") | {"output": items(turn), "usage": raw(turn)}


def _response(turn: ModelTurn, status: str) -> Json:
    head: Json = {"id": message_id(turn), "object": "response", "created_at": 0, "status": status}
    head |= {"model": turn.model, "output": [], "usage": None, "error": None}
    return head | {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}


def compacted(turn: ModelTurn) -> Json:
    """The answer to a request for a compaction."""
    head: Json = {"id": message_id(turn), "object": "response.compaction", "created_at": 0}
    return head | {"output": items(turn), "usage": raw(turn)}


def events(turn: ModelTurn) -> Iterator[ServerSentEvent]:
    """The answer as a stream; usage comes with its last event."""
    return _numbered(_stream_events(turn))


def _stream_events(turn: ModelTurn) -> Iterator[Json]:
    begun = _response(turn, "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(items(turn)):
        yield from _item_events(place, item)
    yield {"type": "response.completed", "response": answer(turn)}


def error(kind: ErrorKind, message: str) -> Json:
    """The body of an error answer."""
    family, code = ERROR_CODES[kind]
    return {"error": {"message": message, "type": family, "param": None, "code": code}}


COMPACT = "/responses/compact"


def _numbered(events: Iterable[Json]) -> Iterator[ServerSentEvent]:
    """The events of a stream, each with its number."""
    for number, data in enumerate(events):
        yield ServerSentEvent(data | {"sequence_number": number}, str(data["type"]))


def _item_events(place: int, item: Json) -> Iterator[Json]:
    """One output item from its opening to its end."""
    at = {"output_index": place}
    yield {"type": "response.output_item.added", **at, "item": item | _EMPTY[item["type"]]}
    for data in _FILLING[item["type"]](item):
        yield data | at | {"item_id": item["id"]}
    yield {"type": "response.output_item.done", **at, "item": item}


def _fill_message(item: Json) -> Iterator[Json]:
    part = item["content"][0]
    at: Json = {"content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": part | {"text": ""}}
    logged: Json = at | {"logprobs": []}
    yield {"type": "response.output_text.delta", **logged, "delta": part["text"]}
    yield {"type": "response.output_text.done", **logged, "text": part["text"]}
    yield {"type": "response.content_part.done", **at, "part": part}


def _fill_function_call(item: Json) -> Iterator[Json]:
    kind, arguments = "response.function_call_arguments", item["arguments"]
    yield {"type": f"{kind}.delta", "delta": arguments}
    yield {"type": f"{kind}.done", "arguments": arguments, "name": item["name"]}


def _fill_reasoning(item: Json) -> Iterator[Json]:
    part, kind = item["summary"][0], "response.reasoning_summary"
    at = {"summary_index": 0}
    yield {"type": f"{kind}_part.added", **at, "part": part | {"text": ""}}
    yield {"type": f"{kind}_text.delta", **at, "delta": part["text"]}
    yield {"type": f"{kind}_text.done", **at, "text": part["text"]}
    yield {"type": f"{kind}_part.done", **at, "part": part}


def _fill_compaction(item: Json) -> Iterator[Json]:
    yield {"type": "response.compaction.compacting"}


_EMPTY: dict[str, Json] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "reasoning": {"summary": []},
    COMPACTION: {"encrypted_content": ""},
}
_FILLING: dict[str, Callable[[Json], Iterator[Json]]] = {
    "message": _fill_message,
    "function_call": _fill_function_call,
    "reasoning": _fill_reasoning,
    COMPACTION: _fill_compaction,
}


WIRE = Wire(
    api="openai-responses",
    read=read,
    split=split,
    raw=raw,
    message_id=message_id,
    answer=answer,
    events=events,
    error=error,
)

COMPACTING = replace(WIRE, answer=compacted)  # the same API for a request that only compacts
