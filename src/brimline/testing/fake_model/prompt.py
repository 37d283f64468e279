"""A model request, read into one shape whatever its API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Block:
    """A piece of the prompt in wire order; `ttl` is set where a cache breakpoint stands."""

    key: bytes
    tokens: int
    in_conversation: bool
    ttl: str | None = None


@dataclass(frozen=True)
class Prompt:
    """What one request asks of the model."""

    model: str
    stream: bool
    blocks: tuple[Block, ...]
    system: str
    """The text of the instructions."""
    newest: str
    """The text of what came in since the model's last answer."""
    tools: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tell_usage: bool = True
    """Whether a stream ends with its usage."""


def block(content: Any, *, in_conversation: bool, ttl: str | None = None) -> Block:
    """A piece of a prompt, known by its canonical JSON and sized by its length."""
    text = msgspec.json.encode(content, order="sorted")
    key = hashlib.blake2b(text, digest_size=16).digest()
    return Block(key, estimate(text), in_conversation, ttl)


def estimate(text: bytes | str) -> int:
    """Tokens of a text, at least one."""
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


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
