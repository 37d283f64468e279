"""What a client reports itself, by its status line or a hook, and the transcript does not have yet.

That is usage, quotas and the prompt cache, and the sizes of what came into threads since their last
calls: when the hook of a tool runs, the tool's result is mostly not in the transcript.
"""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from brimline.agents.observations import Observation, UsageSource
from brimline.context.client_report import NO_REPORT
from brimline.context.events import MAIN, Call
from brimline.context.policy.signals import AGREED, Comparison, compare
from brimline.context.tracker import Thread
from brimline.context.usage import Usage
from brimline.context.window import is_same_model
from brimline.files.bounded_dict import BoundedDict
from brimline.sessions.ledger.part_tokens import (
    MAX_TOKENS_PER_BYTE,
    MIN_LEARNED_BYTES,
    MIN_TOKENS_PER_BYTE,
    TOKENS_PER_BYTE,
)
from brimline.store.rows import ThreadRow

MAX_REORDER_S = 5.0  # a status line may overtake another by this much

CALL_ID = "reported by the client"

MAX_THREADS = 100  # of a session whose inputs are remembered
MAX_INPUTS = 1_000  # of a thread whose calls cannot be read
ROUNDED_DIGITS = -3  # an estimate is in thousands of tokens: a smaller input causes no write


class ClientReported:
    """The client's own figure, which may be ahead of the transcript or behind it.

    `call` is None if the client reports nothing held: before a call, and after a compaction, when
    it reports 0. `most_sent` is the most of a call of the present model: its window is no smaller.
    After a switch of the model the client reports the last call under the new one's id.
    """

    def __init__(self) -> None:
        self.call: Call | None = None
        self.source: UsageSource = "status line"
        self.window: int | None = None
        self.comparison: Comparison = AGREED
        self.most_sent = 0
        self.report = NO_REPORT
        self._model: str | None = None
        self._sent_before: int | None = None  # by the last call under another model
        self._calls = self._cycle = 0
        self._stored_window: tuple[int, str | None] | None = None  # with its model

    def restore(self, row: ThreadRow, model: str | None) -> None:
        """Restore from a stored row what no file contains."""
        if row.window is not None and row.window_origin == "reported":
            self._stored_window = row.window, row.model
        source = next((each for each in get_args(UsageSource) if each == row.source), None)
        if row.sent is None or source is None:
            return
        usage = Usage(row.sent, 0, 0, max(0, (row.held or 0) - row.sent))
        self.call = Call(at=row.at, id=CALL_ID, usage=usage, model=model)
        self.source, self.window, self._cycle = source, row.window, row.cycle
        self._calls = row.calls
        self._model = model
        if row.window is None or row.sent <= row.window:
            self.most_sent = row.sent

    def update(self, observation: Observation, model: str | None, main: Thread, cycle: int) -> None:
        """Apply a report of the client; one that is older than the last is ignored."""
        if self.call is not None and _is_older(observation, self.call.at or 0.0):
            return
        self.window = observation.window or self.window
        if observation.usage is None or not observation.usage.sent:
            self.call = None
            return
        before = self._model or (main.last.model if main.last else None)
        if not is_same_model(model, before):
            self._sent_before = self._last_sent(main)
            self.most_sent = 0
        self._model = model
        if observation.usage.sent != self._sent_before:
            self.most_sent, self._sent_before = max(self.most_sent, observation.usage.sent), None
        if not self._is_known(observation.usage, model, main, cycle):
            self.call = Call(at=observation.at, id=CALL_ID, usage=observation.usage, model=model)
            self.source, self._calls, self._cycle = observation.usage_source, main.call_count, cycle
        last = main.current_call if main.cycle == cycle else None
        seen = last.usage.sent if last else None
        self.comparison = compare(self.comparison, observation.usage.sent, seen, observation.at)

    def update_report(self, observation: Observation) -> None:
        """Apply what a status line reports of quotas and the cache, unless a later one is known."""
        quotas, cache = observation.quotas, observation.prompt_cache
        known = self.report.quotas or self.report.prompt_cache
        if known is None or not _is_older(observation, known.at):
            self.report = self.report.update(quotas, cache)

    def window_for(self, main: Thread) -> int | None:
        """Return the window that the client reported; None if the thread's files are to be used.

        What it reported before a restart holds for the same model, and if no file reports one.
        """
        if self.window is not None or self._stored_window is None or main.window is not None:
            return self.window
        window, model = self._stored_window
        return window if is_same_model(main.model, model) else None

    def _last_sent(self, main: Thread) -> int | None:
        """Return what the last call sent, as reported or as the transcript has it."""
        last = self.call or main.current_call
        return last.usage.sent if last else None

    def _is_known(self, usage: Usage, model: str | None, main: Thread, cycle: int) -> bool:
        """Return whether the client repeats its report, with no call since."""
        if self.call is None or self.call.usage != usage or self.call.model != model:
            return False
        return (self._calls, self._cycle) == (main.call_count, cycle)

    def has_decreased(self, observation: Observation) -> bool:
        """Return whether less is reported than before: a part of the context was removed."""
        if self.call is None or observation.usage is None or not observation.usage.sent:
            return False
        return observation.usage.sent < self.call.usage.sent

    def is_repeat(self, observation: Observation) -> bool:
        """Return whether the same prompt is reported again; its reply may have grown."""
        if self.call is None or observation.usage is None:
            return False
        return observation.usage.sent == self.call.usage.sent

    def start_cycle(self, observation: Observation, cycle: int) -> None:
        """Start a cycle: drop the call, unless the cycle's end is reported late and was earlier."""
        if observation.is_late and self.call is not None and (self.call.at or 0.0) > observation.at:
            self._cycle = cycle
        else:
            self.call = None

    def drop_older_cycles(self, cycle: int) -> None:
        if cycle > self._cycle:
            self.call = None

    def pending_call(self, main: Thread, cycle: int) -> Call | None:
        """Return the call that the transcript does not contain yet; None if it does."""
        if self.call is None or main.call_count > self._calls:
            return None
        last = main.current_call if main.cycle == cycle else None
        if last is None or last.usage.sent != self.call.usage.sent:
            return self.call
        return None if is_same_model(self.call.model, last.model) else self.call


