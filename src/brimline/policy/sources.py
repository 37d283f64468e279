"""Two sources for one thread, and none: when they do not agree, and when nothing is heard. Pure."""

import msgspec

APART = 0.02
"""Two figures for the same call that differ by more than this part do not agree..."""

LASTS = 60.0
"""...and it is a signal when that has lasted so many seconds..."""

SEEN = 3
"""...and was seen so many times: one source is always a little ahead of the other."""

UNHEARD = 5
"""After so many calls that no hook told of, the hooks are as good as not there."""


class Comparison(msgspec.Struct, frozen=True):
    """Since when two sources are apart, and how often that was seen."""

    since: float | None = None
    seen: int = 0

    @property
    def disagree(self) -> bool:
        """Whether they were seen apart often enough; `lasting` tells whether for long enough."""
        return self.seen >= SEEN

    def lasting(self, at: float) -> bool:
        """Whether they do not agree, and have not for a while."""
        return self.disagree and self.since is not None and at - self.since >= LASTS


AGREED = Comparison()


def compared(before: Comparison, one: int | None, other: int | None, at: float) -> Comparison:
    """The comparison after both told what was sent; unknown tells nothing."""
    if one is None or other is None:
        return before
    if abs(one - other) <= APART * max(one, other):
        return AGREED
    since = at if before.since is None else before.since
    return Comparison(since, before.seen + 1)


def unheard(calls: int, begun: float | None, hooked_since: float | None) -> bool:
    """Whether hooks that are installed must be broken: so many calls, and none of them heard of.

    A session that began before they were installed does not know them.
    """
    if hooked_since is None or begun is None or begun < hooked_since:
        return False
    return calls >= UNHEARD
