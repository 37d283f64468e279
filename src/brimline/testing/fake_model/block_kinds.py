"""What a block of a prompt is, by its shape in each API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

from .billed import BilledBlock

BlockKind: TypeAlias = Literal[
    "system",
    "tools",
    "user",
    "reply",
    "reasoning",
    "tool call",
    "tool result",
    "image",
    "summary",
]

_BY_TYPE: dict[str, BlockKind] = {
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "reasoning": "reasoning",
    "tool_use": "tool call",
    "function_call": "tool call",
    "custom_tool_call": "tool call",
    "local_shell_call": "tool call",
    "tool_result": "tool result",
    "function_call_output": "tool result",
    "custom_tool_call_output": "tool result",
    "image": "image",
    "compaction": "summary",
}
_BY_ROLE: dict[str, BlockKind] = {
    "": "system",
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "reply",
    "model": "reply",
    "tool": "tool result",
}


def kind_of(content: Any) -> BlockKind:
    """What a block is: a tool, a text by its role, or what its type says."""
    role = ""
    if isinstance(content, list):  # Anthropic and Gemini: a role and a part
        role, content = cast("list[Any]", content)
    if not isinstance(content, dict):
        return "system"
    fields = cast("dict[str, Any]", content)
    role = str(fields.get("role", role))
    if kind := _BY_TYPE.get(str(fields.get("type", ""))):
        return kind
    if fields.keys() & {"input_schema", "functionDeclarations", "parameters", "function"}:
        return "tools"
    if "functionCall" in fields or fields.get("tool_calls"):
        return "tool call"
    if "functionResponse" in fields:
        return "tool result"
    if fields.get("thought"):
        return "reasoning"
    return _BY_ROLE.get(role, "system")


def tokens_by_kind(blocks: Iterable[BilledBlock]) -> Counter[BlockKind]:
    """The tokens of a prompt by what they are."""
    counts = Counter[BlockKind]()
    for block in blocks:
        counts[kind_of(block.content)] += block.tokens
    return counts
