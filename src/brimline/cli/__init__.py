"""The command line: a module for each command, which imports only what it needs.

What a command computes belongs to the folder of its subject; here are its arguments and its output.
"""

import errno
import os
import sys
from io import TextIOWrapper
from types import FrameType

from brimline._version import __version__

# Why standard output refuses a write; errors of our own files have a file name.
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main(argv: list[str] | tuple[str, ...] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 (failed), 2 (wrong usage), 130 (Ctrl-C)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.stdout = sys.stdout or _closed_output()
    try:
        if argv is None:
            _handle_interrupts()
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


def _handle_interrupts() -> None:
    """Have Ctrl-C raise KeyboardInterrupt in `main` only, and otherwise end the process at once.

    It also ends an import: one that is interrupted may crash (msgspec 0.22), or print the exception
    and go on. After `main`, Python prints every exception.
    """
    import signal

    def handle(number: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
            if frame.f_code is main.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it may be ignored
        signal.signal(signal.SIGINT, handle)


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
