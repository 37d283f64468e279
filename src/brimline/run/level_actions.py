"""What happens when a level is reached: run a command, stop the child."""

import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from brimline.context.policy.levels import highest_reached
from brimline.context.tracker import Reading
from brimline.run.child import ChildProcess, spawn

SHELL = "/bin/sh"
COMMAND_WAIT_S = 10.0  # how long we wait at the end for commands started at a level


class SignalStep(msgspec.Struct, frozen=True):
    """A signal, and the delay after the first one."""

    after_s: float
    signal: int


STOP_SIGNALS = (
    SignalStep(0.0, signal.SIGINT),
    SignalStep(10.0, signal.SIGTERM),
    SignalStep(15.0, signal.SIGKILL),
)


class LevelAlarm:
    """Fires each level once in a run; if two are passed at once, only the higher."""

    def __init__(self, levels: Sequence[float], stop_at: float | None) -> None:
        self._levels = levels
        self._stop_at = stop_at
        self._fired: set[float] = set()

    @property
    def is_off(self) -> bool:
        return not self._levels and self._stop_at is None

    def fire_level(self, reading: Reading | None) -> float | None:
        """Return the level that is newly reached, and mark it fired."""
        level = highest_reached(self._levels, reading.percent_raw if reading else None, self._fired)
        if level is not None:
            self._fired.add(level)
        return level

    def should_stop(self, reading: Reading | None) -> bool:
        if self._stop_at is None or reading is None or reading.percent_raw is None:
            return False
        return reading.percent_raw >= self._stop_at


class Terminator:
    """Stops a child by a sequence of signals."""

    def __init__(self, child: ChildProcess, steps: Sequence[SignalStep] = STOP_SIGNALS) -> None:
        self._child = child
        self._left = list(steps)
        self._started = time.monotonic()

    def step(self) -> None:
        while self._left and time.monotonic() - self._started >= self._left[0].after_s:
            self._child.send(self._left.pop(0).signal)


class LevelCommands:
    """Runs a shell command at each level; its output goes to our stderr."""

    def __init__(self, text: str | None, mask: Collection[int] = ()) -> None:
        self._text = text
        self._mask = mask
        self._running: list[int] = []

    def start(self, env: Mapping[str, str]) -> None:
        """Start the command with this environment, without waiting for it."""
        if self._text is not None:
            files = [(os.POSIX_SPAWN_DUP2, 2, 1)]
            self._running.append(spawn([SHELL, "-c", self._text], env, self._mask, files))

    def finish(self) -> None:
        """Wait up to COMMAND_WAIT_S for commands that still run."""
        end = time.monotonic() + COMMAND_WAIT_S
        while self._still_running() and time.monotonic() < end:
            time.sleep(0.02)

    def _still_running(self) -> bool:
        self._running = [pid for pid in self._running if not os.waitpid(pid, os.WNOHANG)[0]]
        return bool(self._running)


def level_env(level: float, reading: Reading) -> dict[str, str]:
    """Environment variables for a command at a level; unknown figures are left out."""
    values = {
        "LEVEL": f"{level:g}",
        "PERCENT": reading.percent_raw,
        "SENT": reading.sent,
        "HELD": reading.held,
        "WINDOW": reading.window.tokens if reading.window else None,
        "LIMIT": reading.limit.tokens if reading.limit else None,
    }
    return {f"BRIMLINE_{name}": str(value) for name, value in values.items() if value is not None}
