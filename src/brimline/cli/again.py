"""The same report once more: where nothing that it was made from has changed, its text as it was.

Only the interpreter's own modules are imported here; starting Python is then most of the time. What
is kept may be deleted at any moment, and counts for nothing when any file or folder that it was
made from has another id, size, time or end, or when the command, the settings' files, the
environment or the version of Brimline is another.
"""

import os
import sys
import zlib
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from brimline._version import __version__
from brimline.agents import SIGNS
from brimline.regular_file import open_regular_file, read_regular_file

Read: TypeAlias = tuple[str, int, float, bytes | None]
"""A file as it was read: its path, size and time, and its last bytes where they are known."""

NAME = "again"
TAIL = 64
"""How many of a file's last bytes are compared."""

_KIND, _REGULAR = 0o170000, 0o100000
MAX_KEPT_BYTES = 256 << 20
MOST = 50_000
"""A report on more files than this is not kept."""

_PREFIXES = ("BRIMLINE_", "XDG_", "LC_")
_NAMES = {"HOME", "TZ", "LANG", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"}
_NAMES.update(name for variables, _ in SIGNS.values() for name in variables)


def recall(arguments: Sequence[str]) -> bytes | None:
    """The output of this command, if it would be the same again."""
    try:
        kept = read_regular_file(_place(), MAX_KEPT_BYTES)
    except OSError:
        return None
    sum_, _, rest = kept.partition(b"\n")
    if sum_ != _sum(rest):
        return None
    key, _, rest = rest.partition(b"\n")
    if key != _key(arguments):
        return None
    witnesses, _, output = rest.partition(b"\n\n")
    return output if all(map(_stands, witnesses.decode().split("\n"))) else None


def keep(
    arguments: Sequence[str], output: bytes, files: Iterable[Read], folders: Iterable[str]
) -> None:
    """Keep an output and what it was made from; `folders` are witnesses from before that.

    Nothing is kept where a file is not any more as it was read.
    """
    # Not at the top: `recall` is fast because it imports nothing that Python did not.
    from pathlib import Path

    from brimline.private_folder import create_private_folder

    try:
        seen = [_unchanged(file) for file in files]
        witnesses = "\n".join([*folders, *filter(None, seen)])
        if None in seen or witnesses.count("\n") > MOST or "\n\n" in witnesses:
            return
        rest = b"\n".join([_key(arguments), witnesses.encode(), b"", output])
        place = _place()
        create_private_folder(Path(place).parent)
        _write(place, _sum(rest) + b"\n" + rest)
    except (OSError, UnicodeEncodeError):
        return


def _write(place: str, data: bytes) -> None:
    """Put a file in place whole; where that fails, leave nothing behind."""
    draft = f"{place}.{os.getpid()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        os.replace(draft, place)  # noqa: PTH105
    except OSError:
        if os.path.exists(draft):
            os.remove(draft)  # noqa: PTH107
        raise


def folders_below(folder: str) -> list[str]:
    """Witnesses of a folder and every folder below it: whatever is added there changes one."""
    found = [witness(folder)]
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return found
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            found += folders_below(entry.path)
        elif entry.is_symlink():
            found.append(witness(entry.path))
    return found


def witness(path: str) -> str:
    """What a file or folder looks like now, in a line."""
    return f"{path}\t{_look(path)}"


def _unchanged(file: Read) -> str | None:
    """The witness of a file that is as it was read; None of another, or of what is no file."""
    path, size, modified, end = file
    status = os.stat(path)
    if (status.st_size, status.st_mtime) != (size, modified):
        return None
    return f"{path}\t{_told(status, _end(path, size) if end is None else end)}"


def _stands(line: str) -> bool:
    path, _, look = line.rpartition("\t")
    return _look(path) == look


def _look(path: str) -> str:
    """Id, size, time, and of a file its last bytes; `-` where there is nothing."""
    try:
        status = os.stat(path)
        if (status.st_mode & _KIND) != _REGULAR:
            return f"{status.st_dev} {status.st_ino} {status.st_mtime_ns}"
        return _told(status, _end(path, status.st_size))
    except OSError:
        return "-"


def _told(status: os.stat_result, end: bytes) -> str:
    size, time = status.st_size, status.st_mtime_ns
    return f"{status.st_dev} {status.st_ino} {size} {time} {zlib.crc32(end)}"


def _end(path: str, size: int) -> bytes:
    file = open_regular_file(path)
    try:
        return os.pread(file, TAIL, max(0, size - TAIL))
    finally:
        os.close(file)


def _key(arguments: Sequence[str]) -> bytes:
    env = {
        name: value
        for name, value in os.environ.items()
        if name in _NAMES or name.startswith(_PREFIXES)
    }
    terminal = (sys.stdout.isatty(), os.get_terminal_size() if sys.stdout.isatty() else None)
    whole = (__version__, sys.version, list(arguments), os.getcwd(), terminal, sorted(env.items()))  # noqa: PTH109
    return _sum(repr(whole).encode("utf-8", "surrogateescape"))


def _sum(data: bytes) -> bytes:
    return b"%08x %d" % (zlib.crc32(data), len(data))


def _place() -> str:
    home = os.environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    folder = os.environ.get("BRIMLINE_CACHE_DIR") or os.path.join(cache, "brimline")
    return os.path.join(folder, NAME)
