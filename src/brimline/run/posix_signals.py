"""Forward our signals to the child, unless it gets them from the terminal itself."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from brimline.run.child import Child

# after one of these no further child is started
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
        self.child: Child | None = None
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

    def set_child(self, child: Child | None) -> None:
        """Forward to this child from now on, first an end signal that came before."""
        self.child = child
        if child is not None and self.end_signal is not None:
            child.send(self.end_signal)

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
