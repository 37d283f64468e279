"""What a client tells of its last call itself, by its status line or a hook."""

from typing import get_args

from brimline.events import Call
from brimline.observations import Observation, Teller
from brimline.policy.sources import AGREED, Comparison, compared
from brimline.store.rows import ThreadRow
from brimline.tracker import Thread
from brimline.usage import Usage

OVERTAKEN = 5.0
"""So many seconds at most a status line that is answered may be older than one before it."""

CALL = "told"


class ClientReported:
    """The client's own figure. It may be ahead of the transcript, or have been passed by it.

    `call` is None where the client tells nothing of what is held: before a call, and after a
    compaction, when it tells 0; no call sends nothing, whatever its reply. `most` is what a call of
    the present model sent at most, as told: its window is no smaller, whatever was compacted since.
    """

    def __init__(self) -> None:
        self.call: Call | None = None
        self.by: Teller = "status line"
        self.window: int | None = None
        self.comparison: Comparison = AGREED
        self.most = 0
        self._model: str | None = None
        self._calls = self._cycle = 0

    def recall(self, row: ThreadRow, model: str | None) -> None:
        """What the client had told when another monitor watched it, and no file tells."""
        by = next((teller for teller in get_args(Teller) if teller == row.source), None)
        if row.sent is None or by is None:
            return
        usage = Usage(row.sent, 0, 0, max(0, (row.held or 0) - row.sent))
        self.call = Call(at=row.at, id=CALL, usage=usage, model=model)
        self.by, self.window, self._cycle = by, row.window, row.cycle
        self.most, self._model = row.sent, model

    def take(self, heard: Observation, model: str | None, main: Thread, cycle: int) -> None:
        """Take in what the client told; what is older than what is known tells nothing."""
        if self.call is not None and _is_older(heard, self.call.at or 0.0):
            return
        self.window = heard.window or self.window
        if heard.usage is None or not heard.usage.sent:
            self.call = None
            return
        self.most = max(self.most if model == self._model else 0, heard.usage.sent)
        self._model = model
        if not self._is_known(heard.usage, model, main, cycle):
            self.call = Call(at=heard.at, id=CALL, usage=heard.usage, model=model)
            self.by, self._calls, self._cycle = heard.by, main.call_count, cycle
        last = main.current_call if main.cycle == cycle else None
        seen = last.usage.sent if last else None
        self.comparison = compared(self.comparison, heard.usage.sent, seen, heard.at)

    def _is_known(self, usage: Usage, model: str | None, main: Thread, cycle: int) -> bool:
        """Whether the client only says again what it said, with no call since."""
        if self.call is None or self.call.usage != usage or self.call.model != model:
            return False
        return (self._calls, self._cycle) == (main.call_count, cycle)

    def fell(self, heard: Observation) -> bool:
        """Whether less is told than before: between the two a part of the context went away."""
        if self.call is None or heard.usage is None or not heard.usage.sent:
            return False
        return heard.usage.sent < self.call.usage.sent

    def repeats(self, heard: Observation) -> bool:
        """Whether the client tells the same prompt again; its reply may be counted anew."""
        if self.call is None or heard.usage is None:
            return False
        return heard.usage.sent == self.call.usage.sent

    def cut(self, heard: Observation, cycle: int) -> None:
        """A cycle ended. What was told so far came before that; after it only where its end is
        told late, and was earlier."""
        if heard.late and self.call is not None and (self.call.at or 0.0) > heard.at:
            self._cycle = cycle
        else:
            self.call = None

    def end(self, cycle: int) -> None:
        """Drop what was told in a cycle before this one."""
        if cycle > self._cycle:
            self.call = None

    def ahead(self, main: Thread, cycle: int) -> Call | None:
        """The call that the client tells of and the transcript does not yet; None: it has it."""
        if self.call is None or main.call_count > self._calls:
            return None
        last = main.current_call if main.cycle == cycle else None
        known = last is not None and last.usage.sent == self.call.usage.sent
        return None if known else self.call


def _is_older(heard: Observation, known: float) -> bool:
    """Whether another told later; a clock that was set back does not make it so."""
    return heard.at < known and (heard.late or known - heard.at < OVERTAKEN)
