"""Anthropic Messages: disjoint usage, cache at `cache_control` breakpoints.

The API itself edits the context, makes passes and compacts, and reports that in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..billed import Usage
from ..cache import PrefixCache, PromptSplit
from ..prompt import COMPACTION, Block, Prompt, begins, block, text_of
from ..scenario import EditKind, ErrorKind
from . import Json, ModelTurn, ServerSentEvent, Wire

# The client's own accounting line: it changes with every request and the real API leaves it
# out of the prompt.
BILLING_LINE = "x-anthropic-billing-header"

ERROR_TYPES: dict[ErrorKind, str] = {
    "overloaded": "overloaded_error",
    "rate_limited": "rate_limit_error",
    "server": "api_error",
    "prompt_too_long": "invalid_request_error",
}


OWN = "message"  # the kind of a pass of the conversation's own model: these add up to the top level

COUNTED: dict[EditKind, str] = {
    "clear_tool_uses_20250919": "cleared_tool_uses",
    "clear_thinking_20251015": "cleared_thinking_turns",
}


class _AnthropicMessage(msgspec.Struct):
    role: str
    content: str | list[Json]


class _AnthropicRequest(msgspec.Struct):
    model: str
    messages: list[_AnthropicMessage]
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


def _newest(messages: list[_AnthropicMessage]) -> list[Any]:
    """The contents after the model's last answer."""
    newest: list[Any] = []
    for message in messages:
        newest = [] if message.role == "assistant" else [*newest, message.content]
    return newest


def split(
    cache: PrefixCache, blocks: tuple[Block, ...], added: int, tell_writes: bool
) -> PromptSplit:
    """Read and write at the breakpoints of the request."""
    return cache.at_breakpoints(blocks, added)


def message_id(turn: ModelTurn) -> str:
    """The id of the answer."""
    return f"msg_fake{turn.sequence:06d}"


def raw(turn: ModelTurn) -> Json:
    """The final usage of an answer, over all of its passes."""
    return _with_passes(_last_pass(turn), turn)


def _last_pass(turn: ModelTurn) -> Json:
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


def content(turn: ModelTurn) -> list[Json]:
    """The content blocks of an answer."""
    reply, blocks = turn.reply, _summary_blocks(turn)
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


def answer(turn: ModelTurn) -> Json:
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
        **_management(turn),
    }


def _stop_reason(turn: ModelTurn) -> str:
    if turn.summed_up_alone:
        return COMPACTION
    return "tool_use" if turn.reply.tools else "end_turn"


def events(turn: ModelTurn) -> Iterator[ServerSentEvent]:
    """The answer as a stream; its first event has output_tokens 1, as the real API's has."""
    start = answer(turn)
    start.update(content=[], stop_reason=None, usage=_first_usage(turn))
    start.pop("context_management", None)
    yield _event({"type": "message_start", "message": start})
    yield _event({"type": "ping"})
    for place, one in enumerate(content(turn)):
        yield from _block_events(place, one)
    delta = {"stop_reason": _stop_reason(turn), "stop_sequence": None}
    delta_fields = {"delta": delta, "usage": raw(turn), **_management(turn)}
    yield _event({"type": "message_delta", **delta_fields})
    yield _event({"type": "message_stop"})


def _first_usage(turn: ModelTurn) -> Json:
    first = _last_pass(turn) | {"output_tokens": 1}
    first.pop("output_tokens_details")
    opened = _first_input(turn)
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


def _management(turn: ModelTurn) -> Json:
    """Return what an answer reports about edits; nothing if there were none."""
    applied: list[Json] = []
    for edit in turn.reply.edits:
        fields = {"cleared_input_tokens": edit.tokens, COUNTED[edit.kind]: edit.count}
        applied.append({"type": edit.kind, **fields})
    return {"context_management": {"applied_edits": applied}} if applied else {}


def _with_passes(usage: Json, turn: ModelTurn) -> Json:
    """The usage of an answer over all of its passes, which the API lists even if there is one."""
    passes = [
        _pass(one.kind, Usage(input=one.input, output=one.output)) for one in turn.reply.passes
    ]
    if turn.summary is not None:
        passes.append(_pass(COMPACTION, turn.summary.usage))
    if turn.summed_up_alone:
        usage = usage | {"cache_creation": None}
    else:
        passes.append(_pass(OWN, turn.usage))
    own = [one for one in passes if one["type"] == OWN]
    sums = {name: sum(one[name] for one in own) for name in passes[0] if name != "type"}
    return usage | sums | {"iterations": passes}


def _pass(kind: str, usage: Usage) -> Json:
    return {
        "type": kind,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def _first_input(turn: ModelTurn) -> int | None:
    """The prompt of the first pass, which a stream begins with; None if it is the only one."""
    own = [one.input for one in turn.reply.passes if one.kind == OWN]
    return turn.summary.closed if turn.summary else next(iter(own), None)


def _summary_blocks(turn: ModelTurn) -> list[Json]:
    """The content block of the compaction in an answer, if there is one."""
    if turn.summary is None:
        return []
    signature = f"c2lnbmF0dXJl{turn.sequence:04d}"
    block: Json = {"type": COMPACTION, "content": turn.summary.text, "signature": signature}
    return [block | {"encrypted_content": None}]


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
