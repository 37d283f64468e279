"""A hook exits with 0 and prints nothing, whatever its stdin is."""

import os
import pty
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents.hook_command import Program

from .agent import CLIENT, TOO_LONG, Agent
from .daemon import Daemon, answers

Opened = Callable[[Path], Iterator[int]]


def directory(folder: Path) -> Iterator[int]:
    """A directory."""
    yield os.open(folder, os.O_RDONLY)


def nothing(folder: Path) -> Iterator[int]:
    """/dev/null."""
    yield os.open("/dev/null", os.O_RDONLY)


def write_only_file(folder: Path) -> Iterator[int]:
    """A file that may only be written to."""
    yield os.open(folder / "written", os.O_WRONLY | os.O_CREAT)


def write_end(folder: Path) -> Iterator[int]:
    """The end of a pipe that is written to."""
    reader, writer = os.pipe()
    yield writer
    os.close(reader)


def lone_fifo(folder: Path) -> Iterator[int]:
    """A FIFO that nobody writes to."""
    os.mkfifo(folder / "fifo")
    yield os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)


def silent_socket(folder: Path) -> Iterator[int]:
    """A socket of which nothing comes."""
    ours, theirs = socket.socketpair()
    yield theirs.detach()
    ours.close()


def closed_socket(folder: Path) -> Iterator[int]:
    """A socket that the other side has closed."""
    ours, theirs = socket.socketpair()
    ours.close()
    yield theirs.detach()


def listening_socket(folder: Path) -> Iterator[int]:
    """A socket that cannot be read from at all."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "listening"))
    listener.listen()
    yield listener.detach()


def terminal(folder: Path) -> Iterator[int]:
    """A terminal at which nobody types."""
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)


STREAMS = [
    directory,
    nothing,
    write_only_file,
    write_end,
    lone_fifo,
    silent_socket,
    closed_socket,
    listening_socket,
    terminal,
]


@contextmanager
def opened(stream: Opened, folder: Path) -> Generator[int, None, None]:
    """The descriptor of a stream, while it is needed."""
    making = stream(folder)
    fd = next(making)
    try:
        yield fd
    finally:
        os.close(fd)
        next(making, None)


@pytest.fixture(params=["python", "compiled"])
def installed(request: pytest.FixtureRequest, folder: Path) -> Agent:
    """An agent with the command that setup installs, with and without the compiled client."""
    fast = str(request.getfixturevalue("compiled")) if request.param == "compiled" else None
    place = str(folder / "hook.sock"), str(folder / "spool")
    program = Program(sys.executable, str(CLIENT), *place, fast)
    words = program.command("hook", "claude").words
    return Agent(words[:-4], folder, folder / "hook.sock")


@pytest.mark.parametrize("kind", ["hook", "statusline"])
@pytest.mark.parametrize("stream", STREAMS)
def test_any_stdin_without_a_daemon(installed: Agent, stream: Opened, kind: str) -> None:
    """Nobody is there to ask."""
    with opened(stream, installed.folder) as stdin:
        done = installed.run(stdin, kind)
    assert (done.code, done.out, done.told) == (0, b"", b"")
    assert done.seconds < TOO_LONG


@pytest.mark.parametrize("stream", STREAMS)
def test_any_stdin_with_a_daemon(installed: Agent, stream: Opened) -> None:
    """The daemon answers, or the machine is too slow for it; the agent is told of no error."""
    with Daemon(installed.socket, answers(b"{}")), opened(stream, installed.folder) as stdin:
        done = installed.run(stdin)
    assert (done.code, done.told) == (0, b"")
    assert done.out in (b"", b"{}")


def test_no_stdin(installed: Agent) -> None:
    """Stdin is closed."""
    done = replace(installed, before=lambda: os.close(0)).run(subprocess.DEVNULL)
    assert (done.code, done.out, done.told) == (0, b"", b"")


def test_no_python(folder: Path) -> None:
    """A hook whose Python is gone exits with 0 too, and prints nothing."""
    place = str(folder / "hook.sock"), str(folder / "spool")
    program = Program("/nowhere/python", str(CLIENT), *place)
    agent = Agent(program.command("hook", "claude").words[:-4], folder, folder / "hook.sock")
    done = agent.run(b"{}")
    assert (done.code, done.out, done.told) == (0, b"", b"")


def test_the_shells_command_does_the_same(installed: Agent) -> None:
    """A client that gives the command to a shell runs the same."""
    place = str(installed.socket), str(installed.folder / "spool")
    program = Program(sys.executable, str(CLIENT), *place)
    command = program.command("hook", "claude").shell
    with opened(directory, installed.folder) as stdin:
        done = subprocess.run(
            ["/bin/sh", "-c", command], stdin=stdin, capture_output=True, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
