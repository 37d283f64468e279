"""The command line. Nothing is imported that the command at hand does not need."""

import errno
import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from brimline._version import __version__

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Why output is not taken; what Brimline writes to files of its own is seen to elsewhere."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 1 (it failed) or 2 (it was asked for wrongly)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.stdout = sys.stdout or _closed()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in FULL:
            raise
        _drop_output()
        print(f"brimline: could not write the output: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if argv is None and arguments[:1] == ["report"]:
        os._exit(code)  # all is written, and the system frees what Python would take apart first
    return code


def _drop_output() -> None:
    """Nobody takes our output any more; Python's own last flush must not say so again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _closed() -> TextIOWrapper:
    """An output that was closed before we began: there is one, and it takes nothing."""
    return open(os.open(os.devnull, os.O_RDONLY), "w")


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        print(f"brimline {__version__}")
        return 0
    if arguments[:1] == ["report"]:
        from brimline.cli import again

        if (output := again.recall(arguments)) is not None:
            sys.stdout.buffer.write(output)
            return 0
    with uncollected():
        _lighten()
        from brimline.cli.arguments import run
    return run(arguments)


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """No search for garbage, nor later in what is made here: it goes in no circles, and stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _lighten() -> None:
    """Spare a quarter of msgspec's import: typing_extensions, which it can do without."""
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        try:
            import msgspec  # noqa: F401  # pyright: ignore[reportUnusedImport]
        finally:
            del sys.modules["typing_extensions"]
