"""When two sources of one thread disagree, and when hooks are silent. Pure."""

import msgspec

MAX_DIFFERENCE = 0.02  # two figures for the same call that differ by a larger share disagree
DISAGREE_AFTER_S = 60.0  # a disagreement is a signal after this time...
DISAGREE_TIMES = 3  # ...and this many observations: one source is always a little ahead
MAX_CALLS_WITHOUT_HOOK = 5  # after this many calls without a hook, hooks count as broken


class Comparison(msgspec.Struct, frozen=True):
    """Since when two sources differ, and how often that was seen."""

    since: float | None = None
    seen: int = 0

    @property
    def disagree(self) -> bool:
        """Whether they differed often enough; `is_lasting` says whether for long enough."""
        return self.seen >= DISAGREE_TIMES

    def is_lasting(self, at: float) -> bool:
        """Return whether they disagree, and have for a while."""
        return self.disagree and self.since is not None and at - self.since >= DISAGREE_AFTER_S


AGREED = Comparison()


def compare(before: Comparison, one: int | None, other: int | None, at: float) -> Comparison:
    """Return the comparison after both reported what was sent; None is ignored."""
    if one is None or other is None:
        return before
    if abs(one - other) <= MAX_DIFFERENCE * max(one, other):
        return AGREED
    since = at if before.since is None else before.since
    return Comparison(since, before.seen + 1)


def are_hooks_silent(calls: int, first_call_at: float | None, installed_at: float | None) -> bool:
    """Return whether installed hooks must be broken: too many calls without a hook.

    A session that began before they were installed does not have them.
    """
    if installed_at is None or first_call_at is None or first_call_at < installed_at:
        return False
    return calls >= MAX_CALLS_WITHOUT_HOOK
