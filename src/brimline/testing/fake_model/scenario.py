"""What the fake model answers: a frozen value, written in Python or read from a JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

ErrorKind = Literal["overloaded", "rate_limited", "server", "prompt_too_long"]
EditKind = Literal["clear_tool_uses_20250919", "clear_thinking_20251015"]

CAPTURED = "{captured}"

STATUS: dict[ErrorKind, int] = {
    "overloaded": 529,
    "rate_limited": 429,
    "server": 500,
    "prompt_too_long": 400,
}


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model asks for, by the name and with the arguments of the client."""

    name: str
    input: dict[str, Any] = {}
    namespace: str | None = None  # OpenAI alone: the group that the tool is declared in


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the prompt that the Anthropic API itself cleared before it answered."""

    kind: EditKind = "clear_tool_uses_20250919"
    tokens: int  # taken off the tokens added to the prompt
    count: int = 1  # how many tool uses or turns of thinking that were


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """A pass of the Anthropic API before the one that answered, and its tokens."""

    kind: Literal["message", "advisor_message"] = "message"
    input: int
    output: int


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The API itself summarises the conversation and continues from the scenario's summary.

    Anthropic reports its cost; OpenAI does not.
    """

    input: int
    output: int
    paused: bool = False  # Anthropic alone: the summary is the whole answer


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model: reasoning, text, tool calls; or an error instead of them."""

    text: str | None = None
    reasoning: str | None = None
    tools: tuple[ToolCall, ...] = ()
    error: ErrorKind | None = None
    when: str | None = None  # used only for a request whose newest messages contain this text
    # A pattern sought in the newest messages; its group 1 replaces CAPTURED in tool inputs.
    capture: str | None = None
    output: int | None = None  # output tokens billed; without it, estimated from the content
    added: int | None = None  # prompt tokens billed beyond those sent, in place of the ramp's
    edits: tuple[Edit, ...] = ()
    passes: tuple[Pass, ...] = ()
    compaction: Compaction | None = None
    cold: bool = False  # the caches lost everything before this call
    unfinished: bool = False  # Gemini only: the client is asked to request the rest
    delay: float = 0.0  # seconds before the first byte
    pace: float = 0.0  # seconds between two events of a stream


class Ramp(msgspec.Struct, frozen=True, kw_only=True):
    """Prompt tokens billed beyond those sent: `start`, then `step` more on every call."""

    start: int = 0
    step: int = 0
    # The new start once the prompt is a compacted one, by the client or by the API.
    after_compaction: int = 0

    def at(self, call: int, compactions: int) -> int:
        """Tokens added to the n-th call (from 0) after this number of compactions."""
        return (self.after_compaction if compactions else self.start) + self.step * call


SUMMARY = "<summary>The work so far: the commands were run and their output was read.</summary>"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Replies for the main thread and for each subagent, taken in order, then `otherwise`."""

    main: tuple[Reply, ...] = ()
    subagent: tuple[Reply, ...] = ()
    otherwise: Reply = Reply(text="Done.")
    summary: str = SUMMARY
    ramp: Ramp = Ramp()
    window: int | None = None  # a prompt billed above this is refused as too long
    cache: bool = True
    # OpenAI only: report the tokens newly written to the cache, as its newer models do.
    cache_writes: bool = False
    list_blocks: bool = False  # whether each bill lists the blocks of its prompt
    headers: dict[str, str] = {}  # of every answer, such as those of rate limits


def load(path: Path) -> Scenario:
    """The scenario of a JSON file; a wrong field is msgspec.ValidationError with its place."""
    return msgspec.json.decode(path.read_bytes(), type=Scenario)


def save(scenario: Scenario, path: Path) -> None:
    """Write a scenario that `load` can read."""
    path.write_bytes(msgspec.json.encode(scenario))
