"""Hooks sent to a real daemon at a fixed rate, and how long their answers take."""

import asyncio
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from brimline.agents.hook_adapter import HookRequest
from brimline.testing.hook_frames import encode_request, parse_reply
from serving import Daemon

RECONNECT_S = 0.002
"""A Unix socket whose backlog is full refuses at once: the hook tries again after this."""

EXIT_TIMEOUT_S = 30.0
NOON = "2026-11-15T12:00:00.000Z"


@dataclass(frozen=True)
class Load:
    """What is sent to the daemon: hooks per second, for some seconds."""

    rate: int
    seconds: float


@dataclass(frozen=True)
class Latency:
    """The time from the scheduled start of each hook to its answer, in milliseconds."""

    p50: float
    p99: float
    worst: float
    cpu_wait_percent: float
    """How long the daemon waited for a CPU that other programs had: the noise of the machine."""


class HookSender:
    """Runs in its own process: sends hooks on a fixed schedule, whether or not answers come.

    Before each hook the session's transcript grows by one call, as in a real session.
    """

    def __init__(self, hook_socket: str, transcripts: Path, sessions: int) -> None:
        self._hook_socket = hook_socket
        self._transcripts = transcripts
        self._sessions = sessions
        self._sent = 0

    def serve(self, commands: Connection) -> None:
        """Carry out each load that is received, and return the samples."""
        while (load := commands.recv()) is not None:
            commands.send(asyncio.run(self._send_all(load)))

    async def _send_all(self, load: Load) -> list[float]:
        start = time.perf_counter() + 0.1
        hooks: list[asyncio.Task[float]] = []
        for number in range(int(load.rate * load.seconds)):
            due = start + number / load.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            hooks.append(asyncio.create_task(self._send(due)))
        return await asyncio.gather(*hooks)

    async def _send(self, due: float) -> float:
        number, self._sent = self._sent, self._sent + 1
        request = self._request(number % self._sessions, number // self._sessions)
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.setblocking(False)
            while not _connected(connection, self._hook_socket):
                await asyncio.sleep(RECONNECT_S)
            await loop.sock_sendall(connection, request)
            reply = b""
            while parse_reply(reply) is None:
                piece = await loop.sock_recv(connection, 1 << 16)
                if not piece:
                    raise SystemExit("bench: the daemon hung up")
                reply += piece
        return (time.perf_counter() - due) * 1e3

    def _request(self, session: int, call: int) -> bytes:
        path = self._transcripts / f"{session_id(session)}.jsonl"
        with path.open("ab") as file:
            file.write(call_record(session, call))
        body = msgspec.json.encode(
            {
                "session_id": session_id(session),
                "transcript_path": str(path),
                "hook_event_name": "PostToolUse",
            }
        )
        id = f"{time.time_ns()}-{os.getpid()}"
        return encode_request(HookRequest("hook", "claude", id, os.getpid(), {}, body))


def _connected(connection: socket.socket, path: str) -> bool:
    try:
        connection.connect(path)
    except BlockingIOError:
        return False
    return True


def session_id(number: int) -> str:
    """The id of a session by its number."""
    return f"{number:08}-0000-4000-8000-000000000000"


def call_record(session: int, call: int) -> bytes:
    """A line of a transcript: a call that holds a little more than the one before."""
    usage = {"input_tokens": 4, "cache_read_input_tokens": 50_000 + call, "output_tokens": 9}
    message = {"id": f"msg_{session}_{call}", "model": "claude-sonnet-4-5", "usage": usage}
    record = {
        "isSidechain": False,
        "type": "assistant",
        "sessionId": session_id(session),
        "version": "2.1.325",
        "timestamp": NOON,
        "message": message,
    }
    return msgspec.json.encode(record) + b"\n"


@contextmanager
def process(serve: Callable[[Connection], None]) -> Generator[Connection]:
    """A process that answers commands, as long as the block runs."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=serve, args=(theirs,), daemon=True)
    child.start()
    theirs.close()
    try:
        yield ours
        ours.send(None)
        child.join(EXIT_TIMEOUT_S)
    finally:
        child.terminate()


def ask(commands: Connection, command: object) -> Any:
    """The answer of a process to one command."""
    commands.send(command)
    return commands.recv()


def measure(hooks: Connection, daemon: Daemon, load: Load) -> Latency:
    """The latency of the hooks of one phase."""
    waited, started = daemon.cpu_wait_ns, time.perf_counter()
    samples: list[float] = ask(hooks, load)
    waited_s = (daemon.cpu_wait_ns - waited) / 1e9
    percentiles = statistics.quantiles(samples, n=100, method="inclusive")
    waited_percent = 100 * waited_s / (time.perf_counter() - started)
    return Latency(percentiles[49], percentiles[98], max(samples), waited_percent)


def print_row(name: str, latency: Latency) -> None:
    """Print the latency of one phase."""
    print(
        f"{name:18}  p50 {latency.p50:7.2f} ms   p99 {latency.p99:8.2f} ms"
        f"   worst {latency.worst:8.2f} ms   waited for a CPU {latency.cpu_wait_percent:4.1f} %"
    )
