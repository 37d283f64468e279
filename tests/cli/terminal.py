"""Runs `python -m brimline` with its own home, in a pipe or on a terminal."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from preloaded import run_brimline, run_process

Json = dict[str, Any]
PATIENCE_S = 120  # generous: a busy machine is slow, not wrong

WINDOW_TOKENS = 200_000


class Completed(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def iso(at: float) -> str:
    """A time as Claude Code writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03}Z"


class User:
    """A home with Claude Code sessions; `now` is the time of the test."""

    def __init__(self, root: Path) -> None:
        self.home, self.cwd = root / "home", root / "work"
        self.projects = root / "claude" / "projects"
        for folder in (self.home, self.cwd, self.projects):
            folder.mkdir(parents=True)
        self.now = time.time()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(root / "claude"),
            "BRIMLINE_CACHE_DIR": str(root / "cache"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm-256color",
            **{k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")},
        }

    # What is in their home.

    def record(self, kind: str, age: float = 60, **fields: Any) -> Json:
        """A record of Claude Code that is `age` seconds old."""
        head = {
            "parentUuid": None,
            "isSidechain": False,
            "cwd": str(self.home / "project"),
            "userType": "external",
            "sessionId": "s1",
            "version": "2.1.325",
        }
        return {**head, **fields, "type": kind, "uuid": f"u{age}", "timestamp": iso(self.now - age)}

    def call(
        self,
        id: str,
        sent: int,
        age: float = 60,
        model: str = "claude-sonnet-4-5",
        output: int = 10,
        **fields: Any,
    ) -> Json:
        """A model call with this many prompt tokens."""
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": min(597, max(0, sent - 3)),
            "cache_read_input_tokens": max(0, sent - 600),
            "output_tokens": output,
        }
        message: Json = {"model": model, "id": id, "role": "assistant", "content": []}
        message["usage"] = usage
        return self.record("assistant", age, message=message, **fields)

    def compaction(self, age: float = 60, **fields: Any) -> list[Json]:
        """A compaction: its boundary record and its summary record."""
        metadata = {"trigger": "auto", "preTokens": 167_000}
        message = {"role": "user", "content": "This session is being continued."}
        return [
            self.record("system", age, subtype="compact_boundary", compactMetadata=metadata,
                        **fields),
            self.record("user", age, message=message, isCompactSummary=True, **fields),
        ]  # fmt: skip

    def session(self, name: str, *records: Json, age: float = 60, folder: str = "-p") -> Path:
        return self.write(self.projects / folder / f"{name}.jsonl", records, age)

    def subagent(self, session: str, name: str, *records: Json, folder: str = "-p") -> Path:
        path = self.projects / folder / session / "subagents" / f"agent-{name}.jsonl"
        fields = {"isSidechain": True, "agentId": name}
        return self.write(path, [{**record, **fields} for record in records], 60)

    def write(self, path: Path, records: Iterable[Json], age: float) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in records]
        path.write_text("".join(lines))
        os.utime(path, (self.now - age, self.now - age))
        return path

    # What they type.

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        first: Callable[[], None] | None = None,
        **env: str,
    ) -> Completed:
        """Run a command with its output in a pipe; `first` is called in its process."""
        completed = run_brimline(
            arguments,
            stdin=stdin,
            cwd=self.cwd,
            env={**self.env, **env},
            timeout=PATIENCE_S,
            first=first,
        )
        return Completed(completed.returncode, completed.stdout.decode(), completed.stderr.decode())

    def start(self, *arguments: str) -> Completed:
        """Run a command as a process of its own, which imports its modules itself."""
        completed = run_process(arguments, env=self.env, timeout=PATIENCE_S, cwd=self.cwd)
        return Completed(completed.returncode, completed.stdout.decode(), completed.stderr.decode())

    def on_terminal(
        self,
        *arguments: str,
        columns: int = 100,
        interrupt: str | None = None,
        program: tuple[str, ...] = ("-m", "brimline"),
        **env: str,
    ) -> Completed:
        """Run a command on a terminal; `interrupt`: press Ctrl-C when this text appears."""
        ours, theirs = pty.openpty()
        size = struct.pack("HHHH", 40, columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.cwd,
            env={**self.env, **env},
            start_new_session=True,
        )
        os.close(theirs)
        try:
            out = _read_all(ours, process, interrupt)
        finally:
            os.close(ours)
        return Completed(process.wait(PATIENCE_S), out.decode().replace("\r\n", "\n"), "")


def _read_all(terminal: int, process: "subprocess.Popen[bytes]", interrupt: str | None) -> bytes:
    out = b""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the last process has let go of the terminal
            return out
        if not piece:
            return out
        out += piece
        if interrupt is not None and interrupt.encode() in out:
            process.send_signal(signal.SIGINT)
            interrupt = None
    process.kill()
    raise TimeoutError(out.decode())


def cells(line: str) -> int:
    """The columns that a line takes; Brimline prints no wide characters of its own."""
    return len(line)


def without_colour(text: str) -> str:
    """The text without Brimline's colours; other escape sequences stay."""
    for code in ("0", "1", "2", "31", "32", "33"):
        text = text.replace(f"\x1b[{code}m", "")
    return text


def environment(user: User, **changes: str | None) -> Mapping[str, str]:
    env = {**user.env, **{k: v for k, v in changes.items() if v is not None}}
    return {k: v for k, v in env.items() if changes.get(k, "") is not None}
