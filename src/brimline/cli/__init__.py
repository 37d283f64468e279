"""The command line. A command imports only what it needs."""

import errno
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from brimline._version import __version__

# Why standard output refuses a write; errors of our own files have a file name.
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 (failed), 2 (wrong usage), 130 (Ctrl-C)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.stdout = sys.stdout or _closed_output()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in OUTPUT_ERRORS:
            raise
        _discard_output()
        print(f"brimline: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _discard_output() -> None:
    """Point standard output at /dev/null, so that Python's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _closed_output() -> TextIOWrapper:
    """Return an output that refuses every write, for a standard output that was closed."""
    return open(os.open(os.devnull, os.O_RDONLY), "w")


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        print(f"brimline {__version__}")
        return 0
    from brimline.cli.commands import run

    return run(arguments)
