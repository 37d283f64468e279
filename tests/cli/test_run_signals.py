"""`brimline run` and signals: each reaches the child, once."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from .children import Running, program
from .screen import Terminal
from .terminal import PATIENCE, User

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
"""A child that tells which signals it gets, in a file of their name too; SIGUSR2 ends it."""


def until(there: Callable[[], bool]) -> None:
    """Wait for something that a busy machine may take its time for."""
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGWINCH", "SIGCONT"]


@pytest.mark.parametrize("name", PASSED_ON)
def test_passed_on(user: User, name: str) -> None:
    """What is sent to us alone reaches the child, once; we go on until it has ended."""
    running = Running(user, "--", program(user, "notes", NOTES))
    assert running.read_all(b"ready\n") == b"ready\n"
    running.send(signal.Signals[name])
    assert running.read_all(b"\n") == f"{name}\n".encode()
    running.send(signal.SIGUSR2)
    code, out, err = running.end()
    assert (code, out) == (5, b"")
    assert err.startswith("Duration: ")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_child_that_dies_of_it(user: User, name: str) -> None:
    """128 and the signal; and the summary all the same."""
    running = Running(user, "--", "sh", "-c", "echo ready; exec sleep 3600")
    running.read_all(b"ready\n")
    running.send(signal.Signals[name])
    code, _, err = running.end()
    assert code == 128 + signal.Signals[name]
    assert err.startswith("Duration: ")


def test_stops_and_goes_on(user: User) -> None:
    """Ctrl-Z's signal stops us after the child had it; both go on with SIGCONT."""
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


def test_while_nobody_reads(user: User) -> None:
    """A signal is passed on also while our own output is stuck in a full pipe."""
    script = 'trap "exit 6" TERM; echo ready; head -c 1000000 /dev/zero & wait'
    running = Running(user, "--", "sh", "-c", script)
    assert running.read(6) == b"ready\n"
    running.send(signal.SIGTERM)
    assert running.end()[0] == 6


def test_ctrl_c(user: User) -> None:
    """The terminal sends it to the child as well: it gets one, not two."""
    terminal = Terminal(user, "--render", "plain", "--", program(user, "notes", NOTES))
    terminal.wait_for("ready")
    terminal.press(b"\x03")
    terminal.wait_for("SIGINT")
    terminal.press(b"\x1c")
    terminal.wait_for("SIGQUIT")
    os.kill(terminal.pid, signal.SIGUSR2)
    assert terminal.end() == 5
    assert terminal.text.count("SIGINT") == terminal.text.count("SIGQUIT") == 1


def test_interrupt_by_a_program_on_a_terminal(user: User) -> None:
    """What another program sends to us is passed on, also in the foreground of a terminal."""
    terminal = Terminal(user, "--render", "plain", "--", program(user, "notes", NOTES))
    terminal.wait_for("ready")
    os.kill(terminal.pid, signal.SIGINT)
    terminal.wait_for("SIGINT")
    os.kill(terminal.pid, signal.SIGUSR2)
    assert terminal.end() == 5
    assert terminal.text.count("SIGINT") == 1


def test_signal_ends_the_loop(user: User) -> None:
    """After a signal no further iteration begins, however the child took it."""
    script = 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    running = Running(user, "--iterations", "9", "--", "sh", "-c", script)
    running.read_all(b"ready\n")
    running.send(signal.SIGTERM)
    code, out, err = running.end()
    assert (code, out) == (0, b"")
    assert err.count("Duration: ") == 1


def test_ignored_signals_stay_ignored(user: User) -> None:
    """What was ignored when we were started (nohup) ends nobody."""
    running = Running(
        user, "--", "sh", "-c", "echo ready; read line; echo $line", ignored=signal.SIGHUP
    )
    running.read_all(b"ready\n")
    running.send(signal.SIGHUP)
    running.write(b"lives\n")
    assert running.end()[:2] == (0, b"lives\n")


def test_children_that_nobody_waits_for(user: User) -> None:
    """The exit code is the child's also where we were started by one who waits for nobody."""
    assert Running(user, "--", "sh", "-c", "exit 7", ignored=signal.SIGCHLD).end()[0] == 7
