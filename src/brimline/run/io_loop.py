"""Passes on what a child prints, and watches over it, until it has ended."""

import os
import select
import time
from typing import Protocol

from brimline.run.child import CHUNK, Child
from brimline.run.signals import Signals

LINGER = 1.0
"""How long a pipe that the child's own children hold open is read after the child has ended."""

LEFT = 1 << 20
"""The most that a pipe can hold: what comes later is not the child's."""

TOGETHER = 0.01
"""What a child prints within so many seconds after something was passed on goes on together.

What comes after a pause is passed on at once. Each wake-up costs more than what it passes on:
without this a client that prints line by line would cost several times as much.
"""


class Watch(Protocol):
    """What watches over a child."""

    @property
    def pause(self) -> float:
        """After so many seconds at the latest it is to be called again."""
        ...

    def output(self, chunk: bytes) -> None:
        """The child printed something; BrokenPipeError where nobody reads it any more."""
        ...

    def step(self) -> None:
        """Something happened, or time has passed."""
        ...


class Pump:
    """One child from its start to its end."""

    def __init__(self, child: Child, signals: Signals, watch: Watch) -> None:
        self._child, self._signals, self._watch = child, signals, watch
        self._open = True
        self._read = 0
        self._poll = select.poll()
        self._poll.register(child.out, select.POLLIN)
        self._poll.register(signals.wake, select.POLLIN)
        self.ended: float | None = None
        """When the child had ended, by the monotonic clock."""

    def run(self) -> int:
        """Pass everything on; the child's exit code."""
        while True:
            ready = {file for file, _ in self._poll.poll(self._watch.pause * 1_000)}
            woken = self._signals.wake in ready
            if woken:
                self._signals.clear()
            quiet = not (self._open and self._child.out in ready and self._pass_on())
            self._watch.step()
            code = self._child.poll() if quiet or woken or self.ended else None
            if code is not None and self._over(quiet):
                self._close()
                return code

    def _pass_on(self) -> bool:
        """Pass on what the child printed; whether there was anything."""
        chunk = os.read(self._child.out, CHUNK)
        self._read += len(chunk)
        try:
            if chunk:
                self._watch.output(chunk)
                if len(chunk) < CHUNK:
                    time.sleep(TOGETHER)
                return True
        except BrokenPipeError:
            pass
        self._close()
        return False

    def _over(self, quiet: bool) -> bool:
        """Whether the ended child's output is all here: at its end, or after a while.

        What the child itself wrote stands before all else, and is no more than a pipe holds.
        """
        now = time.monotonic()
        if self.ended is None:
            self.ended, self._read = now, 0
        return not self._open or (now >= self.ended + LINGER and (quiet or self._read > LEFT))

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._poll.unregister(self._child.out)
            self._child.close()
