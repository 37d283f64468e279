"""Run a command and measure it: wall time, and the peak memory of all its processes."""

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE = 0.01
_KIB_OF_RUSAGE = 1024 if sys.platform == "darwin" else 1


class Failed(Exception):
    """A command that was to be measured did not succeed."""

    def __init__(self, command: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"exit code {code}: {' '.join(command)}\n{output.strip()}")
        self.code = code


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float
    peak_mb: float
    output: bytes


@dataclass
class Case:
    """A command with the runs that were measured of it."""

    name: str
    command: Sequence[str]
    runs: list[Run] = field(default_factory=list[Run])

    @property
    def median(self) -> float:
        """The median time in seconds."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def best(self) -> float:
        """The shortest time in seconds."""
        return min(run.seconds for run in self.runs)

    @property
    def peak_mb(self) -> float:
        """The largest peak of all runs."""
        return max(run.peak_mb for run in self.runs)


def run(command: Sequence[str], env: Mapping[str, str]) -> Run:
    """Run a command to its end; raise Failed if it does not exit with 0."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        actions = [
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, err.fileno(), 2),
        ]
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], list(command), env, file_actions=actions)
        sampler = _Sampler(pid)
        sampler.start()
        _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - start
        sampler.stop()
        out.seek(0)
        err.seek(0)
        if code := os.waitstatus_to_exitcode(status):
            raise Failed(command, code, err.read().decode(errors="replace"))
        peak = sampler.peak_kib or usage.ru_maxrss / _KIB_OF_RUSAGE
        return Run(seconds, peak / 1024, out.read())


class _Sampler(threading.Thread):
    """Sums the peaks of a process and its children.

    The kernel's own figure for a finished process (ru_maxrss) is the largest of them, not the sum,
    and starts at the size of the process that spawned it; it is used if there is no /proc.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._peaks: dict[int, int] = {}
        self._done = threading.Event()

    @property
    def peak_kib(self) -> int:
        """The sum of the peaks seen; zero if the system does not report it."""
        return sum(self._peaks.values())

    def run(self) -> None:
        """Look again and again until stopped."""
        while not self._done.wait(_PAUSE):
            for pid in _family(self._pid):
                if peak := _peak_kib(pid):
                    self._peaks[pid] = peak

    def stop(self) -> None:
        """End the sampling."""
        self._done.set()
        self.join()


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(member for child in children for member in _family(int(child)))]


def _peak_kib(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    _, _, rest = status.partition("VmHWM:")
    return int(rest.split(maxsplit=1)[0]) if rest else 0
