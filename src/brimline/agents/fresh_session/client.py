"""The Claude Code command of this machine: its path, its version, and a process of it."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import msgspec

from brimline.agents.claude import SESSION_VARIABLES
from brimline.agents.transcripts.source import Places
from brimline.errors import BaselineFailed, BrimlineError

AGENT = "claude"
INSTALL_PATHS = (".local/bin/claude", ".claude/local/claude")  # below home, if not in PATH

INSTALL_HINT = "Install Claude Code, or add `claude` to your PATH."
CONTEXT_HINT = "Check the output of `claude -p /context`."

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
        reason = self.last_error()
        exit_text = "it closed its output" if code is None else f"it ended with code {code}"
        return f"{exit_text}: {reason}" if reason else exit_text

    def last_error(self) -> str:
        """Return the last line of standard error, at most 200 characters of it."""
        self._errors.seek(0)
        lines = self._errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:200] if lines else ""


class ClaudeCommand(msgspec.Struct, frozen=True):
    """How to run the client; `timeout_s` is for each run, `server_wait_s` for its MCP servers."""

    path: str
    cwd: Path
    env: Mapping[str, str]
    model: str | None = None
    timeout_s: float = 30.0
    server_wait_s: float = 10.0

    def start(self, *arguments: str) -> ClientProcess:
        """Start the client; raises BaselineFailed."""
        try:
            return ClientProcess([self.path, *arguments], self.cwd, self.env, self.timeout_s)
        except OSError as error:
            reason = f"cannot start {self.path}: {error.strerror or error}"
            raise BaselineFailed(AGENT, reason, INSTALL_HINT) from error

    @property
    def model_options(self) -> Sequence[str]:
        return () if self.model is None else ("--model", self.model)

    def timeout_error(self, what: str, output: bytes = b"") -> BaselineFailed:
        reason = with_output(f"no answer to {what} in {self.timeout_s:g} s", output)
        return BaselineFailed(AGENT, reason, CONTEXT_HINT)


def with_output(description: str, output: bytes) -> str:
    """Add the start of an unexpected output to a description."""
    excerpt = output.decode("utf-8", "replace").strip()[:80]
    return f"{description}; it printed {excerpt!r}" if excerpt else description


def find_command(places: Places) -> str:
    """Return the client's path; raises BaselineFailed.

    PATH comes first, then the usual places, then the client that the Claude Agent SDK bundles.
    """
    in_path = shutil.which("claude", path=places.env.get("PATH", ""))
    elsewhere = (shutil.which(str(places.home / path)) for path in INSTALL_PATHS)
    command = in_path or next(filter(None, elsewhere), None) or _find_bundled()
    if command is None:
        raise BaselineFailed(AGENT, "Claude Code is not installed", INSTALL_HINT)
    return command


def _find_bundled() -> str | None:
    sdk = find_spec("claude_agent_sdk")
    if sdk is None or sdk.origin is None:
        return None
    return shutil.which(str(Path(sdk.origin).parent / "_bundled" / "claude"))


def client_environment(places: Places) -> dict[str, str]:
    """Return the environment without the variables of a session that we may run in."""
    return {name: value for name, value in places.env.items() if name not in SESSION_VARIABLES}


def read_version(client: ClaudeCommand) -> str:
    """Return what `--version` prints; raises BaselineFailed if that is no version."""
    with client.start("--version") as process:
        try:
            output = next(process.lines(), b"")
        except ClientTimeout as error:
            raise client.timeout_error("--version") from error
        if match := re.match(rb"\s*v?(\d+\.\d+[\w.+-]*)", output):
            return match[1].decode()
        reason = with_output(process.describe_exit(), output)
        raise BaselineFailed(AGENT, f"{client.path} is not Claude Code: {reason}", INSTALL_HINT)
