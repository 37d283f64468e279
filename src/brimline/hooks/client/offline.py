"""Spooling of events that the daemon did not answer: a part of client.py.

The daemon reads the spool when it is back (../spool.py). An event has only the fields that the
daemon reads (payload.py). spool.c does the same in C.
"""

import fcntl
import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from brimline.hooks.client.exchange import HookEvent

LOCK_WAIT_S, POLL_S = 0.050, 0.001
# A spool that is larger, or whose first event is older, accepts no more events.
MAX_SPOOL_BYTES, MAX_SPOOL_AGE_NS = 50 << 20, 7 * 24 * 3600 * 10**9
FIRST_ID_BYTES = 128  # they contain the id of the first event

FLAGS = posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW


def save(event: "HookEvent", kind: str, body: bytes) -> None:
    """Append a record about an event to the spool, or count it as dropped."""
    try:
        is_saved = append_to_spool(event.spool, event.record(kind, body), event.spool_wait_s)
    except OSError:
        is_saved = False
    if not is_saved:
        count_event(f"{event.spool}.dropped")


def append_to_spool(path: str, request: bytes, wait_s: float = LOCK_WAIT_S) -> bool:
    """Return whether the spool accepted a request; a partial write is undone."""
    file = open_locked(path, wait_s)
    try:
        size = posix.fstat(file).st_size
        if size > MAX_SPOOL_BYTES or is_old(file):
            return False
        if posix.write(file, request) == len(request):
            return True
        posix.ftruncate(file, size)
        return False
    finally:
        posix.close(file)


def open_locked(path: str, wait_s: float = LOCK_WAIT_S) -> int:
    """Open and lock the spool; a new one if the daemon renamed it meanwhile."""
    until = time.monotonic() + wait_s
    file = open_spool(path)
    while not (try_lock(file) and is_at(file, path)):
        posix.close(file)
        if time.monotonic() >= until:
            raise TimeoutError
        time.sleep(POLL_S)
        file = open_spool(path)
    return file


def open_spool(path: str) -> int:
    """Open or create the spool and its folder."""
    try:
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)
    except FileNotFoundError:
        make_folder(path.rpartition("/")[0])
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)


def make_folder(folder: str) -> None:
    """Create a private folder and its parents; another process may do the same."""
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        above = folder.rpartition("/")[0]
        if not above:
            raise
        make_folder(above)
        make_folder(folder)


def try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(file: int, path: str) -> bool:
    """Return whether a path still leads to an open file."""
    try:
        return posix.fstat(file).st_ino == posix.stat(path).st_ino
    except FileNotFoundError:
        return False


def is_old(file: int) -> bool:
    """Return whether the first event is too old, by the time in its id; garbage has no age."""
    since = posix.pread(file, FIRST_ID_BYTES, 0).partition(b"\0id=")[2].partition(b"-")[0]
    return since.isdigit() and time.time_ns() - int(since) > MAX_SPOOL_AGE_NS


def count_event(path: str) -> bool:
    """Add a byte to a file whose size is the number of dropped or late events."""
    try:
        return posix.write(open_spool(path), b".") > 0
    except OSError:
        return False
