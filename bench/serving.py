"""A real daemon for the benchmarks: boot time, memory, CPU per hook."""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.agents.hook_adapter import HookRequest, RequestKind
from brimline.daemon.hook_requests.hook_socket import ACK
from brimline.daemon.secret import read_secret
from brimline.files.socket_path import socket_path
from brimline.testing.hook_frames import encode_request, parse_reply

DAEMONS = 5
"""How many daemons are measured; medians are shown."""

PATIENCE = 5.0
"""Seconds that an answer may take."""

IDLE = 2.0
"""Seconds after which a daemon that boots has come to rest."""

NOON = "2026-11-15T12:00:00.000Z"
BARE = """
import asyncio, sys

class Bare(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.asked = transport, False

    def data_received(self, data):
        if self.asked:
            self.transport.close()
        else:
            self.asked = True
            self.transport.write(b"BRIMLINE 1 0\\n")

async def main():
    server = await asyncio.get_running_loop().create_unix_server(Bare, sys.argv[1])
    print("is running at", sys.argv[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
"""What any answer costs on this machine."""

MAX_BOOT_S, MAX_IDLE_MB = 0.4, 60


class Row(NamedTuple):
    """A figure of the daemon, and what it may be at most."""

    name: str
    unit: str
    most: float | None = None


@dataclass(frozen=True)
class Daemon:
    """A daemon that serves."""

    pid: int
    state: Path
    boot: float
    address: str = ""

    @property
    def authorization(self) -> dict[str, str]:
        """The header that lets a program in."""
        return {"Authorization": f"Bearer {read_secret(self.state)}"}

    @property
    def socket(self) -> Path:
        """Where hooks talk to it."""
        return socket_path(self.state, os.getuid())

    def ask(self, kind: RequestKind, body: bytes) -> bytes:
        """Its answer to a hook or a status line, which is acknowledged."""
        request = HookRequest(
            kind, "claude", f"{time.time_ns()}-{os.getpid()}", os.getpid(), {}, body
        )
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)  # as the clients wait: a plain `recv` is woken twice
            connection.connect(str(self.socket))
            connection.sendall(encode_request(request))
            data = b""
            while (text := parse_reply(data)) is None:
                if not (piece := connection.recv(1 << 16)):
                    raise SystemExit("bench: the daemon hung up")
                data += piece
            with suppress(OSError):  # it hangs up if it needs no acknowledgement
                connection.sendall(ACK)
                connection.recv(1)
        return text

    def cost(
        self, kind: RequestKind, body: bytes, times: int, first: Callable[[], None] | None = None
    ) -> float:
        """The microseconds of CPU that it takes for one of these, all its threads together.

        `first` is done before each.
        """

        before = self.cpu_ns
        for _ in range(times):
            if first:
                first()
            self.ask(kind, body)
        return (self.cpu_ns - before) / 1e3 / times

    @property
    def cpu_ns(self) -> int:
        """The nanoseconds of CPU so far."""
        return self._schedstat(0)

    @property
    def cpu_wait_ns(self) -> int:
        """The nanoseconds that it was ready to run and had no CPU: other processes had them."""
        return self._schedstat(1)

    def _schedstat(self, field: int) -> int:
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[field]) for thread in threads)

    @property
    def megabytes(self) -> float:
        """What it has in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) / 1024


