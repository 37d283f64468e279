"""A process and its ancestors, and their environments as they were when each started.

Commands import it, so it imports nothing that takes time.
"""

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

MAX_ANCESTORS = 32


class ProcessStart(NamedTuple):
    """A process, and when it was started: process ids are reused."""

    pid: int
    at: float


def find_ancestors(pid: int) -> list[ProcessStart]:
    """Return a process, its parent, and so on, up to a process of another user."""
    import psutil

    found: list[ProcessStart] = []
    while pid > 1 and len(found) < MAX_ANCESTORS:
        try:
            process = psutil.Process(pid)
            if process.uids().effective != os.getuid():
                break
            start, pid = ProcessStart(pid, process.create_time()), process.ppid()
        except (psutil.Error, OSError, ValueError, OverflowError):
            break
        found.append(start)
    return found


def has_run_since(pid: int, at: float) -> bool:
    """Return whether the process that had an id at a time still runs: process ids are reused."""
    import psutil

    try:
        return psutil.Process(pid).create_time() <= at
    except (psutil.Error, OSError, ValueError, OverflowError):
        return False


def find_folder(pid: int) -> str | None:
    """Return the working folder of a process; None if it cannot be read."""
    import psutil

    try:
        return psutil.Process(pid).cwd()
    except (psutil.Error, OSError, ValueError, OverflowError):
        return None


def iter_environments(pid: int, names: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield these variables of a process, then of its parent, and so on.

    Ends at a process of another user, or one that cannot be read.
    """
    import psutil  # slow to import, and few need it

    for _ in range(MAX_ANCESTORS):
        try:
            process = psutil.Process(pid) if pid > 1 else None
            if process is None or process.uids().effective != os.getuid():
                return
            environment, pid = process.environ(), process.ppid()
        except (psutil.Error, OSError, ValueError, OverflowError):
            return
        yield {name: environment[name] for name in names if name in environment}
