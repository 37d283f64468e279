"""A child process whose standard output we read; it shares stdin and stderr with us."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Collection, Mapping, Sequence

from brimline.errors import CommandFailed

CHUNK_BYTES = 1 << 16
SIGNAL_EXIT_BASE = 128  # a shell reports death by signal N as exit code 128 + N

# Python ignores these; other programs do not expect that.
_DEFAULT_SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ]


class Child:
    """A running process; `code` is its exit code once it has ended."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], mask: Collection[int] = ()
    ) -> None:
        self.out, theirs = os.pipe()
        try:
            self.pid = spawn(command, env, mask, [(os.POSIX_SPAWN_DUP2, theirs, 1)])
        except CommandFailed:
            os.close(self.out)
            raise
        finally:
            os.close(theirs)
        self.code: int | None = None
        self._lock = threading.Lock()

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended: its pid may then be another process's."""
        with self._lock, contextlib.suppress(PermissionError):
            if self.code is None:
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """The exit code as a shell reports it, or None while it runs."""
        with self._lock:
            if self.code is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended:
                    code = os.waitstatus_to_exitcode(status)
                    self.code = code if code >= 0 else SIGNAL_EXIT_BASE - code
            return self.code

    def close(self) -> None:
        """Stop reading: further writes of the child fail with a broken pipe."""
        os.close(self.out)


def spawn(
    command: Sequence[str],
    env: Mapping[str, str],
    mask: Collection[int],
    files: Sequence[tuple[int, int, int]],
) -> int:
    """Start a command and return its process id; raises CommandFailed."""
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            dict(env),
            file_actions=list(files),
            setsigmask=list(mask),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except (OSError, ValueError) as error:
        raise CommandFailed(command[0], *_explain(error)) from error


def _explain(error: Exception) -> tuple[str, str | None]:
    if not isinstance(error, OSError):
        return str(error), None
    if error.errno == errno.ENOENT:
        return "command not found", "Check that it is installed and in PATH."
    if error.errno == errno.ENOEXEC:
        return "not an executable format", "A script needs a first line such as #!/bin/sh."
    return error.strerror or str(error), None