@contextmanager
def serving(work: Path, words: Sequence[str] = ()) -> Generator[Daemon]:
    """A daemon in a folder of its own, or what Python makes of other words; gone afterwards."""
    env = {"HOME": str(work), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    env["BRIMLINE_STATE_DIR"] = str(work / "state")
    command = [sys.executable, *(words or ["-m", "brimline", "serve", "--port", str(_port())])]
    begun = time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if "is running at" not in line:
                raise SystemExit("bench: the daemon did not start")
            address = line.partition("is running at ")[2].split()[0]
            yield Daemon(process.pid, work / "state", time.perf_counter() - begun, address)
        finally:
            process.terminate()


@contextmanager
def serving_nothing(work: Path) -> Generator[Daemon]:
    """A server that answers hooks as a daemon does, and does nothing else."""
    state = work / "state"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with serving(work, ("-c", BARE, str(socket_path(state, os.getuid())))) as bare:
        yield bare


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call_record(session: str, call: int) -> bytes:
    """A line of a transcript: a call that holds a little more than the one before."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": 50_000 + call, "output_tokens": 9}
    record = {
        "isSidechain": False,
        "type": "assistant",
        "sessionId": session,
        "version": "2.1.325",
        "timestamp": NOON,
        "message": {"id": f"{session}-{call}", "model": "claude-sonnet-4-5", "usage": usage},
    }
    return msgspec.json.encode(record) + b"\n"


def report(work: Path, status: bytes, hooks: int) -> list[str]:
    """The lines about the daemon alone, with ratios to a server that does nothing."""
    if not Path("/proc/self/schedstat").exists():
        return ["there is no /proc here"]
    figures: dict[Row, list[float]] = {}
    references: dict[str, list[float]] = {}  # by unit
    for number in range(DAEMONS):
        for unit, figure in _of_nothing(work / "nothing", hooks).items():
            references.setdefault(unit, []).append(figure)
        for row, figure in _of_one(work / f"daemon-{number}", status, hooks).items():
            figures.setdefault(row, []).append(figure)
    medians = {unit: statistics.median(each) for unit, each in references.items()}
    lines = [_line(row, statistics.median(each), medians) for row, each in figures.items()]
    nothing = ", ".join(f"{figure:.2f} {unit}" for unit, figure in medians.items())
    return [*lines, f"ratios are to a server that does nothing: {nothing}"]


def _of_nothing(work: Path, hooks: int) -> dict[str, float]:
    """Boot, memory and CPU of a hook of a server that does nothing, by unit."""
    with serving_nothing(work) as bare:
        return {"s": bare.boot, "MB": bare.megabytes, "us": bare.cost("hook", b"{}", hooks)}


def _of_one(work: Path, status: bytes, hooks: int) -> dict[Row, float]:
    """The figures of one daemon; from one to the next they differ by a fifth."""
    work.mkdir()
    found: dict[Row, float] = {}
    with serving(work):
        pass  # makes the store; a daemon seldom boots without one
    with serving(work) as daemon:
        found[Row("boot", "s", MAX_BOOT_S)] = daemon.boot
        time.sleep(IDLE)
        found[Row("idle memory", "MB", MAX_IDLE_MB)] = daemon.megabytes
        for name, kind, body in _hooks(status):
            daemon.cost(kind, body, 1 + hooks // 10)
            found[Row(f"CPU of a {name}", "us")] = daemon.cost(kind, body, hooks)
        found[Row("CPU of a hook after a call", "us")] = _cost_after_call(daemon, work, hooks)
        found[Row("memory after them", "MB", MAX_IDLE_MB)] = daemon.megabytes
    return found


def _hooks(status: bytes) -> list[tuple[str, RequestKind, bytes]]:
    """The requests that an agent sends again and again for the session of this status line."""
    of = msgspec.json.decode(status)
    fields = {name: of[name] for name in ("session_id", "transcript_path", "cwd")}
    fields |= {"permission_mode": "default", "prompt_id": "5c0e7d1a"}
    tool = {
        "tool_name": "Read",
        "tool_input": {"file_path": "/home/u/src/module.py"},
        "tool_response": {"type": "text", "file": {"content": "x = 1\n" * 40, "numLines": 40}},
        "tool_use_id": "toolu_01",
    }
    prompt = {"prompt": "Go on, please."}
    hooks: list[tuple[str, RequestKind, bytes]] = [
        (f"{name} hook", "hook", msgspec.json.encode({**fields, "hook_event_name": name, **more}))
        for name, more in (("PostToolUse", tool), ("UserPromptSubmit", prompt))
    ]
    return [*hooks, ("status line", "statusline", status)]


def _cost_after_call(daemon: Daemon, work: Path, times: int) -> float:
    """Return the CPU of a hook that finds a new call in the transcript, in microseconds."""
    path, numbers = work / "growing.jsonl", count()
    fields = {
        "session_id": "growing",
        "transcript_path": str(path),
        "hook_event_name": "PostToolUse",
    }
    hook = msgspec.json.encode(fields)

    def call() -> None:
        with path.open("ab") as file:
            file.write(call_record("growing", next(numbers)))

    call()
    daemon.cost("hook", hook, times // 10 + 1, call)
    return daemon.cost("hook", hook, times, call)


def _line(row: Row, figure: float, references: dict[str, float]) -> str:
    text = f"{row.name:34}{figure:7.2f} {row.unit:3}{figure / references[row.unit]:7.1f} x"
    if row.most is None:
        return text
    return f"{text}  <= {row.most:g} {row.unit}: {'yes' if figure <= row.most else 'NO'}"
