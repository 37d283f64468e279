"""Anthropic Messages: an answer's usage, and a stream's from its SSE events."""

from collections.abc import Sequence
from typing import cast

import msgspec

from brimline.providers.rows import Row, Shape, walk
from brimline.usage import ZERO, Usage

MESSAGES = Shape(
    "anthropic-messages",
    "disjoint",
    (
        Row("input", ("input_tokens",), required=True),
        Row("cache_read", ("cache_read_input_tokens",)),
        Row("cache_write", ("cache_creation_input_tokens",)),
        Row("output", ("output_tokens",), required=True),
    ),
)

COMPACTION = "compaction"
ASIDE = frozenset({"advisor_message", COMPACTION})
"""Passes that are not the thread's own: another model's advice, the API's own summing up."""


class Pass(msgspec.Struct, frozen=True, gc=False):
    """One pass of a call that the API made in several: an entry of `usage.iterations`."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    type: str | None = None


class MessageUsage(msgspec.Struct, frozen=True, gc=False):
    """The `usage` of a message, typed for records that are read in bulk."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    iterations: tuple[Pass, ...] | None = None


EMPTY = Usage(0, 0, 0, 0)


def usage_of(reported: object) -> Usage | None:
    """The usage of a message; None where it is all zero, as on a message that was no call.

    With several passes the top level is their sum: the last pass of the thread's own tells what it
    sent. A zero top level over passes is an old message written again: no call.
    """
    if isinstance(reported, MessageUsage):  # the rows of MESSAGES written out: these come in bulk
        usage = Usage(
            reported.input_tokens,
            reported.cache_read_input_tokens,
            reported.cache_creation_input_tokens,
            reported.output_tokens,
        )
        passes = reported.iterations
    else:
        usage, passes = MESSAGES.usage(reported), _passes(reported)
    if usage == EMPTY:
        return None
    if passes is None or len(passes) < 2:
        return usage
    own = [each for each in passes if walk(each, "type") not in ASIDE]
    return MESSAGES.usage(own[-1]) if own else usage


class SummedUp(msgspec.Struct, frozen=True):
    """A compaction by the API itself: what it took, and whether the thread's call came after it."""

    usage: Usage
    went_on: bool


def summed_up(reported: object) -> SummedUp | None:
    """The compaction in a message's usage; None where there was none."""
    passes = _passes(reported) or ()
    kinds = [walk(each, "type") for each in passes]
    if COMPACTION not in kinds:
        return None
    place = len(kinds) - 1 - kinds[::-1].index(COMPACTION)
    return SummedUp(MESSAGES.usage(passes[place]), went_on=place < len(kinds) - 1)


def _passes(reported: object) -> Sequence[object] | None:
    passes = walk(reported, "iterations")
    return cast("Sequence[object]", passes) if isinstance(passes, Sequence) else None


class Streamed(msgspec.Struct, frozen=True):
    """What a stream has told of its message so far."""

    id: str
    model: str | None
    usage: Usage
    final: bool


class MessageStream:
    """Follows the SSE events of one message: input at message_start, output at message_delta."""

    def __init__(self) -> None:
        self._message: Streamed | None = None

    def follows(self, call: str) -> bool:
        """Whether the message that it follows is this one."""
        return self._message is not None and self._message.id == call

    def ended(self, call: str) -> bool:
        """Whether the message that it follows is this one, and told all of its usage."""
        return self.follows(call) and self._message is not None and self._message.final

    def feed(self, event: object) -> Streamed | None:
        """What is known after this event, where it changed anything."""
        match walk(event, "type"):
            case "message_start":
                return self._start(walk(event, "message"))
            case "message_delta":
                return self._delta(walk(event, "usage"))
            case _:
                return None

    def _start(self, message: object) -> Streamed | None:
        name, model = walk(message, "id"), walk(message, "model")
        usage = usage_of(walk(message, "usage")) if isinstance(name, str) else None
        if not isinstance(name, str):
            self._message = None
            return None
        model = model if isinstance(model, str) else None
        self._message = Streamed(name, model, usage or ZERO, final=False)
        return self._message if usage else None

    def _delta(self, reported: object) -> Streamed | None:
        if self._message is None or reported is None:
            return None
        begun = self._message.usage
        usage = usage_of(
            {
                "input_tokens": _told(reported, "input_tokens", begun.input),
                "cache_read_input_tokens": _told(
                    reported, "cache_read_input_tokens", begun.cache_read
                ),
                "cache_creation_input_tokens": _told(
                    reported, "cache_creation_input_tokens", begun.cache_write
                ),
                "output_tokens": walk(reported, "output_tokens"),
                "iterations": walk(reported, "iterations"),
            }
        )
        if usage is None:
            return None
        self._message = msgspec.structs.replace(self._message, usage=usage, final=True)
        return self._message


def _told(reported: object, field: str, begun: int) -> object:
    """A count of the delta; the one of message_start where the delta does not repeat it."""
    value = walk(reported, field)
    return value if value else begun
