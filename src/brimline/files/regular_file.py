"""Regular files, opened so that nothing in their place can block or flood the reader.

Opening a FIFO waits for a writer, and a device such as /dev/zero never ends. So the type of a file
is checked before and after it is opened, the open itself does not block, and a limit bounds what is
read.
"""

import errno
import os
import stat
from typing import TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"

# The limit for a file that people write by hand: settings of a project, a client or Brimline.
MAX_SETTINGS_BYTES = 1 << 20

CHUNK_BYTES = 64 << 10

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular_file(path: StrPath, *, follow_links: bool = True) -> int:
    """Open a regular file for reading and return its descriptor; OSError for anything else."""
    try:
        # Before the open, because opening some devices has an effect (a tape, a watchdog).
        _check_type(os.stat(path, follow_symlinks=follow_links), path)
        descriptor = os.open(path, _FLAGS if follow_links else _FLAGS | os.O_NOFOLLOW)
    except ValueError as error:  # a NUL in the path
        raise OSError(errno.EINVAL, "not a path", path) from error
    try:
        # After the open, because the path may lead to another file by now.
        _check_type(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular_file(
    path: StrPath, max_bytes: int = MAX_SETTINGS_BYTES, *, follow_links: bool = True
) -> bytes:
    """Read a regular file of at most `max_bytes`; OSError for a larger one or anything else."""
    descriptor = open_regular_file(path, follow_links=follow_links)
    data = bytearray()
    try:
        too_large = os.fstat(descriptor).st_size > max_bytes
        while not too_large and (chunk := os.read(descriptor, CHUNK_BYTES)):
            data += chunk
            too_large = len(data) > max_bytes  # it may grow while it is read
    finally:
        os.close(descriptor)
    if too_large:
        raise OSError(errno.EFBIG, f"larger than {max_bytes:,} bytes", path)
    return bytes(data)


def _check_type(status: os.stat_result, path: StrPath) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
