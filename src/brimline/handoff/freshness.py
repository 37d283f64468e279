"""How much happened since a handoff was written."""

from collections.abc import Collection

import msgspec

OLD_CALLS = 20
"""More calls than this after it, and a document is old.

A call adds some 660 tokens to a context, by the median of real sessions: it then knows nothing of
the last 13,000.
"""

OLD_FILES = 5
"""More files than this changed after it, and a document is old."""


class Freshness(msgspec.Struct, frozen=True):
    """The calls, and the files changed, since a document was written; None where not known."""

    calls: int | None = None
    files: int | None = None

    @property
    def old(self) -> bool | None:
        """Whether more than OLD_CALLS calls or OLD_FILES files came after it; None: not known."""
        if self.calls is not None and self.calls > OLD_CALLS:
            return True
        if self.files is not None and self.files > OLD_FILES:
            return True
        return None if self.calls is None else False


def freshness(
    calls_then: int | None, calls_now: int | None, changed: Collection[str] | None = None
) -> Freshness:
    """How fresh a document is, by its thread's calls then and now and the files changed since.

    A count that fell is another thread's or another file's: then the calls are not known.
    """
    calls = None if calls_then is None or calls_now is None else calls_now - calls_then
    known = calls if calls is not None and calls >= 0 else None
    return Freshness(known, None if changed is None else len(changed))
