"""What is done when a level is reached: it is said, a command is run, the child is ended gently."""

import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from brimline.policy import highest_reached
from brimline.run.child import Child, spawn
from brimline.tracker import Reading

SHELL = "/bin/sh"
PATIENCE = 10.0
"""How long we wait at the end for commands that we started at a level."""


class Grace(msgspec.Struct, frozen=True):
    """A signal, and how many seconds after the first one it is sent."""

    after: float
    signal: int


GRACES = (Grace(0.0, signal.SIGINT), Grace(10.0, signal.SIGTERM), Grace(15.0, signal.SIGKILL))


class Alarm:
    """Says which level a reading reaches, each once in a run; a jump over two is the higher."""

    def __init__(self, levels: Sequence[float], stop_at: float | None) -> None:
        self._levels = levels
        self._stop_at = stop_at
        self._fired: set[float] = set()

    @property
    def idle(self) -> bool:
        """Whether no level was asked for."""
        return not self._levels and self._stop_at is None

    def level(self, reading: Reading | None) -> float | None:
        """The level that is reached now."""
        level = highest_reached(self._levels, reading.percent_raw if reading else None, self._fired)
        if level is not None:
            self._fired.add(level)
        return level

    def stops(self, reading: Reading | None) -> bool:
        """Whether the child is to end."""
        if self._stop_at is None or reading is None or reading.percent_raw is None:
            return False
        return reading.percent_raw >= self._stop_at


class Ender:
    """Ends a child: asks first, insists later."""

    def __init__(self, child: Child, graces: Sequence[Grace] = GRACES) -> None:
        self._child = child
        self._left = list(graces)
        self._began = time.monotonic()

    def step(self) -> None:
        """Send what is due."""
        while self._left and time.monotonic() - self._began >= self._left[0].after:
            self._child.send(self._left.pop(0).signal)


class Commands:
    """The commands that were started at levels; their output goes to our standard error."""

    def __init__(self, text: str | None, mask: Collection[int] = ()) -> None:
        self._text = text
        self._mask = mask
        self._running: list[int] = []

    def start(self, env: Mapping[str, str]) -> None:
        """Run the command with figures in its environment; nothing waits for it."""
        if self._text is not None:
            files = [(os.POSIX_SPAWN_DUP2, 2, 1)]
            self._running.append(spawn([SHELL, "-c", self._text], env, self._mask, files))

    def finish(self) -> None:
        """Wait a while for those that still run; then they are on their own."""
        end = time.monotonic() + PATIENCE
        while self._still_running() and time.monotonic() < end:
            time.sleep(0.02)

    def _still_running(self) -> bool:
        self._running = [pid for pid in self._running if not os.waitpid(pid, os.WNOHANG)[0]]
        return bool(self._running)


def figures(level: float, reading: Reading) -> dict[str, str]:
    """What a command at a level finds in its environment; what is not known is not there."""
    told = {
        "LEVEL": f"{level:g}",
        "PERCENT": reading.percent_raw,
        "SENT": reading.sent,
        "HELD": reading.held,
        "WINDOW": reading.window.tokens if reading.window else None,
        "LIMIT": reading.limit.tokens if reading.limit else None,
    }
    return {f"BRIMLINE_{name}": str(value) for name, value in told.items() if value is not None}
