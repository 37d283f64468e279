"""Runs a hook client as agents do: a process, a pipe, an exit code."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from brimline.agents.hook_adapter import HookRequest
from brimline.agents.hook_command import Program
from brimline.hooks import spool
from brimline.hooks.client import client
from brimline.hooks.client.payload import reduce_body
from brimline.install.launcher import write_launcher

from .daemon import Daemon, Exchange

CLIENT = Path(client.__file__)
SOURCES = [CLIENT.with_name(f"{name}.c") for name in ("client", "payload", "spool", "launch")]
MAX_RUN_S = 10.0  # a client takes 0.25 s at most; a busy machine may take longer to start one
MAX_WAIT_S = 60.0

PIPE_BYTES = 16 << 10  # fits into any pipe

TRIES = 20  # runs until a client is in time on a busy machine

# Bytes to send through a pipe, a file, or an open descriptor.
Stdin: TypeAlias = bytes | Path | int


@contextmanager
def open_stdin(stdin: Stdin) -> Generator[int, None, None]:
    """Yield the stdin of a process; bytes that fit into a pipe are written before it starts."""
    if isinstance(stdin, Path):
        with stdin.open("rb") as file:
            yield file.fileno()
    elif isinstance(stdin, bytes) and len(stdin) <= PIPE_BYTES:
        ours, into = os.pipe()
        os.write(into, stdin)
        os.close(into)
        yield ours
        os.close(ours)
    else:
        yield subprocess.PIPE if isinstance(stdin, bytes) else stdin


@dataclass(frozen=True)
class ClientResult:
    pid: int
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float


@dataclass(frozen=True)
class Agent:
    """Runs a client. `folder` is the state folder, with the socket and the spool."""

    command: Sequence[str]
    folder: Path
    socket: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    before: Callable[[], None] | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether the client is the compiled one: Python's is run with Python's options."""
        return "-S" not in self.command

    def run(self, stdin: Stdin, kind: str = "hook", stdout: int = subprocess.PIPE) -> ClientResult:
        """Run the client to its end."""
        begun = time.monotonic()
        with open_stdin(stdin) as stdin_fd:
            process = subprocess.Popen(
                self.words(kind),
                stdin=stdin_fd,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=dict(self.env),
                preexec_fn=self.before,
            )
            piped = stdin if isinstance(stdin, bytes) and stdin_fd == subprocess.PIPE else None
            out, stderr = process.communicate(piped, timeout=MAX_WAIT_S)
        gone = time.monotonic() - begun
        return ClientResult(process.pid, process.returncode, out or b"", stderr, gone)

    def words(self, kind: str) -> list[str]:
        """Return the command with its arguments."""
        return [*self.command, kind, "claude", str(self.socket), str(self.folder / spool.NAME)]

    def answered(
        self, daemon: Daemon, stdin: Stdin, kind: str = "hook", stdout: int = subprocess.PIPE
    ) -> tuple[ClientResult, Exchange]:
        """Run the client until the daemon answers in time; then nothing is spooled."""
        for _ in range(TRIES):
            result = self.run(stdin, kind, stdout)
            exchange = daemon.last_exchange(result.pid)
            if not self.take_spooled() and exchange is not None:
                return result, exchange
        raise AssertionError("the client missed the daemon's reply each time")

    def unanswered(self, daemon: Daemon, stdin: Stdin, kind: str) -> tuple[ClientResult, Exchange]:
        """Run the client until its request reaches a daemon that does not answer."""
        for _ in range(TRIES):
            result = self.run(stdin, kind)
            exchange = daemon.last_exchange(result.pid)
            if exchange is not None:
                return result, exchange
            self.take_spooled()
        raise AssertionError("no request reached the daemon")

    def prints(self, daemon: Daemon, stdin: Stdin, text: bytes) -> tuple[ClientResult, Exchange]:
        """Run the client until it prints the daemon's reply, whose receipt is spooled."""
        for _ in range(TRIES):
            result, exchange = self.unanswered(daemon, stdin, "hook")
            if result.stdout == text:
                return result, exchange
            self.take_spooled()
        raise AssertionError("the client missed the daemon's reply each time")

    def spools(self, stdin: bytes | Path, kind: str = "hook") -> ClientResult:
        """Run the client until its reduced input is spooled once."""
        whole = stdin.read_bytes() if isinstance(stdin, Path) else stdin
        for _ in range(TRIES):
            result = self.run(stdin, kind)
            if [event.body for event in self.take_spooled()] == [reduce_body(whole)]:
                return result
        raise AssertionError("the reduced input was not spooled")

    def take_spooled(self) -> list[HookRequest]:
        """Remove and return the events in the spool."""
        events: list[HookRequest] = []
        while batch := spool.take(self.folder):
            events += batch
            assert batch.skipped == 0
            batch.finish()
        return events

    def take_dropped(self) -> int:
        """Return the number of lost events and reset it."""
        return spool.take_dropped(self.folder)


class InstalledAgent(Agent):
    """Runs the launcher, as setup installs it."""

    def words(self, kind: str) -> list[str]:
        return [*self.command, "claude", kind]


def install(program: Program, env: Mapping[str, str] | None = None) -> InstalledAgent:
    """Write the launcher of a program and return an agent that runs it."""
    write_launcher(program)
    socket = Path(program.socket)
    return InstalledAgent([program.launcher], socket.parent, socket, env or {})


def python_client() -> list[str]:
    """Return the command of the Python client."""
    return [sys.executable, "-I", "-S", str(CLIENT)]


def compiled_client(program: Path) -> list[str]:
    """Return the command of the compiled client."""
    return [str(program), sys.executable, str(CLIENT)]


def compile_client(program: Path) -> None:
    """Compile the client; raises if the compiler warns."""
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-std=c11", "-O2", *strict, "-o", str(program), *map(str, SOURCES)]
    subprocess.run(command, check=True)
