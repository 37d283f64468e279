"""What every store must do: a suite that any implementation can run.

    for check in CHECKS:
        await check(make)

`make` gives a new, empty store. PAIR_CHECKS are for stores that several processes share: there
`make` gives two stores on the same, empty place.
"""

from brimline.testing.store import compactions, forgetting, messages, pairs, rows
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
    "rows",
]
