"""`brimline run` and signals: each reaches the child once."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from .children import Running, program
from .screen import Terminal
from .terminal import PATIENCE_S, User

# A child that notes each signal on stdout and in a file of its name; SIGUSR2 ends it.
NOTES = """
import os, signal, sys, time
def note(number, _):
    name = signal.Signals(number).name
    os.write(1, (name + "\\n").encode())
    open(name, "w").close()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP,
               signal.SIGCONT, signal.SIGWINCH, signal.SIGUSR1):
    signal.signal(number, note)
signal.signal(signal.SIGUSR2, lambda *_: os._exit(5))
os.write(1, b"ready\\n")
while True:
    time.sleep(60)
"""


def until(there: Callable[[], bool]) -> None:
    """Wait until a condition holds, with time for a busy machine."""
    end = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGWINCH", "SIGCONT"]


@pytest.mark.parametrize("name", PASSED_ON)
def test_signal_reaches_the_child_once(user: User, name: str) -> None:
    running = Running(user, "--", program(user, "notes", NOTES))
    assert running.read_all(b"ready\n") == b"ready\n"
    running.send(signal.Signals[name])
    assert running.read_all(b"\n") == f"{name}\n".encode()
    running.send(signal.SIGUSR2)
    code, out, err = running.end()
    assert (code, out) == (5, b"")
    assert err.startswith("Duration: ")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_child_killed_by_a_signal_exits_128_plus_it_with_a_summary(user: User, name: str) -> None:
    running = Running(user, "--", "sh", "-c", "echo ready; exec sleep 3600")
    running.read_all(b"ready\n")
    running.send(signal.Signals[name])
    code, _, err = running.end()
    assert code == 128 + signal.Signals[name]
    assert err.startswith("Duration: ")


def test_stop_signal_stops_both_and_sigcont_resumes_them(user: User) -> None:
    running = Running(user, "--", program(user, "notes", NOTES))
    running.read_all(b"ready\n")
    running.send(signal.SIGTSTP)
    _, status = os.waitpid(running.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    # A SIGCONT takes back a SIGTSTP that the child has not looked at yet, and ours is sent to it.
    until((user.cwd / "SIGTSTP").exists)
    running.send(signal.SIGCONT)
    assert running.read_all(b"SIGCONT\n") == b"SIGTSTP\nSIGCONT\n"
    running.send(signal.SIGUSR2)
    assert running.end()[0] == 5


def test_signal_reaches_the_child_while_the_output_pipe_is_full(user: User) -> None:
    script = 'trap "exit 6" TERM; echo ready; head -c 1000000 /dev/zero & wait'
    running = Running(user, "--", "sh", "-c", script)
    assert running.read(6) == b"ready\n"
    running.send(signal.SIGTERM)
    assert running.end()[0] == 6


def test_ctrl_c_reaches_the_child_once(user: User) -> None:
    terminal = Terminal(user, "--render", "plain", "--", program(user, "notes", NOTES))
    terminal.wait_for("ready")
    terminal.press(b"\x03")
    terminal.wait_for("SIGINT")
    terminal.press(b"\x1c")
    terminal.wait_for("SIGQUIT")
    os.kill(terminal.pid, signal.SIGUSR2)
    assert terminal.end() == 5
    assert terminal.text.count("SIGINT") == terminal.text.count("SIGQUIT") == 1


def test_interrupt_sent_by_a_program_reaches_a_foreground_child(user: User) -> None:
    terminal = Terminal(user, "--render", "plain", "--", program(user, "notes", NOTES))
    terminal.wait_for("ready")
    os.kill(terminal.pid, signal.SIGINT)
    terminal.wait_for("SIGINT")
    os.kill(terminal.pid, signal.SIGUSR2)
    assert terminal.end() == 5
    assert terminal.text.count("SIGINT") == 1


def test_no_iteration_starts_after_a_signal(user: User) -> None:
    script = 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    running = Running(user, "--iterations", "9", "--", "sh", "-c", script)
    running.read_all(b"ready\n")
    running.send(signal.SIGTERM)
    code, out, err = running.end()
    assert (code, out) == (0, b"")
    assert err.count("Duration: ") == 1


def test_ignored_signals_stay_ignored(user: User) -> None:
    running = Running(
        user, "--", "sh", "-c", "echo ready; read line; echo $line", ignored=signal.SIGHUP
    )
    running.read_all(b"ready\n")
    running.send(signal.SIGHUP)
    running.write(b"lives\n")
    assert running.end()[:2] == (0, b"lives\n")


def test_exit_code_is_the_childs_when_sigchld_is_ignored(user: User) -> None:
    assert Running(user, "--", "sh", "-c", "exit 7", ignored=signal.SIGCHLD).end()[0] == 7
