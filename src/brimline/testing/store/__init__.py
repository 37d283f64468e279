"""The conformance suite that every store passes.

    for check in CHECKS:
        await check(make)

`make` returns a new, empty store. PAIR_CHECKS are for stores that several processes share: their
`make` returns two stores on the same, empty file.
"""

from brimline.testing.store import compactions, forgetting, messages, pairs, revisions, rows
from brimline.testing.store.suite import CHECKS, PAIR_CHECKS, Check, Make, MakePair, PairCheck

__all__ = [
    "CHECKS",
    "PAIR_CHECKS",
    "Check",
    "Make",
    "MakePair",
    "PairCheck",
    "compactions",
    "forgetting",
    "messages",
    "pairs",
    "revisions",
    "rows",
]
