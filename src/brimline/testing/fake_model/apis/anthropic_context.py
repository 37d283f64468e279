"""Edits, passes and compactions that the Anthropic API itself makes, and how it reports them."""

from __future__ import annotations

from ..billed import Usage
from ..prompt import COMPACTION
from ..scenario import EditKind
from . import Json, Turn

OWN = "message"  # the kind of a pass of the conversation's own model: these add up to the top level

COUNTED: dict[EditKind, str] = {
    "clear_tool_uses_20250919": "cleared_tool_uses",
    "clear_thinking_20251015": "cleared_thinking_turns",
}


def management(turn: Turn) -> Json:
    """Return what an answer reports about edits; nothing if there were none."""
    applied: list[Json] = []
    for edit in turn.reply.edits:
        fields = {"cleared_input_tokens": edit.tokens, COUNTED[edit.kind]: edit.count}
        applied.append({"type": edit.kind, **fields})
    return {"context_management": {"applied_edits": applied}} if applied else {}


def with_passes(usage: Json, turn: Turn) -> Json:
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


def first_input(turn: Turn) -> int | None:
    """The prompt of the first pass, which a stream begins with; None if it is the only one."""
    own = [one.input for one in turn.reply.passes if one.kind == OWN]
    return turn.summary.closed if turn.summary else next(iter(own), None)


def blocks(turn: Turn) -> list[Json]:
    """The content block of the compaction in an answer, if there is one."""
    if turn.summary is None:
        return []
    signature = f"c2lnbmF0dXJl{turn.sequence:04d}"
    block: Json = {"type": COMPACTION, "content": turn.summary.text, "signature": signature}
    return [block | {"encrypted_content": None}]
