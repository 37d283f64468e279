"""Forward a child's output until it has ended."""

import os
import select
import time
from typing import Protocol

from brimline.run.child import CHUNK_BYTES, Child
from brimline.run.posix_signals import SignalForwarder

LINGER_S = 1.0  # the pipe is read on after the child's end: its own children may hold it open
MAX_PIPE_BYTES = 1 << 20  # the most that a pipe holds; what comes later is not the child's

# Output is forwarded at once, and what follows within this time together: a wake-up costs more
# than the forwarding, and a client that prints line by line would cost several times as much.
BATCH_S = 0.01


class ChildObserver(Protocol):
    """Is called while a child runs."""

    @property
    def seconds_until_step(self) -> float:
        """When `step` is to be called again at the latest."""
        ...

    def on_output(self, chunk: bytes) -> None:
        """The child printed something. Raises BrokenPipeError if the reader has gone."""
        ...

    def step(self) -> None:
        """Called after each event, and when `seconds_until_step` have passed."""
        ...


class IoLoop:
    """Reads from a child and from our signals; `ended_at` is by the monotonic clock."""

    def __init__(self, child: Child, signals: SignalForwarder, observer: ChildObserver) -> None:
        self._child, self._signals, self._observer = child, signals, observer
        self._is_open = True
        self._bytes_read = 0
        self._poll = select.poll()
        self._poll.register(child.out, select.POLLIN)
        self._poll.register(signals.wake, select.POLLIN)
        self.ended_at: float | None = None

    def run(self) -> int:
        """Forward all output, and return the child's exit code."""
        while True:
            timeout_ms = self._observer.seconds_until_step * 1_000
            ready = {file for file, _ in self._poll.poll(timeout_ms)}
            has_signal = self._signals.wake in ready
            if has_signal:
                self._signals.drain()
            is_quiet = not (self._is_open and self._child.out in ready and self._forward_output())
            self._observer.step()
            code = self._child.poll() if is_quiet or has_signal or self.ended_at else None
            if code is not None and self._is_finished(is_quiet):
                self._close()
                return code

    def _forward_output(self) -> bool:
        """Forward one chunk; False if there was none, or no reader for it."""
        chunk = os.read(self._child.out, CHUNK_BYTES)
        self._bytes_read += len(chunk)
        try:
            if chunk:
                self._observer.on_output(chunk)
                if len(chunk) < CHUNK_BYTES:
                    time.sleep(BATCH_S)
                return True
        except BrokenPipeError:
            pass
        self._close()
        return False

    def _is_finished(self, is_quiet: bool) -> bool:
        """Whether all output of the ended child was read.

        The child's own output comes first in the pipe, and is no more than a pipe holds.
        """
        now = time.monotonic()
        if self.ended_at is None:
            self.ended_at, self._bytes_read = now, 0
        if not self._is_open:
            return True
        return now >= self.ended_at + LINGER_S and (is_quiet or self._bytes_read > MAX_PIPE_BYTES)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._poll.unregister(self._child.out)
            self._child.close()