def _is_older(observation: Observation, known: float) -> bool:
    """Return whether a later report is known; a clock that was set back does not count."""
    return observation.at < known and (
        observation.is_late or known - observation.at < MAX_REORDER_S
    )


class _Input(NamedTuple):
    at: float
    size: int


class _ThreadInputs:
    """The inputs of one thread since its last call, and the tokens that earlier ones took."""

    def __init__(self) -> None:
        self._inputs: list[_Input] = []
        self._call: Call | None = None
        self._call_count = 0
        self._learned_tokens = self._learned_bytes = 0

    def add(self, at: float, size: int) -> None:
        if self._inputs and self._inputs[-1].size == size:
            return  # a request that is sent again reports its results again
        self._inputs = [*self._inputs[1 - MAX_INPUTS :], _Input(at, size)]

    def update(self, thread: Thread) -> None:
        """Drop the inputs that the last call contains, and learn how many tokens they took."""
        before, call = self._call, thread.current_call
        if call is None or call.at is None:
            return
        if before is not None and (before.at or 0.0) > call.at:
            self._inputs = []  # rewound: of another branch; or the clock was set back
        is_next = thread.call_count == self._call_count + 1
        if before is not None and is_next:
            self._learn(call.usage.sent - before.usage.held, call.at)
        self._inputs = [each for each in self._inputs if each.at > call.at]
        self._call, self._call_count = call, thread.call_count

    def _learn(self, tokens: int, until: float) -> None:
        size = sum(each.size for each in self._inputs if each.at <= until)
        is_plausible = MIN_TOKENS_PER_BYTE * size < tokens < MAX_TOKENS_PER_BYTE * size
        if size >= MIN_LEARNED_BYTES and is_plausible:
            self._learned_tokens += tokens
            self._learned_bytes += size

    def estimate(self, since: float) -> int:
        size = sum(each.size for each in self._inputs if each.at > since)
        learned = self._learned_bytes
        rate = self._learned_tokens / learned if learned else TOKENS_PER_BYTE
        return int(round(rate * size, ROUNDED_DIGITS))


class PendingInputs:
    """The inputs of a session's threads that no call contains yet; a restart forgets them."""

    def __init__(self) -> None:
        self._threads = BoundedDict[str, _ThreadInputs](MAX_THREADS)

    def add(self, thread: str, at: float, size: int) -> None:
        inputs = self._threads.get(thread) or _ThreadInputs()
        inputs.add(at, size)
        self._threads[thread] = inputs

    def update(self, threads: Mapping[str, Thread]) -> None:
        """Drop the inputs that the last calls contain."""
        for name, inputs in self._threads.items():
            if name in threads:
                inputs.update(threads[name])

    def estimate(self, reported: Call | None) -> dict[str, int]:
        """Return the tokens that are pending in each thread whose inputs are known.

        `reported` is a call of the main thread that is in no transcript yet.
        """
        called_at = (reported.at if reported else None) or 0.0
        return {
            name: inputs.estimate(called_at if name == MAIN else 0.0)
            for name, inputs in self._threads.items()
        }
