"""The daemon's side of the spool: events of clients that got no answer.

    while batch := take(folder):
        for request in batch:
            ...  # by its id: it may have come over the socket too
        batch.finish()

Clients append to `spool` (client/offline.py). It is renamed to `spool.taking` first, so that they
start a new one. A batch that was not finished, because the daemon died, is taken again. The body of
an event has only the fields in client/payload.py.
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
from typing import NamedTuple

from brimline.agents.hook_adapter import HookRequest
from brimline.files.file_lock import lock_file
from brimline.files.regular_file import open_regular_file
from brimline.hooks.client.exchange import MAX_LINE_BYTES, PREFIX
from brimline.hooks.protocol import InvalidFrame, parse_line, parse_request

NAME = "spool"
LOCK_WAIT_S = 0.2  # a client that was stopped (SIGSTOP) would hold the lock for ever

log = logging.getLogger("brimline.hooks")


class Batch:
    """The events of one spool, in the order in which they were appended.

    `skipped` counts the places that held no event, as far as was read: garbage, or an event that
    was torn by a crash. What follows is read all the same.
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
        """Remove the batch: all of it was processed."""
        self._path.unlink(missing_ok=True)

    def _requests(self, data: mmap.mmap) -> Iterator[HookRequest]:
        at = 0
        while at < len(data):
            record = _parse_record(data, at)
            if record is not None and not _is_torn(data, at, record.end):
                yield record.request
                at = record.end
            else:
                self.skipped += 1
                at = _next_start(data, at + 1)


def take(folder: Path) -> Batch | None:
    """Return the events to process now; None if there are none, or if a client holds the lock.

    Anything but a regular file is moved aside; a folder or file without permission stays.
    """
    taking = folder / f"{NAME}.taking"
    try:
        if not _is_file(taking) and not _rename_spool(folder / NAME, taking):
            return None
        os.close(open_regular_file(taking, follow_links=False))
        effective = os.access in os.supports_effective_ids
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, "its folder is not writable")
    except OSError as error:
        _warn_once(str(folder), error.strerror)
        return None
    return Batch(taking)


def take_dropped(folder: Path) -> int:
    """Return and log how many events clients could not spool since the last call."""
    dropped = _take_count(folder / f"{NAME}.dropped")
    if dropped:
        log.warning("%d hook events were lost: the spool was full or not writable", dropped)
    return dropped


def take_late(folder: Path) -> int:
    """Return how often a client's input did not come in time since the last call."""
    return _take_count(folder / f"{NAME}.late")


def _take_count(path: Path) -> int:
    """Return the size of a file that clients append to, and remove it."""
    try:
        if not _is_file(path):
            return 0
        taken = path.replace(path.with_name(f"{path.name}.{os.getpid()}"))
        count = taken.stat().st_size
        taken.unlink()
    except OSError as error:
        _warn_once(str(path), error.strerror)
        return 0
    return count


def _is_file(path: Path) -> bool:
    """Return whether there is a file; a link, a folder or anything else is moved aside."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISREG(mode):
        return True
    aside = path.rename(path.with_name(f"{path.name}.aside-{time.time_ns()}"))
    log.warning("%s is not a file, moved aside to %s", path, aside)
    return False


@cache  # the daemon looks for the spool every second
def _warn_once(path: str, reason: str | None) -> None:
    log.warning("cannot read the spool %s: %s", path, reason)


def _rename_spool(spool: Path, taking: Path) -> bool:
    """Rename the spool while no client writes to it; returns whether that was possible."""
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


class _SpooledRequest(NamedTuple):
    request: HookRequest
    end: int


def _parse_record(data: mmap.mmap, at: int) -> _SpooledRequest | None:
    """Return the record at a position, None if it is invalid or incomplete."""
    line_end = data.find(b"\n", at, at + MAX_LINE_BYTES) + 1
    try:
        sizes = parse_line(data[at:line_end])
        body_at = line_end + sizes.header
        end = body_at + sizes.body
        if end > len(data):
            return None
        return _SpooledRequest(parse_request(data[line_end:body_at], data[body_at:end]), end)
    except InvalidFrame:
        return None


def _is_torn(data: mmap.mmap, at: int, end: int) -> bool:
    """Return whether a record contains the start of later ones: its own end was never written.

    A body may contain what looks like a record; but then another one follows at its end.
    """
    if _is_boundary(data, end):
        return False
    inner = _next_start(data, at + 1)
    while inner < end:
        record = _parse_record(data, inner)
        if record is not None and _is_boundary(data, record.end):
            return True
        inner = _next_start(data, inner + 1)
    return False


def _is_boundary(data: mmap.mmap, at: int) -> bool:
    return at == len(data) or data[at : at + len(PREFIX)] == PREFIX


def _next_start(data: mmap.mmap, at: int) -> int:
    """Return where the next record may begin, at the latest the end."""
    start = data.find(PREFIX, at)
    return len(data) if start < 0 else start
