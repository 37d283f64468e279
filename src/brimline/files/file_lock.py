"""Advisory locks (flock) among processes; a lock ends when its file is closed, also by a crash.

The hook client has a lock of its own, because it imports nothing of ours: hooks/client.
"""

import fcntl
import math
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_POLL_S = 0.01


def lock_file(descriptor: int, wait_s: float = math.inf) -> bool:
    """Lock an open file exclusively; False if another process still holds it after `wait_s`."""
    if wait_s == math.inf:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
        time.sleep(_POLL_S)


@contextmanager
def locked_file(path: Path, wait_s: float = math.inf) -> Generator[int]:
    """Hold the lock of a file, which is created with mode 0600, and yield its descriptor.

    Raises TimeoutError if another process still holds it after `wait_s`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock_file(descriptor, wait_s):
            raise TimeoutError(f"another process holds the lock {path}")
        yield descriptor
    finally:
        os.close(descriptor)
