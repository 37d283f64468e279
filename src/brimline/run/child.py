"""A child process that shares stdin and stderr with us: its output and our signals, forwarded."""

import contextlib
import errno
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Protocol

from brimline.errors import CommandFailed

CHUNK_BYTES = 1 << 16
SIGNAL_EXIT_BASE = 128  # a shell reports death by signal N as exit code 128 + N

# Python ignores these; other programs do not expect that.
_DEFAULT_SIGNALS = [signal.SIGPIPE, signal.SIGXFSZ]

# After one of these no further child is started
END_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})

HANDLED_SIGNALS = END_SIGNALS | {
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGWINCH,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
}

STOP_THREAD_SIGNAL = signal.SIGUSR1  # wakes our own thread at the end

_TERMINAL_SIGNALS = frozenset(
    {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH, signal.SIGHUP}
)

LINGER_S = 1.0  # the pipe is read on after the child's end: its own children may hold it open
MAX_PIPE_BYTES = 1 << 20  # the most that a pipe holds; what comes later is not the child's

# Output is forwarded at once, and what follows within this time together: a wake-up costs more
# than the forwarding, and a client that prints line by line would cost several times as much.
BATCH_S = 0.01


class ChildProcess:
    """A running process whose output we read; `code` is its exit code once it has ended."""

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


class SignalForwarder:
    """Context manager that forwards our signals to the child.

    The terminal sends its signals to the whole foreground group, so the child has them already:
    only signals sent to us alone are forwarded. A thread does it, so that it also works while a
    write to a slow reader blocks. `wake` is readable after each signal.

    `end_signal` is the first signal that asked us to end. `mask` is the signal mask from before:
    children are started with it.
    """

    def __init__(self, before_stop: Callable[[], None]) -> None:
        self._before_stop = before_stop
        not_ignored = {one for one in HANDLED_SIGNALS if signal.getsignal(one) != signal.SIG_IGN}
        self._handled = not_ignored | {STOP_THREAD_SIGNAL}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._is_over = False
        self.child: ChildProcess | None = None
        self.end_signal: int | None = None
        self.mask: set[int] = set()

    def __enter__(self) -> "SignalForwarder":
        self.wake, self._waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._waker, False)
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else no exit code is kept for us
        self.mask = {int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, self._handled)}
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._is_over = True
        if self._thread.ident is not None:
            signal.pthread_kill(self._thread.ident, STOP_THREAD_SIGNAL)
        self._thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        os.close(self.wake)
        os.close(self._waker)

    def set_child(self, child: ChildProcess | None) -> None:
        """Forward to this child from now on, first an end signal that came before."""
        self.child = child
        if child is not None and self.end_signal is not None:
            child.send(self.end_signal)

    def wait(self, seconds: float) -> None:
        """Wait for a signal, at most for some seconds."""
        if select.select([self.wake], [], [], seconds)[0]:
            self.drain()

    def drain(self) -> None:
        """Empty the pipe of `wake`."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake, 512):
                pass

    def _listen(self) -> None:
        while True:
            number, by_terminal = _wait_for_signal(self._handled)
            if self._is_over:
                return
            self._handle(number, by_terminal)
            with contextlib.suppress(BlockingIOError):
                os.write(self._waker, b"\0")

    def _handle(self, number: int, by_terminal: bool) -> None:
        if number == signal.SIGCHLD:
            return
        if number in END_SIGNALS and self.end_signal is None:
            self.end_signal = number
        if self.child is not None and not by_terminal:
            self.child.send(number)
        if number == signal.SIGTSTP:
            self._before_stop()
            os.kill(os.getpid(), signal.SIGSTOP)


if sys.platform == "linux":

    def _wait_for_signal(handled: set[signal.Signals]) -> tuple[int, bool]:
        """The next signal, and whether the terminal sent it (si_code: by the kernel)."""
        info = signal.sigwaitinfo(handled)
        return info.si_signo, info.si_code > 0

else:

    def _wait_for_signal(handled: set[signal.Signals]) -> tuple[int, bool]:
        """The next signal; without sigwaitinfo we assume the terminal sent it if it could have."""
        number = signal.sigwait(handled)
        return number, number in _TERMINAL_SIGNALS and _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


class ChildObserver(Protocol):
    """Is called while a child runs."""

    @property
    def seconds_until_step(self) -> float:
        """When `step` is to be called again at the latest."""
        ...

    def on_output(self, chunk: bytes) -> None:
        """The child printed something. Raises BrokenPipeError if the reader has gone."""
        ...

    def step(self) -> None:
        """Called after each event, and when `seconds_until_step` have passed."""
        ...


class IoLoop:
    """Forwards a child's output until it has ended; `ended_at` is by the monotonic clock."""

    def __init__(
        self, child: ChildProcess, signals: SignalForwarder, observer: ChildObserver
    ) -> None:
        self._child, self._signals, self._observer = child, signals, observer
        self._is_open = True
        self._bytes_read = 0
        self._poll = select.poll()
        self._poll.register(child.out, select.POLLIN)
        self._poll.register(signals.wake, select.POLLIN)
        self.ended_at: float | None = None

    def run(self) -> int:
        """Forward all output, and return the child's exit code."""
        while True:
            timeout_ms = self._observer.seconds_until_step * 1_000
            ready = {file for file, _ in self._poll.poll(timeout_ms)}
            has_signal = self._signals.wake in ready
            if has_signal:
                self._signals.drain()
            is_quiet = not (self._is_open and self._child.out in ready and self._forward_output())
            self._observer.step()
            code = self._child.poll() if is_quiet or has_signal or self.ended_at else None
            if code is not None and self._is_finished(is_quiet):
                self._close()
                return code

    def _forward_output(self) -> bool:
        """Forward one chunk; False if there was none, or no reader for it."""
        chunk = os.read(self._child.out, CHUNK_BYTES)
        self._bytes_read += len(chunk)
        try:
            if chunk:
                self._observer.on_output(chunk)
                if len(chunk) < CHUNK_BYTES:
                    time.sleep(BATCH_S)
                return True
        except BrokenPipeError:
            pass
        self._close()
        return False

    def _is_finished(self, is_quiet: bool) -> bool:
        """Whether all output of the ended child was read.

        The child's own output comes first in the pipe, and is no more than a pipe holds.
        """
        now = time.monotonic()
        if self.ended_at is None:
            self.ended_at, self._bytes_read = now, 0
        if not self._is_open:
            return True
        return now >= self.ended_at + LINGER_S and (is_quiet or self._bytes_read > MAX_PIPE_BYTES)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._poll.unregister(self._child.out)
            self._child.close()
