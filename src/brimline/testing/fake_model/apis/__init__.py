"""One module per model API: how its requests are read and its answers are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..billed import Api, Usage
from ..cache import PrefixCache, PromptSplit
from ..prompt import Block, Prompt
from ..scenario import ErrorKind, Reply

Json = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """A compaction by the API itself: its text, its usage, what was sent before it."""

    text: str
    usage: Usage
    closed: int
    alone: bool  # whether it is the whole answer


@dataclass(frozen=True)
class ModelTurn:
    """One answer to be sent: its reply, id and usage."""

    sequence: int
    model: str
    reply: Reply
    usage: Usage
    split: PromptSplit
    tell_writes: bool = False
    tell_usage: bool = True
    tell_growth: bool = False
    summary: Summary | None = None

    @property
    def summed_up_alone(self) -> bool:
        """Whether a compaction is all that is answered."""
        return self.summary is not None and self.summary.alone

    def tool_id(self, prefix: str, place: int) -> str:
        """An id for the n-th tool call of this answer."""
        return f"{prefix}{self.sequence:06d}{place:02d}"


@dataclass(frozen=True)
class ServerSentEvent:
    """One server-sent event; `name` is None if the API sends only data."""

    data: Json | str
    name: str | None = None


@dataclass(frozen=True)
class Wire:
    """An API as its functions and the way it caches."""

    api: Api
    # Body, path with query, and lower-case headers in; a prompt out.
    read: Callable[[bytes, str, Mapping[str, str]], Prompt]
    # Cache, prompt, tokens added, and whether cache writes are reported apart.
    split: Callable[[PrefixCache, tuple[Block, ...], int, bool], PromptSplit]
    raw: Callable[[ModelTurn], Json]  # the usage object of the API
    message_id: Callable[[ModelTurn], str]
    answer: Callable[[ModelTurn], Json]
    events: Callable[[ModelTurn], Iterator[ServerSentEvent]]
    error: Callable[[ErrorKind, str], Json]
    # Whether it reports the usage of a compaction apart from the answer's.
    tells_summary: bool = False
