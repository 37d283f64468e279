"""An agent that runs a client at its hooks, as real ones do: a process, a pipe, an exit code."""

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
from brimline.hooks import spool
from brimline.hooks.client import client
from brimline.hooks.client.payload import reduce_body

from .daemon import Conversation, Daemon

CLIENT = Path(client.__file__)
SOURCES = [CLIENT.with_name(f"{name}.c") for name in ("client", "payload", "spool", "launch")]
TOO_LONG = 2.0
"""Seconds. A client takes 0.25 at most; a busy machine may take more to start one."""

FITS = 16 << 10
"""So many bytes any pipe takes at once."""

TRIES = 20
"""So often a client is run until it is in time: a busy machine may be too slow for one that waits
no longer than it may."""

Stdin: TypeAlias = bytes | Path | int
"""What a client reads: this through a pipe, a file, or what is open already."""


@contextmanager
def opened(stdin: Stdin) -> Generator[int, None, None]:
    """What a process is given as its stdin; what fits into a pipe is there before it starts."""
    if isinstance(stdin, Path):
        with stdin.open("rb") as file:
            yield file.fileno()
    elif isinstance(stdin, bytes) and len(stdin) <= FITS:
        ours, into = os.pipe()
        os.write(into, stdin)
        os.close(into)
        yield ours
        os.close(ours)
    else:
        yield subprocess.PIPE if isinstance(stdin, bytes) else stdin


@dataclass(frozen=True)
class Done:
    """How a client ended."""

    pid: int
    code: int
    out: bytes
    told: bytes
    seconds: float


@dataclass(frozen=True)
class Agent:
    """Runs a client. `folder` is the state folder, with the socket and the spool."""

    command: Sequence[str]
    folder: Path
    socket: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    before: Callable[[], None] | None = None

    def run(self, stdin: Stdin, kind: str = "hook", stdout: int = subprocess.PIPE) -> Done:
        """Run it to its end."""
        begun = time.monotonic()
        with opened(stdin) as given:
            process = subprocess.Popen(
                [*self.command, kind, "claude", str(self.socket), str(self.folder / spool.NAME)],
                stdin=given,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=dict(self.env),
                preexec_fn=self.before,
            )
            piped = stdin if isinstance(stdin, bytes) and given == subprocess.PIPE else None
            out, told = process.communicate(piped, timeout=60)
        gone = time.monotonic() - begun
        return Done(process.pid, process.returncode, out or b"", told, gone)

    def answered(
        self, daemon: Daemon, stdin: Stdin, kind: str = "hook", stdout: int = subprocess.PIPE
    ) -> tuple[Done, Conversation]:
        """Run it with a daemon that answers in time: nothing is spooled then."""
        for _ in range(TRIES):
            done = self.run(stdin, kind, stdout)
            heard = daemon.heard(done.pid)
            if not self.spooled() and heard is not None:
                return done, heard
        raise AssertionError("the daemon's answer was passed over each time")

    def unanswered(self, daemon: Daemon, stdin: Stdin, kind: str) -> tuple[Done, Conversation]:
        """Run it with a daemon that hears it, and does not answer."""
        for _ in range(TRIES):
            done = self.run(stdin, kind)
            heard = daemon.heard(done.pid)
            if heard is not None:
                return done, heard
            self.spooled()
        raise AssertionError("the daemon was not told anything")

    def spools(self, stdin: bytes | Path, kind: str = "hook") -> Done:
        """Run it where nobody answers; what the daemon needs of its input is spooled, once."""
        whole = stdin.read_bytes() if isinstance(stdin, Path) else stdin
        for _ in range(TRIES):
            done = self.run(stdin, kind)
            if [kept.body for kept in self.spooled()] == [reduce_body(whole)]:
                return done
        raise AssertionError("what it was told was not spooled as it was")

    def spooled(self) -> list[HookRequest]:
        """What is in the spool; it is taken out."""
        found: list[HookRequest] = []
        while batch := spool.take(self.folder):
            found += batch
            assert batch.skipped == 0
            batch.finish()
        return found

    def dropped(self) -> int:
        """How many events were counted as lost; the count begins anew."""
        return spool.take_dropped(self.folder)


def python_client() -> list[str]:
    """The client in Python, as it is set up where there is no compiled one."""
    return [sys.executable, "-I", "-S", str(CLIENT)]


def compiled_client(program: Path) -> list[str]:
    """The compiled client, as it is set up."""
    return [str(program), sys.executable, str(CLIENT)]


def compile_client(program: Path) -> None:
    """Compile the client; raises where the compiler has anything to say."""
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-std=c11", "-O2", *strict, "-o", str(program), *map(str, SOURCES)]
    subprocess.run(command, check=True)
