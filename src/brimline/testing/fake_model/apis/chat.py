"""OpenAI Chat Completions: the cached tokens are a part of the prompt tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from ..cache import OPENAI_GRAIN, PrefixCache, PromptSplit
from ..prompt import Block, Prompt, block, text_of
from . import Json, ModelTurn, ServerSentEvent, Wire, responses


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False
    # Not OpenAI's own: servers that speak its protocol have it.
    continuous_usage_stats: bool = False


class _ChatRequest(msgspec.Struct):
    model: str
    messages: list[Json]
    tools: list[Json] = []
    stream: bool = False
    stream_options: _StreamOptions | None = None


def read(body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """Read a Chat Completions request; a body of another shape is msgspec.ValidationError."""
    request = msgspec.json.decode(body, type=_ChatRequest)
    instructions = [
        one for one in request.messages if one.get("role") in responses.INSTRUCTION_ROLES
    ]
    pieces = [block(tool, in_conversation=False) for tool in request.tools]
    pieces += [block(one, in_conversation=one not in instructions) for one in request.messages]
    names = tuple(str(tool.get("function", {}).get("name", "")) for tool in request.tools)
    options = request.stream_options or _StreamOptions()
    return Prompt(
        model=request.model,
        stream=request.stream,
        blocks=tuple(pieces),
        system=text_of([one.get("content") for one in instructions]),
        newest=text_of(_newest(request.messages)),
        tools=names,
        headers=headers,
        tell_usage=options.include_usage,
        tell_growth=options.continuous_usage_stats,
    )


def _newest(messages: list[Json]) -> list[Any]:
    """The contents after the model's last answer."""
    newest: list[Any] = []
    for message in messages:
        newest = [] if message.get("role") == "assistant" else [*newest, message.get("content")]
    return newest


def split(
    cache: PrefixCache, blocks: tuple[Block, ...], added: int, tell_writes: bool
) -> PromptSplit:
    """Read the longest known prefix; this API does not report cache writes."""
    return cache.automatic(blocks, added, grain=OPENAI_GRAIN)


def message_id(turn: ModelTurn) -> str:
    """The id of the answer."""
    return f"chatcmpl-fake{turn.sequence:06d}"


def raw(turn: ModelTurn) -> Json:
    """The usage of an answer: details are parts of their totals."""
    usage = turn.usage
    sent = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": sent,
        "completion_tokens": usage.output,
        "total_tokens": sent + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _message(turn: ModelTurn) -> Json:
    message: Json = {"role": "assistant", "content": turn.reply.text}
    if turn.reply.tools:
        message["tool_calls"] = _tool_calls(turn)
    return message


def _tool_calls(turn: ModelTurn) -> list[Json]:
    calls: list[Json] = []
    for place, tool in enumerate(turn.reply.tools):
        function = {"name": tool.name, "arguments": msgspec.json.encode(tool.input).decode()}
        call: Json = {"id": turn.tool_id("call_fake", place), "type": "function"}
        calls.append(call | {"function": function})
    return calls


def _finish(turn: ModelTurn) -> str:
    return "tool_calls" if turn.reply.tools else "stop"


def answer(turn: ModelTurn) -> Json:
    """A whole answer."""
    choice = {"index": 0, "message": _message(turn), "finish_reason": _finish(turn)}
    return _head(turn, "chat.completion") | {"choices": [choice], "usage": raw(turn)}


def _head(turn: ModelTurn, kind: str) -> Json:
    return {"id": message_id(turn), "object": kind, "created": 0, "model": turn.model}


def events(turn: ModelTurn) -> Iterator[ServerSentEvent]:
    """The answer as a stream; usage comes in its own chunk if it was requested."""
    delta = _message(turn)
    for place, call in enumerate(delta.get("tool_calls", [])):
        call["index"] = place
    yield _chunk(turn, [{"index": 0, "delta": delta, "finish_reason": None}], output=1)
    yield _chunk(turn, [{"index": 0, "delta": {}, "finish_reason": _finish(turn)}])
    if turn.tell_usage:
        yield ServerSentEvent(
            _head(turn, "chat.completion.chunk") | {"choices": [], "usage": raw(turn)}
        )
    yield ServerSentEvent("[DONE]")


def _chunk(turn: ModelTurn, choices: list[Json], *, output: int | None = None) -> ServerSentEvent:
    """A chunk with the usage after this much output, or with an empty usage field."""
    head = _head(turn, "chat.completion.chunk") | {"choices": choices}
    if turn.tell_growth:
        output_tokens = turn.usage.output if output is None else output
        so_far = msgspec.structs.replace(turn.usage, output=output_tokens, reasoning=0)
        return ServerSentEvent(head | {"usage": raw(replace(turn, usage=so_far))})
    return ServerSentEvent(head | {"usage": None} if turn.tell_usage else head)


WIRE = Wire(
    api="openai-chat",
    read=read,
    split=split,
    raw=raw,
    message_id=message_id,
    answer=answer,
    events=events,
    error=responses.error,
)
