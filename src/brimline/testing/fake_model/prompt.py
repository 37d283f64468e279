"""A model request, read into one shape whatever its API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

CHARACTERS_PER_TOKEN = 4
# The kind of block or item in which an API hands out its own summary, and gets it back.
COMPACTION = "compaction"


@dataclass(frozen=True)
class Block:
    """A piece of the prompt in wire order; `ttl` is set at a cache breakpoint."""

    key: bytes
    tokens: int
    in_conversation: bool
    ttl: str | None = None
    content: Any = None


@dataclass(frozen=True)
class Prompt:
    """What one request asks of the model."""

    model: str
    stream: bool
    blocks: tuple[Block, ...]
    system: str  # the text of the instructions
    newest: str  # the text of what came in since the model's last answer
    tools: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tell_usage: bool = True  # whether a stream ends with its usage
    tell_growth: bool = False  # whether each chunk of a stream has the usage so far
    summarise: bool = False  # whether nothing but a compaction is asked for

    @property
    def tokens(self) -> int:
        """The tokens of everything that was sent."""
        return sum(one.tokens for one in self.blocks)

    def summed_up(self, summary: str) -> Prompt:
        """The prompt with its conversation replaced by a summary."""
        heads = tuple(one for one in self.blocks if not one.in_conversation)
        return replace(self, blocks=(*heads, block(summary, in_conversation=True)))


def block(content: Any, *, in_conversation: bool, ttl: str | None = None) -> Block:
    """A piece of a prompt, known by its canonical JSON and sized by its length."""
    text = msgspec.json.encode(content, order="sorted")
    key = hashlib.blake2b(text, digest_size=16).digest()
    return Block(key, estimate(text), in_conversation, ttl, content)


def estimate(text: bytes | str) -> int:
    """Tokens of a text, at least one."""
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def begins(kinds: Sequence[object]) -> int:
    """Where the part of a conversation that counts begins: at its last compaction, else at 0."""
    places = [place for place, kind in enumerate(kinds) if kind == COMPACTION]
    return places[-1] if places else 0


def text_of(content: Any) -> str:
    """Every string inside a piece of JSON, one per line."""
    return "\n".join(strings(content))


def strings(content: Any) -> Iterable[str]:
    """The strings inside a piece of JSON, depth first, keys left out."""
    match content:
        case str():
            yield content
        case dict():
            for value in cast("dict[str, Any]", content).values():
                yield from strings(value)
        case list():
            for item in cast("list[Any]", content):
                yield from strings(item)
        case _:
            return
