"""Threads without the calls that no figure needs: what a reading costs does not grow with them."""

from itertools import islice

import msgspec

from brimline.events import Call
from brimline.tracker import Thread


class Slim:
    """Follows one thread; looks at each of its calls once."""

    def __init__(self) -> None:
        self._seen = 0
        self._last: Call | None = None
        self._most: dict[str | None, Call] = {}

    def of(self, thread: Thread) -> Thread:
        """The thread with the largest call of each model, what it holds now, and its last call."""
        if self._last is not None and thread.calls.get(self._last.id) is not self._last:
            self._seen, self._last, self._most = 0, None, {}
        for call in islice(thread.calls.values(), self._seen, None):
            known = self._most.get(call.model)
            if known is None or call.usage.sent >= known.usage.sent:
                self._most[call.model] = call
            self._last = call
        self._seen = len(thread.calls)
        return msgspec.structs.replace(thread, calls=self._needed(thread))

    def _needed(self, thread: Thread) -> dict[str, Call]:
        needed = {call.id: call for call in self._most.values()}
        for call in (thread.holding, self._last):
            if call is not None:
                needed.pop(call.id, None)
                needed[call.id] = call
        return needed
