"""Anthropic Messages: disjoint usage, cache at `cache_control` breakpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..cache import PrefixCache, Split
from ..prompt import COMPACTION, Block, Prompt, begins, block, text_of
from ..scenario import ErrorKind
from . import Json, ServerSentEvent, Turn, Wire, anthropic_context

# The client's own accounting line: it changes with every request and the real API leaves it
# out of the prompt.
BILLING_LINE = "x-anthropic-billing-header"

ERROR_TYPES: dict[ErrorKind, str] = {
    "overloaded": "overloaded_error",
    "rate_limited": "rate_limit_error",
    "server": "api_error",
    "prompt_too_long": "invalid_request_error",
}


class _Message(msgspec.Struct):
    role: str
    content: str | list[Json]


class _AnthropicRequest(msgspec.Struct):
    model: str
    messages: list[_Message]
    system: str | list[Json] = ""
    tools: list[Json] = []
    stream: bool = False
    compaction: Json | None = None  # nothing but a summary of the conversation is asked for


def read(body: bytes, path: str, headers: Mapping[str, str]) -> Prompt:
    """Read a Messages request; a body of another shape is msgspec.ValidationError."""
    request = msgspec.json.decode(body, type=_AnthropicRequest)
    system = [one for one in _blocks(request.system) if not _is_billing_line(one)]
    pieces = [_piece(one, in_conversation=False) for one in (*request.tools, *system)]
    role_blocks = [(each.role, one) for each in request.messages for one in _blocks(each.content)]
    start = begins([one.get("type") for _, one in role_blocks])
    pieces += [_piece(one, role) for role, one in role_blocks[start:]]
    return Prompt(
        model=request.model,
        stream=request.stream,
        blocks=tuple(pieces),
        system=text_of(system),
        newest=text_of(_newest(request.messages)),
        tools=tuple(str(tool.get("name", "")) for tool in request.tools),
        headers=headers,
        summarise=request.compaction is not None,
    )


def _blocks(content: str | list[Json]) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _is_billing_line(one: Json) -> bool:
    return str(one.get("text", "")).startswith(BILLING_LINE)


def _piece(one: Json, role: str = "", *, in_conversation: bool = True) -> Block:
    control: Json | None = one.get("cache_control")
    content: list[Any] = [role, {key: one[key] for key in one if key != "cache_control"}]
    ttl = str(control.get("ttl", "5m")) if control else None
    return block(content, in_conversation=in_conversation, ttl=ttl)


def _newest(messages: list[_Message]) -> list[Any]:
    """The contents after the model's last answer."""
    newest: list[Any] = []
    for message in messages:
        newest = [] if message.role == "assistant" else [*newest, message.content]
    return newest


def split(cache: PrefixCache, blocks: tuple[Block, ...], added: int, tell_writes: bool) -> Split:
    """Read and write at the breakpoints of the request."""
    return cache.at_breakpoints(blocks, added)


def message_id(turn: Turn) -> str:
    """The id of the answer."""
    return f"msg_fake{turn.sequence:06d}"


def raw(turn: Turn) -> Json:
    """The final usage of an answer, over all of its passes."""
    return anthropic_context.with_passes(_last_pass(turn), turn)


def _last_pass(turn: Turn) -> Json:
    usage = turn.usage
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write - turn.split.write_1h,
            "ephemeral_1h_input_tokens": turn.split.write_1h,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def content(turn: Turn) -> list[Json]:
    """The content blocks of an answer."""
    reply, blocks = turn.reply, anthropic_context.blocks(turn)
    if turn.summed_up_alone:
        return blocks
    if reply.reasoning is not None:
        signature = f"c2lnbmF0dXJl{turn.sequence:04d}"
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
    if reply.text is not None:
        blocks.append({"type": "text", "text": reply.text})
    for place, tool in enumerate(reply.tools):
        call = {"id": turn.tool_id("toolu_fake", place), "name": tool.name, "input": tool.input}
        blocks.append({"type": "tool_use", **call})
    return blocks


def answer(turn: Turn) -> Json:
    """A whole answer."""
    return {
        "id": message_id(turn),
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content(turn),
        "stop_reason": _stop_reason(turn),
        "stop_sequence": None,
        "usage": raw(turn),
        **anthropic_context.management(turn),
    }


def _stop_reason(turn: Turn) -> str:
    if turn.summed_up_alone:
        return COMPACTION
    return "tool_use" if turn.reply.tools else "end_turn"


def events(turn: Turn) -> Iterator[ServerSentEvent]:
    """The answer as a stream; its first event has output_tokens 1, as the real API's has."""
    start = answer(turn)
    start.update(content=[], stop_reason=None, usage=_first_usage(turn))
    start.pop("context_management", None)
    yield _event({"type": "message_start", "message": start})
    yield _event({"type": "ping"})
    for place, one in enumerate(content(turn)):
        yield from _block_events(place, one)
    delta = {"stop_reason": _stop_reason(turn), "stop_sequence": None}
    delta_fields = {"delta": delta, "usage": raw(turn), **anthropic_context.management(turn)}
    yield _event({"type": "message_delta", **delta_fields})
    yield _event({"type": "message_stop"})


def _first_usage(turn: Turn) -> Json:
    first = _last_pass(turn) | {"output_tokens": 1}
    first.pop("output_tokens_details")
    opened = anthropic_context.first_input(turn)
    if opened is not None:
        cached = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        first |= {"input_tokens": opened, **cached}
    return first


def _block_events(place: int, one: Json) -> Iterator[ServerSentEvent]:
    empty, deltas = _deltas(one)
    yield _event({"type": "content_block_start", "index": place, "content_block": empty})
    for delta in deltas:
        yield _event({"type": "content_block_delta", "index": place, "delta": delta})
    yield _event({"type": "content_block_stop", "index": place})


def _deltas(one: Json) -> tuple[Json, list[Json]]:
    """The empty block that opens a content block, and the deltas that fill it."""
    match one["type"]:
        case "thinking":
            return one | {"thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": one["thinking"]},
                {"type": "signature_delta", "signature": one["signature"]},
            ]
        case "text":
            return one | {"text": ""}, [{"type": "text_delta", "text": one["text"]}]
        case "compaction":
            filled = {"content": one["content"], "encrypted_content": one["encrypted_content"]}
            return one | {"content": None}, [{"type": "compaction_delta", **filled}]
        case _:
            text = msgspec.json.encode(one["input"]).decode()
            return one | {"input": {}}, [{"type": "input_json_delta", "partial_json": text}]


def _event(data: Json) -> ServerSentEvent:
    return ServerSentEvent(data, str(data["type"]))


def error(kind: ErrorKind, message: str) -> Json:
    """The body of an error answer."""
    return {"type": "error", "error": {"type": ERROR_TYPES[kind], "message": message}}


WIRE = Wire(
    api="anthropic-messages",
    read=read,
    split=split,
    raw=raw,
    message_id=message_id,
    answer=answer,
    events=events,
    error=error,
    tells_summary=True,
)
