"""Pi's hooks, which are our own extension's (setup/extensions/pi.js).

The end of a compaction is answered: the extension puts the document before the next request.
"""

import msgspec

from brimline.hooks.dialect import EVENTS, STARTS, Dialect
from brimline.hooks.extension import decoded, reported
from brimline.hooks.protocol import Request
from brimline.observations import Observation, Reply

DIALECT = Dialect(EVENTS, {**STARTS, "new": "cleared"}, mute=frozenset())


class Pi:
    """Pi's hooks."""

    def heard(self, request: Request, at: float, late: bool = False) -> Observation | None:
        """What a hook tells, and the window that Pi goes by."""
        told = decoded(request)
        heard = DIALECT.main(request, told, at, late)
        return heard and msgspec.structs.replace(heard, events=reported(told))

    def answer(self, request: Request, reply: Reply) -> bytes:
        """A reply: the end of a turn goes on, the others add to what is read."""
        return DIALECT.answer(request, reply)


HOOKS = Pi()
