"""A hook exits with 0 and prints nothing, whatever its stdin is; a status line, `ctx unknown`."""

import os
import pty
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents.hook_command import Program

from .agent import CLIENT, MAX_RUN_S, Agent, install
from .daemon import Daemon, answers

Opened = Callable[[Path], Iterator[int]]


def directory(folder: Path) -> Iterator[int]:
    yield os.open(folder, os.O_RDONLY)


def dev_null(folder: Path) -> Iterator[int]:
    yield os.open("/dev/null", os.O_RDONLY)


def write_only_file(folder: Path) -> Iterator[int]:
    yield os.open(folder / "written", os.O_WRONLY | os.O_CREAT)


def write_end(folder: Path) -> Iterator[int]:
    reader, writer = os.pipe()
    yield writer
    os.close(reader)


def lone_fifo(folder: Path) -> Iterator[int]:
    os.mkfifo(folder / "fifo")
    yield os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)


def silent_socket(folder: Path) -> Iterator[int]:
    ours, theirs = socket.socketpair()
    yield theirs.detach()
    ours.close()


def closed_socket(folder: Path) -> Iterator[int]:
    ours, theirs = socket.socketpair()
    ours.close()
    yield theirs.detach()


def listening_socket(folder: Path) -> Iterator[int]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "listening"))
    listener.listen()
    yield listener.detach()


def terminal(folder: Path) -> Iterator[int]:
    ours, theirs = pty.openpty()
    yield theirs
    os.close(ours)


ENDED = [directory, dev_null, write_only_file, closed_socket]
SILENT = [write_end, lone_fifo, silent_socket, listening_socket, terminal]
STREAMS = [*ENDED, *SILENT]


@contextmanager
def open_stream(stream: Opened, folder: Path) -> Generator[int, None, None]:
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
    return install(Program(sys.executable, str(CLIENT), *place, fast))


@pytest.mark.parametrize("kind", ["hook", "statusline"])
@pytest.mark.parametrize("stream", STREAMS)
def test_odd_stdin_without_a_daemon_gives_no_error(
    installed: Agent, stream: Opened, kind: str
) -> None:
    with open_stream(stream, installed.folder) as stdin:
        result = installed.run(stdin, kind)
    line = b"ctx unknown\n" if kind == "statusline" and stream in SILENT else b""
    assert (result.code, result.stdout, result.stderr) == (0, line, b"")
    assert result.seconds < MAX_RUN_S


@pytest.mark.parametrize("stream", STREAMS)
def test_odd_stdin_with_a_daemon_gives_no_error(installed: Agent, stream: Opened) -> None:
    """A slow machine may miss the reply."""
    with Daemon(installed.socket, answers(b"{}")), open_stream(stream, installed.folder) as stdin:
        result = installed.run(stdin)
    assert (result.code, result.stderr) == (0, b"")
    assert result.stdout in (b"", b"{}")


def test_closed_stdin_is_silent(installed: Agent) -> None:
    result = replace(installed, before=lambda: os.close(0)).run(subprocess.DEVNULL)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize("kind", ["start", "hook", "statusline-restart"])
@pytest.mark.parametrize(
    "paths",
    [
        ("/nowhere/python", str(CLIENT), None),
        (sys.executable, "/nowhere/client.py", "/nowhere/brimline-hook"),
    ],
    ids=["removed", "other Python"],
)
def test_gone_installation_is_silent(
    folder: Path, paths: tuple[str, str, str | None], kind: str
) -> None:
    python, script, compiled = paths
    place = str(folder / "hook.sock"), str(folder / "spool")
    agent = install(Program(python, script, *place, compiled))
    result = agent.run(b"{}", kind)
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert agent.take_spooled() == []


def test_shell_command_is_silent_too(installed: Agent) -> None:
    command = shlex.join(installed.words("hook"))
    with open_stream(directory, installed.folder) as stdin:
        result = subprocess.run(
            ["/bin/sh", "-c", command], stdin=stdin, capture_output=True, check=False
        )
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
