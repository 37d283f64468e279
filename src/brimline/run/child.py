"""A child process: its standard output comes to us, everything else of it is ours too."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Collection, Mapping, Sequence

from brimline.errors import CommandFailed

CHUNK = 1 << 16
DIED_OF = 128
"""A shell adds this to the number of the signal that a command died of."""

_RESTORED = [signal.SIGPIPE, signal.SIGXFSZ]
"""What Python ignores, and no other program expects to be ignored."""


class Child:
    """A process that was started; `code` is its exit code once it has ended."""

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
        """Send it a signal, if we may and it has not ended: its number may be another's by then."""
        with self._lock, contextlib.suppress(PermissionError):
            if self.code is None:
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code, if it has ended: its own, or 128 and the signal that it died of."""
        with self._lock:
            if self.code is None:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended:
                    code = os.waitstatus_to_exitcode(status)
                    self.code = code if code >= 0 else DIED_OF - code
            return self.code

    def close(self) -> None:
        """Read no more of it: what it still writes is a broken pipe to it."""
        os.close(self.out)


def spawn(
    command: Sequence[str],
    env: Mapping[str, str],
    mask: Collection[int],
    files: Sequence[tuple[int, int, int]],
) -> int:
    """Start a command and give its process id; CommandFailed says why it could not be started."""
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            dict(env),
            file_actions=list(files),
            setsigmask=list(mask),
            setsigdef=_RESTORED,
        )
    except (OSError, ValueError) as error:
        raise CommandFailed(command[0], *_why(error)) from error


def _why(error: Exception) -> tuple[str, str | None]:
    if not isinstance(error, OSError):
        return str(error), None
    if error.errno == errno.ENOENT:
        return "there is no such command", "Is it installed, and in PATH?"
    if error.errno == errno.ENOEXEC:
        return "it is no program", "A script needs a first line such as #!/bin/sh."
    return error.strerror or str(error), None
