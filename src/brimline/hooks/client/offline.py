"""What becomes of an event that the daemon did not answer: a part of client.py.

It is appended to the spool, which the daemon takes in when it is back (spool.py), without the parts
that the daemon does not read (payload.py). spool.c does the same in C.
"""

import fcntl
import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from brimline.hooks.client.exchange import Event

PATIENCE, PAUSE = 0.050, 0.001
"""Seconds: so long the spool's lock is waited for, and so long between two attempts."""

SPOOL_BYTES, SPOOL_NS = 50 << 20, 7 * 24 * 3600 * 10**9
"""A spool that is larger, or begins longer ago, takes nothing in any more."""

START = 128
"""So many bytes have the id of a spool's first event among them."""

FLAGS = posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW


def save(event: "Event", kind: str, body: bytes) -> None:
    """Append a record about an event to the spool; one that is lost is counted, if possible."""
    try:
        kept = keep(event.spool, event.record(kind, body), event.spool_patience)
    except OSError:
        kept = False
    if not kept:
        count(f"{event.spool}.dropped")


def keep(path: str, request: bytes, patience: float = PATIENCE) -> bool:
    """Whether the spool took a request."""
    file = locked(path, patience)
    try:
        return is_open(file) and appended(file, request)
    finally:
        posix.close(file)


def locked(path: str, patience: float = PATIENCE) -> int:
    """The spool, for us alone; a new one where the daemon took it away while we waited."""
    until = time.monotonic() + patience
    file = opened(path)
    while not (is_alone(file) and is_at(file, path)):
        posix.close(file)
        if time.monotonic() >= until:
            raise TimeoutError
        time.sleep(PAUSE)
        file = opened(path)
    return file


def opened(path: str) -> int:
    """The spool, made where it is not there; so is its folder."""
    try:
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)
    except FileNotFoundError:
        make(path.rpartition("/")[0])
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)


def make(folder: str) -> None:
    """A folder for the user alone, and those above it; another may make them at the same time."""
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        above = folder.rpartition("/")[0]
        if not above:
            raise
        make(above)
        make(folder)


def is_alone(file: int) -> bool:
    """Whether nobody else has the lock: then we do."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(file: int, path: str) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return posix.fstat(file).st_ino == posix.stat(path).st_ino
    except FileNotFoundError:
        return False


def is_open(file: int) -> bool:
    """Whether a spool takes anything in: it is not too large, and does not begin too long ago."""
    since = posix.pread(file, START, 0).partition(b"\0id=")[2].partition(b"-")[0]
    is_old = since.isdigit() and time.time_ns() - int(since) > SPOOL_NS
    return not is_old and posix.fstat(file).st_size <= SPOOL_BYTES


def appended(file: int, request: bytes) -> bool:
    """Whether there was room; what was written in part is taken back."""
    size = posix.fstat(file).st_size
    if posix.write(file, request) == len(request):
        return True
    posix.ftruncate(file, size)
    return False


def count(path: str) -> bool:
    """Add one to the events that were lost."""
    try:
        return posix.write(posix.open(path, posix.O_WRONLY | FLAGS, 0o600), b".") > 0
    except OSError:
        return False
