"""What came into the threads of a session since their last calls, by the sizes in their hooks.

When the hook of a tool runs, the tool's result is mostly not in the transcript yet.
"""

from collections.abc import Mapping
from typing import NamedTuple

from brimline.context.events import MAIN, Call
from brimline.context.tracker import Thread
from brimline.files.bounded_dict import BoundedDict
from brimline.sessions.ledger.part_tokens import (
    MAX_TOKENS_PER_BYTE,
    MIN_LEARNED_BYTES,
    MIN_TOKENS_PER_BYTE,
    TOKENS_PER_BYTE,
)

MAX_THREADS = 100  # of a session whose inputs are remembered
MAX_INPUTS = 1_000  # of a thread whose calls cannot be read
ROUNDED_DIGITS = -3  # an estimate is in thousands of tokens: a smaller input causes no write


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
