"""A process of the client: what is sent to it, the lines that it prints, and its end."""

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import msgspec

from brimline.errors import BrimlineError

MAX_LINE_BYTES = 8 << 20  # longer lines are dropped

EXIT_WAIT_S = 3.0
POLL_S = 0.25  # between checks whether a silent process still runs


class ClientTimeout(BrimlineError):
    """The client did not answer in time."""


class ClientProcess:
    """A process that answers in lines; it and its children are killed at the end."""

    def __init__(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> None:
        """Start the process; raises OSError."""
        self._end = time.monotonic() + timeout
        with ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
            stack.callback(self._out.close)
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_input()
        if kind is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_WAIT_S)
        # Its hooks and MCP servers are in its process group, and may still run.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._open.close()

    @property
    def _out(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdout)

    @property
    def _in(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)

    @property
    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    def send(self, value: object) -> None:
        """Write a line of JSON; a process that has ended is noticed when its output is read."""
        with suppress(BrokenPipeError):
            self._in.write(msgspec.json.encode(value) + b"\n")
            self._in.flush()

    def close_input(self) -> None:
        with suppress(BrokenPipeError):
            self._in.close()

    def lines(self) -> Iterator[bytes]:
        """Yield lines as they come, without those that are too long; raises ClientTimeout."""
        rest = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while piece := self._read_chunk(selector):
                *whole, last = piece.split(b"\n")
                for line in whole:
                    if len(rest) + len(line) <= MAX_LINE_BYTES:
                        yield bytes(rest) + line
                    rest.clear()
                rest += last
                del rest[MAX_LINE_BYTES + 1 :]  # too long by one byte until the line's end
        if 0 < len(rest) <= MAX_LINE_BYTES:
            yield bytes(rest)

    def _read_chunk(self, selector: selectors.BaseSelector) -> bytes:
        """Return the next bytes, empty at the end: a child may keep the output open for ever."""
        while self.seconds_left > 0:
            if selector.select(min(self.seconds_left, POLL_S)):
                return os.read(self._out.fileno(), 1 << 16)
            if self._process.poll() is not None:
                return b""
        raise ClientTimeout

    def describe_exit(self) -> str:
        """Return how a process that closed its output ended, with its last error line."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_WAIT_S)
        code = self._process.poll()
        error = self.last_error()
        exit_text = "it closed its output" if code is None else f"it ended with code {code}"
        return f"{exit_text}: {error}" if error else exit_text

    def last_error(self) -> str:
        """Return the last line of standard error, at most 200 characters of it."""
        self._errors.seek(0)
        lines = self._errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""
