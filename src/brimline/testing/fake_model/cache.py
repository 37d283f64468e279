"""Simulated prefix caches: which part of a prompt is read, written, and paid in full."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from .prompt import Block

LOOKBACK = 20
OPENAI_GRAIN = 128
OPENAI_MINIMUM = 1024
FRAMING = 4  # tokens that the Anthropic API counts after the last breakpoint


@dataclass(frozen=True)
class PromptSplit:
    """The prompt side of a call in disjoint buckets."""

    input: int
    read: int = 0
    write: int = 0
    write_1h: int = 0  # the part of `write` with a lifetime of an hour

    @property
    def total(self) -> int:
        """Every token of the prompt."""
        return self.input + self.read + self.write


class PrefixCache:
    """Remembers the prefixes of earlier prompts and how many tokens each was billed at."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def at_breakpoints(self, blocks: Sequence[Block], added: int) -> PromptSplit:
        """Split as Anthropic does: read and write up to the breakpoints, the rest in full."""
        prefixes, sizes = _prefixes(blocks), _sizes(blocks, added)
        marks = [place for place, one in enumerate(blocks) if one.ttl is not None]
        if not marks:
            return PromptSplit(input=_total(sizes))
        longest = self._longest(prefixes, marks)
        read = min(self._known[prefixes[longest]], sizes[longest]) if longest is not None else 0
        for place in marks:
            self._known[prefixes[place]] = sizes[place]
        return _split(blocks, sizes, marks, read)

    def _longest(self, prefixes: Sequence[bytes], marks: Sequence[int]) -> int | None:
        for mark in reversed(marks):
            for place in range(mark, max(-1, mark - LOOKBACK), -1):
                if prefixes[place] in self._known:
                    return place
        return None

    def automatic(
        self, blocks: Sequence[Block], added: int, *, grain: int = 1, tell_writes: bool = False
    ) -> PromptSplit:
        """Split as OpenAI and Gemini do: the longest known prefix in whole grains is read."""
        prefixes, sizes = _prefixes(blocks), _sizes(blocks, added)
        hits = (
            min(self._known[key], size)
            for key, size in zip(prefixes, sizes, strict=True)
            if key in self._known
        )
        read = max(hits, default=0) // grain * grain
        self._known.update(zip(prefixes, sizes, strict=True))
        if grain > 1 and read < OPENAI_MINIMUM:
            read = 0
        left = _total(sizes) - read
        write = left // grain * grain if tell_writes else 0
        return PromptSplit(input=left - write, read=read, write=write)


def uncached(blocks: Sequence[Block], added: int) -> PromptSplit:
    """The split of a prompt without a cache."""
    return PromptSplit(input=_total(_sizes(blocks, added)))


def _split(
    blocks: Sequence[Block], sizes: Sequence[int], marks: Sequence[int], read: int
) -> PromptSplit:
    end = sizes[marks[-1]]
    short = [sizes[mark] for mark in marks if blocks[mark].ttl != "1h"]
    hour = [sizes[mark] for mark in marks if blocks[mark].ttl == "1h"]
    write = max(0, end - read)
    kept_long = min(write, max(0, max(hour, default=0) - read)) if short else write
    return PromptSplit(input=sizes[-1] - end + FRAMING, read=read, write=write, write_1h=kept_long)


def _prefixes(blocks: Sequence[Block]) -> list[bytes]:
    """A key for the prompt up to and including each block."""
    running = hashlib.blake2b(digest_size=16)
    keys: list[bytes] = []
    for one in blocks:
        running.update(one.key)
        keys.append(running.copy().digest())
    return keys


def _sizes(blocks: Sequence[Block], added: int) -> list[int]:
    """Tokens up to and including each block; the added ones stand before the conversation."""
    sizes = accumulate(one.tokens for one in blocks)
    return [
        size + (added if one.in_conversation else 0)
        for size, one in zip(sizes, blocks, strict=True)
    ]


def _total(sizes: Sequence[int]) -> int:
    return sizes[-1] if sizes else 0
