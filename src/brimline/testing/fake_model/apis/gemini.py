"""Gemini generateContent: the cached tokens are a part of the prompt, thoughts stand apart."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from ..cache import PrefixCache, PromptSplit
from ..prompt import Block, Prompt, block, text_of
from ..scenario import STATUS, ErrorKind
from . import Json, ModelTurn, ServerSentEvent, Wire

PATH = re.compile(r"/models/(?P<model>[^/:?]+):(?P<verb>\w+)")

ERROR_STATUS: dict[ErrorKind, str] = {
    "overloaded": "UNAVAILABLE",
    "rate_limited": "RESOURCE_EXHAUSTED",
    "server": "INTERNAL",
    "prompt_too_long": "INVALID_ARGUMENT",
}


class _Content(msgspec.Struct):
    parts: list[Json] = []
    role: str = "user"


class _GeminiRequest(msgspec.Struct, rename="camel"):
    contents: list[_Content]
    system_instruction: _Content | None = None
    tools: list[Json] = []
    generation_config: Json = {}


def read(body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """Read a generateContent request; a body of another shape is msgspec.ValidationError."""
    request = msgspec.json.decode(body, type=_GeminiRequest)
    match = PATH.search(path)
    system = request.system_instruction.parts if request.system_instruction else []
    pieces = [block(one, in_conversation=False) for one in (*request.tools, *system)]
    for content in request.contents:
        pieces += [block([content.role, one], in_conversation=True) for one in content.parts]
    return Prompt(
        model=match["model"] if match else "unknown",
        stream=match is not None and match["verb"] == "streamGenerateContent",
        blocks=tuple(pieces),
        system=text_of(system),
        newest=text_of(_newest(request.contents)),
        tools=tuple(_tool_names(request.tools)),
        headers=headers,
    )


def _newest(contents: list[_Content]) -> list[Any]:
    """The parts after the model's last answer."""
    newest: list[Any] = []
    for content in contents:
        newest = [] if content.role == "model" else [*newest, content.parts]
    return newest


def _tool_names(tools: list[Json]) -> Iterator[str]:
    for tool in tools:
        declared: list[Json] = tool.get("functionDeclarations", [])
        yield from (str(one.get("name", "")) for one in declared)


def split(
    cache: PrefixCache, blocks: tuple[Block, ...], added: int, tell_writes: bool
) -> PromptSplit:
    """Read the longest known prefix."""
    return cache.automatic(blocks, added)


def message_id(turn: ModelTurn) -> str:
    """The id of the answer."""
    return f"fake{turn.sequence:06d}"


def raw(turn: ModelTurn) -> Json:
    """The usage of an answer; a bucket of zero is left out, as the real API does."""
    usage = turn.usage
    sent = usage.input + usage.cache_read + usage.cache_write
    optional = {
        "cachedContentTokenCount": usage.cache_read,
        "thoughtsTokenCount": usage.reasoning,
    }
    return {
        "promptTokenCount": sent,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": sent + usage.output,
        **{name: tokens for name, tokens in optional.items() if tokens},
    }


def parts(turn: ModelTurn) -> list[Json]:
    """The parts of an answer."""
    reply = turn.reply
    content: list[Json] = []
    if reply.reasoning is not None:
        content.append({"text": reply.reasoning, "thought": True})
    if reply.text is not None:
        content.append({"text": reply.text})
    for place, tool in enumerate(reply.tools):
        call = {"id": turn.tool_id("call_fake", place), "name": tool.name, "args": tool.input}
        content.append({"functionCall": call})
    return content


def answer(turn: ModelTurn) -> Json:
    """A whole answer."""
    return _chunk(turn, parts(turn), raw(turn), **_end(turn))


def _chunk(turn: ModelTurn, some: list[Json], usage: Json, **end: str) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": some}, **end}
    head: Json = {"responseId": message_id(turn), "modelVersion": turn.model}
    return head | {"candidates": [candidate], "usageMetadata": usage}


def _end(turn: ModelTurn) -> dict[str, str]:
    if not turn.reply.unfinished:
        return {"finishReason": "STOP"}
    token = base64.b64encode(message_id(turn).encode()).decode()
    return {"finishReason": "CONTINUATION", "continuationToken": token}


def events(turn: ModelTurn) -> Iterator[ServerSentEvent]:
    """The answer as a stream of one chunk per part; each has the usage so far."""
    some = parts(turn)
    for place, part in enumerate(some, start=1):
        if place < len(some):
            yield ServerSentEvent(_chunk(turn, [part], _so_far(turn, some[:place])))
        else:
            yield ServerSentEvent(_chunk(turn, [part], raw(turn), **_end(turn)))


def _so_far(turn: ModelTurn, parts_so_far: list[Json]) -> Json:
    """The usage after some parts; while it thinks there is no count of candidates."""
    answered = sum("thought" not in part for part in parts_so_far)
    output = min(turn.usage.output, turn.usage.reasoning + answered)
    usage = raw(replace(turn, usage=msgspec.structs.replace(turn.usage, output=output)))
    return {name: count for name, count in usage.items() if count or answered}


def error(kind: ErrorKind, message: str) -> Json:
    """The body of an error answer."""
    code = 503 if kind == "overloaded" else STATUS[kind]
    return {"error": {"code": code, "message": message, "status": ERROR_STATUS[kind]}}


WIRE = Wire(
    api="gemini",
    read=read,
    split=split,
    raw=raw,
    message_id=message_id,
    answer=answer,
    events=events,
    error=error,
)
