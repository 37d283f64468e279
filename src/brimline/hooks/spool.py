"""The daemon's side of the spool: events of clients that got no answer.

    while batch := take(folder):
        for request in batch:
            ...  # by its id: it may have come over the socket too
        batch.finish()

Clients append to `spool` (client/offline.py). It is renamed to `spool.taking` first, so that they
start a new one. A batch that was not finished, because the daemon died, is taken again. The body of
an event has only SPOOLED_FIELDS.
"""

import errno
import logging
import mmap
import os
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from brimline.agents.hook_adapter import HookRequest
from brimline.file_lock import lock_file
from brimline.hooks.client.exchange import MAX_LINE_BYTES, PREFIX
from brimline.hooks.client.payload import FIELDS as SPOOLED_FIELDS
from brimline.hooks.protocol import InvalidFrame, parse_line, parse_request
from brimline.regular_file import open_regular_file

__all__ = ["SPOOLED_FIELDS", "Batch", "take", "take_dropped"]

NAME = "spool"
LOCK_WAIT_S = 0.2  # a client that was stopped (SIGSTOP) would hold the lock for ever

log = logging.getLogger("brimline.hooks")


class Batch:
    """The events of one spool, in the order in which they were appended.

    `skipped` counts the places that held no event, as far as was read: garbage, or one that was
    torn by a crash. The rest is read all the same.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.skipped = 0

    def __iter__(self) -> Iterator[HookRequest]:
        self.skipped = 0
        with os.fdopen(open_regular_file(self._path, follow_links=False), "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from self._requests(data)

    def finish(self) -> None:
        """All of it was taken in: forget it."""
        self._path.unlink(missing_ok=True)

    def _requests(self, data: mmap.mmap) -> Iterator[HookRequest]:
        at = 0
        while at < len(data):
            found = _record(data, at)
            if found is not None and not _torn(data, at, found[1]):
                yield found[0]
                at = found[1]
                continue
            self.skipped += 1
            at = _next(data, at + 1)


def take(folder: Path) -> Batch | None:
    """What is to be taken in now; None where there is nothing, or a client holds the lock.

    What is no file of its own is moved aside; a folder or file that may not be used stays.
    """
    taking = folder / f"{NAME}.taking"
    try:
        if _is_file(taking) or _renamed(folder / NAME, taking):
            return _usable(taking)
    except OSError as error:
        _complain(str(folder), error.strerror)
    return None


def take_dropped(folder: Path) -> int:
    """How many events clients could not keep since this was asked last; the log keeps it."""
    path = folder / f"{NAME}.dropped"
    try:
        lost = _counted(path) if _is_file(path) else 0
    except OSError as error:
        _complain(str(path), error.strerror)
        return 0
    if lost:
        log.warning("%d hook events were lost: the spool was full or not writable", lost)
    return lost


def _counted(path: Path) -> int:
    counted = path.with_name(f"{path.name}.{os.getpid()}")
    path.replace(counted)
    size = counted.stat().st_size
    counted.unlink()
    return size


def _is_file(path: Path) -> bool:
    """Whether there is a file; a link, a folder or anything else is moved out of the way."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISREG(mode):
        return True
    aside = path.rename(path.with_name(f"{path.name}.aside-{time.time_ns()}"))
    log.warning("%s is not a file, moved aside to %s", path, aside)
    return False


def _usable(taking: Path) -> Batch:
    """The events of a file that can be read, and taken away afterwards."""
    os.close(open_regular_file(taking, follow_links=False))
    effective = os.access in os.supports_effective_ids
    if not os.access(taking.parent, os.W_OK | os.X_OK, effective_ids=effective):
        raise PermissionError(errno.EACCES, "its folder is not writable")
    return Batch(taking)


@cache
def _complain(place: str, reason: str | None) -> None:
    """Once for each: it is looked for every second."""
    log.warning("cannot read the spool %s: %s", place, reason)


def _renamed(spool: Path, taking: Path) -> bool:
    """Whether there was one to be renamed; nobody is writing to it then."""
    if not _is_file(spool):
        return False
    file = open_regular_file(spool, follow_links=False)
    try:
        if not lock_file(file, LOCK_WAIT_S):
            return False
        spool.replace(taking)
        return True
    finally:
        os.close(file)


def _record(data: mmap.mmap, at: int) -> tuple[HookRequest, int] | None:
    """The request that begins at a place, and where it ends; None where none does."""
    line_end = data.find(b"\n", at, at + MAX_LINE_BYTES) + 1
    try:
        sizes = parse_line(data[at:line_end])
        body_at = line_end + sizes.header
        end = body_at + sizes.body
        if end > len(data):
            return None
        return parse_request(data[line_end:body_at], data[body_at:end]), end
    except InvalidFrame:
        return None


def _torn(data: mmap.mmap, at: int, end: int) -> bool:
    """Whether a record took in the beginning of later ones, since its own rest was never written.

    A body may hold anything, also what looks like a record; but then another follows at its end.
    """
    if _follows(data, end):
        return False
    inner = _next(data, at + 1)
    while inner < end:
        found = _record(data, inner)
        if found is not None and _follows(data, found[1]):
            return True
        inner = _next(data, inner + 1)
    return False


def _follows(data: mmap.mmap, end: int) -> bool:
    return end == len(data) or data[end : end + len(PREFIX)] == PREFIX


def _next(data: mmap.mmap, at: int) -> int:
    """Where the next record may begin; the end where none does."""
    found = data.find(PREFIX, at)
    return len(data) if found < 0 else found
