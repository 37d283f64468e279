"""Drifts of a limit: versions of clients that compact a model elsewhere than expected."""

from collections.abc import Iterable

import msgspec

from brimline.context.usage import format_tokens
from brimline.context.window.resolve import CONSISTENT_WITHIN, ResolveContext, Window, limit_of

DRIFT_COMPACTIONS = 3  # in a row, which agree with each other and not with what is expected


class SeenCompaction(msgspec.Struct, frozen=True):
    """Where a client compacted by itself, not after an overflow, and where it was expected to."""

    agent: str
    model: str | None
    version: str
    at: float
    tokens: int
    expected: int

    @property
    def is_unexpected(self) -> bool:
        return abs(self.tokens - self.expected) > CONSISTENT_WITHIN * self.expected


class LimitDrift(msgspec.Struct, frozen=True):
    """A version of a client that compacts a model elsewhere than expected, as a sentence."""

    agent: str
    model: str | None
    version: str
    text: str


def expect_limit(known: ResolveContext, window: Window | None) -> int | None:
    """Return the limit by the client's settings or its rule, without what was seen."""
    unseen = msgspec.structs.replace(known, compacted_at=(), sustained=0, first_sent=None)
    limit = limit_of(unseen, window)
    return limit.tokens if limit else None


def find_drifts(compactions: Iterable[SeenCompaction]) -> list[LimitDrift]:
    """Return the drifts, at most one for each client version and model."""
    groups: dict[tuple[str, str | None, str], list[SeenCompaction]] = {}
    for each in sorted(compactions, key=lambda each: each.at):
        groups.setdefault((each.agent, each.model, each.version), []).append(each)
    described = ((key, _describe(group[-DRIFT_COMPACTIONS:])) for key, group in groups.items())
    return [LimitDrift(*key, text) for key, text in described if text]


def _describe(last: list[SeenCompaction]) -> str | None:
    lowest, highest = (pick(each.tokens for each in last) for pick in (min, max))
    if len(last) < DRIFT_COMPACTIONS or highest > (1 + CONSISTENT_WITHIN) * lowest:
        return None
    if not all(each.is_unexpected for each in last):
        return None
    expected = format_tokens(last[-1].expected)
    since = f"three times since {last[-1].version}"
    return f"compacted at {format_tokens(lowest)} {since}, expected {expected}"
