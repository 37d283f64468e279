"""`brimline watch` ends by a signal, and with its terminal."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from cli.terminal import PATIENCE_S, User

APPLICATION_MODE, RESTORED = b"\x1b[?1049h", b"\x1b[?1049l"
WATCH = (sys.executable, "-m", "brimline", "watch", "--files")
EXIT_S = 30.0  # the limit of the command itself is 2 s; a busy machine is slow


class Terminal:
    """A pseudoterminal and the command on it."""

    def __init__(self, user: User, *command: str, controls: bool = True) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(100)
        self.modes = termios.tcgetattr(self.theirs)[:4]

        def take_terminal() -> None:
            if controls:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, cwd=user.cwd,
            env=user.env, start_new_session=True, preexec_fn=take_terminal,
        )  # fmt: skip
        self.out = b""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def read_until(self, text: bytes) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self.out:
            assert time.monotonic() < end, self.out
            self.read(0.2)

    def read(self, wait_s: float = 0.0) -> bool:
        if not select.select([self.ours], [], [], wait_s)[0]:
            return False
        self.out += os.read(self.ours, 65_536)
        return True

    def read_to_end(self) -> int:
        """Read until the process has ended, and return its exit code."""
        end = time.monotonic() + EXIT_S
        while self.process.poll() is None:
            assert time.monotonic() < end, self.out
            self.read(0.05)
        while self.read():
            pass
        return self.process.returncode

    def close(self) -> None:
        """Close the terminal, as its window does."""
        for descriptor in (self.theirs, self.ours):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = User(tmp_path)
    user.env["BRIMLINE_STATE_DIR"] = str(tmp_path / "state")
    for number in range(20):
        user.session(f"s{number}", user.call("m1", 54_000 + number, sessionId=f"s{number}"))
    return user


@contextmanager
def on_terminal(user: User, *command: str, controls: bool = True) -> Generator[Terminal]:
    terminal = Terminal(user, *command, controls=controls)
    try:
        yield terminal
    finally:
        terminal.close()
        with suppress(ProcessLookupError):
            os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait(PATIENCE_S)


@pytest.mark.parametrize("controls", [True, False])
@pytest.mark.parametrize("shown", [APPLICATION_MODE, b"54K"])
def test_closed_terminal_ends_watch(user: User, controls: bool, shown: bytes) -> None:
    """Only a controlling terminal sends a signal when it closes."""
    with on_terminal(user, *WATCH, controls=controls) as terminal:
        terminal.read_until(shown)
        terminal.close()
        assert terminal.process.wait(EXIT_S) == -signal.SIGHUP


@pytest.mark.slow
def test_terminal_closed_at_any_moment_ends_watch(user: User) -> None:
    for number in range(20):
        with on_terminal(user, *WATCH) as terminal:
            terminal.read_until(APPLICATION_MODE)
            time.sleep(number * 0.03)
            terminal.close()
            assert terminal.process.wait(EXIT_S) == -signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("shown", [APPLICATION_MODE, b"54K"])
def test_signal_ends_watch_and_restores_the_terminal(
    user: User, number: signal.Signals, shown: bytes
) -> None:
    with on_terminal(user, *WATCH) as terminal:
        terminal.read_until(shown)
        terminal.process.send_signal(number)
        assert terminal.read_to_end() == -number
        assert terminal.out.rindex(RESTORED) > terminal.out.rindex(APPLICATION_MODE)
        assert b"Traceback" not in terminal.out
        assert termios.tcgetattr(terminal.theirs)[:4] == terminal.modes


def test_terminal_that_takes_no_output_does_not_keep_watch_alive(user: User) -> None:
    with on_terminal(user, *WATCH) as terminal:
        terminal.read_until(b"54K")
        for columns in range(100, 160):  # it draws all again, until the terminal's buffer is full
            terminal.resize(columns)
            time.sleep(0.03)
        terminal.process.terminate()
        assert terminal.process.wait(EXIT_S) == -signal.SIGTERM


def has_ended(job: psutil.Process) -> bool:
    """Whether a process has ended, also if its shell has not noticed: bash 5.2 may miss that."""
    try:
        return job.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
def test_ctrl_z_at_any_moment_stops_watch(user: User) -> None:
    """Also while it draws: of 77 times it hung twice when the signal was handled in between."""
    with on_terminal(user, *WATCH) as terminal:
        terminal.read_until(b"54K")
        watch = psutil.Process(terminal.process.pid)
        for columns in range(100, 140):
            terminal.resize(columns)
            time.sleep(columns % 10 * 0.002)
            watch.send_signal(signal.SIGTSTP)
            end = time.monotonic() + EXIT_S
            while watch.status() != psutil.STATUS_STOPPED:
                assert time.monotonic() < end, terminal.out[-500:]
                terminal.read(0.01)
            watch.send_signal(signal.SIGCONT)
            drawn_again = time.monotonic() + 0.2
            while time.monotonic() < drawn_again:
                terminal.read(0.02)


@pytest.mark.skipif(shutil.which("bash") is None, reason="install bash: its jobs are tested")
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_stopped_job_ends_by_a_signal(user: User, number: signal.Signals) -> None:
    """It is continued in the background, where a change of the terminal would stop it again."""
    with on_terminal(user, "bash", "--norc", "-i") as terminal:
        start = f"sh -c 'echo pid $$; exec {' '.join(WATCH)}'\n"
        os.write(terminal.ours, start.encode())
        terminal.read_until(b"54K")
        pid = re.search(rb"pid (\d+)", terminal.out)
        assert pid is not None
        job = psutil.Process(int(pid[1]))
        job.send_signal(number)
        terminal.read_until(b"Stopped")
        os.write(terminal.ours, b"kill %1\n")
        end = time.monotonic() + EXIT_S
        while not has_ended(job):
            assert time.monotonic() < end, (job.status(), terminal.out)
            terminal.read(0.05)
