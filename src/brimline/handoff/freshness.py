"""How outdated a handoff is: calls and changed files since it was written."""

from collections.abc import Collection

import msgspec

# A call adds about 660 tokens to a context (median of real sessions): after 20 calls a document
# lacks the last 13,000.
MAX_FRESH_CALLS = 20
MAX_FRESH_FILES = 5


class Freshness(msgspec.Struct, frozen=True):
    """Calls and changed files since a document was written; None is unknown."""

    calls: int | None = None
    files: int | None = None

    @property
    def is_old(self) -> bool | None:
        """Whether there were more than MAX_FRESH_CALLS or MAX_FRESH_FILES; None is unknown."""
        if self.calls is not None and self.calls > MAX_FRESH_CALLS:
            return True
        if self.files is not None and self.files > MAX_FRESH_FILES:
            return True
        return None if self.calls is None else False


def compute_freshness(
    calls_then: int | None, calls_now: int | None, changed: Collection[str] | None = None
) -> Freshness:
    """Compare the thread's calls then and now, and count the files changed since.

    A count that fell belongs to another thread or transcript: the calls are then unknown.
    """
    calls = None if calls_then is None or calls_now is None else calls_now - calls_then
    known = calls if calls is not None and calls >= 0 else None
    return Freshness(known, None if changed is None else len(changed))
