"""The signals that come to us, and who has them already."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from brimline.run.child import Child

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""After one of these no further child is started."""

TAKEN = ENDING | {
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGWINCH,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
}

WAKER = signal.SIGUSR1
"""What ends our own thread."""

_KEYS = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH, signal.SIGHUP})


class Signals:
    """Takes our signals and passes them on to the child, while it is entered.

    What the terminal sends goes to all of its foreground group, and so to the child by itself:
    only what somebody sent to us alone is passed on. It is done in a thread of its own, so that it
    also happens while a write to a slow reader blocks. `wake` can be read when something came.
    """

    def __init__(self, before_stop: Callable[[], None]) -> None:
        self._before_stop = before_stop
        heeded = {one for one in TAKEN if signal.getsignal(one) != signal.SIG_IGN}
        self._taken = heeded | {WAKER}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._over = False
        self.child: Child | None = None
        self.ending: int | None = None
        """The first signal that asked for the end."""
        self.mask: set[int] = set()
        """The signals that were blocked before us: a child is to have no others blocked."""

    def __enter__(self) -> "Signals":
        self.wake, self._waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._waker, False)
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else no exit code is kept for us
        self.mask = {int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)}
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over = True
        if self._thread.ident is not None:
            signal.pthread_kill(self._thread.ident, WAKER)
        self._thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        os.close(self.wake)
        os.close(self._waker)

    def adopt(self, child: Child | None) -> None:
        """From now on this child is the one; it is also sent what came while there was none."""
        self.child = child
        if child is not None and self.ending is not None:
            child.send(self.ending)

    def clear(self) -> None:
        """Empty what `wake` gives, once it was looked at."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake, 512):
                pass

    def _listen(self) -> None:
        while True:
            number, by_terminal = _next(self._taken)
            if self._over:
                return
            self._take(number, by_terminal)
            with contextlib.suppress(BlockingIOError):
                os.write(self._waker, b"\0")

    def _take(self, number: int, by_terminal: bool) -> None:
        if number == signal.SIGCHLD:
            return
        if number in ENDING and self.ending is None:
            self.ending = number
        if self.child is not None and not by_terminal:
            self.child.send(number)
        if number == signal.SIGTSTP:
            self._before_stop()
            os.kill(os.getpid(), signal.SIGSTOP)


if sys.platform == "linux":

    def _next(taken: set[signal.Signals]) -> tuple[int, bool]:
        """The next signal, and whether it is the terminal's: the kernel sends that itself."""
        came = signal.sigwaitinfo(taken)
        return came.si_signo, came.si_code > 0

else:

    def _next(taken: set[signal.Signals]) -> tuple[int, bool]:
        """The next signal; who sent it is not told here, so it is the terminal's if it can be."""
        number = signal.sigwait(taken)
        return number, number in _KEYS and _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
