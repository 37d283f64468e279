"""The environments of a process and its ancestors, as they were when each started.

Commands import it, so it imports nothing that takes time.
"""

import os
from collections.abc import Collection, Iterator

MAX_ANCESTORS = 32


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
