"""Hook latency of a real daemon at 300 and 1,000 hooks a second, and with other connections.

A server that does nothing gets the same hooks. Then the daemon gets them at 300 a second with open
dashboards, and with idle connections.
"""

import argparse
import asyncio
import multiprocessing
import os
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from brimline.agents.hook_adapter import HookRequest
from brimline.store.base import PutSession, PutThread, Write
from brimline.store.rows import SessionRow, ThreadRow
from brimline.store.sqlite import SqliteStore
from brimline.testing.hook_frames import encode_request, parse_reply
from serving import Daemon, call_record, serving, serving_nothing

RATE = 300  # hooks a second, with other connections
MAX_P99_MS = {RATE: 20.0, 1_000: 50.0}  # by hooks a second
MAX_ADDED_P99_MS = 5.0  # that open dashboards may add
ACTIVE_SESSIONS = 600  # the hooks come from these, in turn
SETTLE_S = 3.0  # the daemon comes to rest for this long between two rows
RECONNECT_S = 0.002  # a Unix socket whose backlog is full refuses at once
EXIT_TIMEOUT_S = 30.0
WRITES_PER_TRANSACTION = 500


@dataclass(frozen=True)
class Latency:
    """The time from the scheduled start of each hook to its answer, in milliseconds."""

    p50: float
    p99: float
    worst: float
    cpu_percent: float  # of a core, by the daemon
    cpu_wait_percent: float  # the daemon was ready to run, and other programs had the CPU


Measure: TypeAlias = Callable[[int, float], Latency]


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
        """Send hooks at each rate that is received, and return their latencies."""
        while (load := commands.recv()) is not None:
            commands.send(asyncio.run(self._send_all(*load)))

    async def _send_all(self, rate: int, seconds: float) -> list[float]:
        start = time.perf_counter() + 0.1
        hooks: list[asyncio.Task[float]] = []
        for number in range(int(rate * seconds)):
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            hooks.append(asyncio.create_task(self._send(due)))
        return await asyncio.gather(*hooks)

    async def _send(self, due: float) -> float:
        request = self._next_request()
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

    def _next_request(self) -> bytes:
        call, session = divmod(self._sent, self._sessions)
        self._sent += 1
        path = self._transcripts / f"{session_id(session)}.jsonl"
        with path.open("ab") as file:
            file.write(call_record(session_id(session), call))
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
    return f"{number:08}-0000-4000-8000-000000000000"


class HttpConnections:
    """Runs in its own process: connections that send a request, or nothing, and read on."""

    def __init__(self, address: str, request: bytes = b"") -> None:
        self._port = int(address.rpartition(":")[2])
        self._request = request
        self._sockets: list[socket.socket] = []
        self._received = 0

    def serve(self, commands: Connection) -> None:
        """Open as many as are asked for; report the bytes received since the last time."""
        with selectors.DefaultSelector() as selector:
            selector.register(commands, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is commands:
                        if (wanted := commands.recv()) is None:
                            return
                        while len(self._sockets) < wanted:
                            self._open(selector)
                        commands.send(self._received)
                        self._received = 0
                    else:
                        self._read(key.fileobj, selector)

    def _open(self, selector: selectors.DefaultSelector) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.sendall(self._request)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
        self._sockets.append(connection)

    def _read(self, connection: object, selector: selectors.DefaultSelector) -> None:
        assert isinstance(connection, socket.socket)
        data = connection.recv(1 << 18)
        self._received += len(data)
        if not data and self._request:
            raise SystemExit("bench: the daemon closed a stream")
        if not data:  # the daemon closes those that send nothing
            selector.unregister(connection)
            connection.close()


@contextmanager
def process(serve: Callable[[Connection], None]) -> Generator[Callable[[object], Any]]:
    """A process that runs as long as the block; yields what asks it and returns its answer."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=serve, args=(theirs,), daemon=True)
    child.start()
    theirs.close()

    def ask(command: object) -> Any:
        ours.send(command)
        return ours.recv()

    try:
        yield ask
        ours.send(None)
        child.join(EXIT_TIMEOUT_S)
    finally:
        child.terminate()


@contextmanager
def hooks_to(server: Daemon, transcripts: Path, sessions: int) -> Generator[Measure]:
    """Yield what sends hooks at a rate for some seconds, and measures them."""
    transcripts.mkdir(parents=True, exist_ok=True)
    with process(HookSender(str(server.socket), transcripts, sessions).serve) as ask:

        def measure(rate: int, seconds: float) -> Latency:
            cpu, waited, started = server.cpu_ns, server.cpu_wait_ns, time.perf_counter()
            samples: list[float] = ask((rate, seconds))
            percent_ns = (time.perf_counter() - started) * 1e7
            cpu_percent = (server.cpu_ns - cpu) / percent_ns
            wait_percent = (server.cpu_wait_ns - waited) / percent_ns
            cuts = statistics.quantiles(samples, n=100, method="inclusive")
            return Latency(cuts[49], cuts[98], max(samples), cpu_percent, wait_percent)

        measure(sessions, 1.0)  # each session is read once
        yield measure


async def fill_store(path: Path, sessions: int, transcripts: Path) -> None:
    """Write sessions of the last hours, each with its main thread."""
    path.parent.mkdir(parents=True, mode=0o700)
    store = await SqliteStore.open(path)
    now = time.time()
    writes: list[Write] = []
    for number in range(sessions):
        id, at = session_id(number), now - 3_600 - number
        writes.append(PutSession(_session_row(id, at, transcripts)))
        writes.append(PutThread(_thread_row(id, at)))
    for start in range(0, len(writes), WRITES_PER_TRANSACTION):
        await store.write(writes[start : start + WRITES_PER_TRANSACTION])
    await store.close()


def _session_row(id: str, at: float, transcripts: Path) -> SessionRow:
    return SessionRow(
        id,
        "claude",
        at,
        host="workstation",
        project=f"/home/user/projects/project-{id[:8]}",
        model="claude-sonnet-4-5",
        version="2.1.325",
        transcript=str(transcripts / f"{id}.jsonl"),
    )


def _thread_row(id: str, at: float) -> ThreadRow:
    return ThreadRow(
        id, "main", 0, 1, "transcript", "measured", at, 40_000, 41_000, 200_000, "known", 167_000,
        "known", 20.0, 20.0, 24.6, 40_000, 0, "claude-sonnet-4-5",
    )  # fmt: skip


def print_row(name: str, latency: Latency, reference: Latency | None = None) -> None:
    """Print a row, with the ratio of its 99th percentile to that of a reference."""
    ratio = f"{latency.p99 / reference.p99:8.2f}" if reference else f"{'':8}"
    figures = f"{latency.p50:9.2f}{latency.p99:9.2f}{latency.worst:9.2f}{ratio}"
    cpu = f"{latency.cpu_percent:8.0f}{latency.cpu_wait_percent:8.1f}"
    print(f"{name:34}{figures}{cpu}", flush=True)


def print_target(what: str, figure: float, most: float) -> None:
    verdict = "yes" if figure <= most else "NO"
    print(f"{what}: {figure:.2f} ms <= {most:g} ms: {verdict}", flush=True)


def measure_rates(measure: Measure, seconds: float) -> dict[int, Latency]:
    """Return the latency at each rate."""
    latencies: dict[int, Latency] = {}
    for rate in MAX_P99_MS:
        time.sleep(SETTLE_S)
        latencies[rate] = measure(rate, seconds)
    return latencies


def measure_pages(
    daemon: Daemon, measure: Measure, pages: int, alone: Latency, seconds: float
) -> None:
    """Print a row for the time in which all dashboards open, and one for when they read."""
    headers = {"Host": daemon.address.rpartition("/")[2], **daemon.authorization}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"GET /v1/stream HTTP/1.1\r\n{lines}\r\n".encode()
    with process(HttpConnections(daemon.address, request).serve) as ask:
        ask(pages)
        print_row(f"{pages} dashboards open", measure(RATE, seconds), alone)
        while ask(pages):  # until each has received all sessions
            time.sleep(SETTLE_S)
        latency = measure(RATE, seconds)
    print_row(f"{pages} dashboards read", latency, alone)
    print_target("added to p99 by dashboards", latency.p99 - alone.p99, MAX_ADDED_P99_MS)


def run(work: Path, options: argparse.Namespace) -> None:
    seconds, active = options.seconds, min(ACTIVE_SESSIONS, options.sessions)
    print(f"{'a hook, ms':34}{'p50':>9}{'p99':>9}{'worst':>9}{'ratio':>8}{'CPU %':>8}{'wait %':>8}")
    with (
        serving_nothing(work / "nothing") as server,
        hooks_to(server, work / "nothing" / "transcripts", active) as measure,
    ):
        nothing = measure_rates(measure, seconds)
    for rate, latency in nothing.items():
        print_row(f"a server that does nothing, {rate:,}/s", latency)
    transcripts = work / "transcripts"
    asyncio.run(fill_store(work / "state" / "brimline.db", options.sessions, transcripts))
    with serving(work) as daemon, hooks_to(daemon, transcripts, active) as measure:
        rates = measure_rates(measure, seconds)
        for rate, latency in rates.items():
            print_row(f"the daemon, {rate:,}/s", latency, nothing[rate])
            print_target(f"p99 at {rate:,}/s", latency.p99, MAX_P99_MS[rate])
        alone = rates[RATE]
        if options.dashboards:
            measure_pages(daemon, measure, options.dashboards, alone, seconds)
        if options.idle:
            with process(HttpConnections(daemon.address).serve) as ask:
                ask(options.idle)
                print_row(f"{options.idle:,} idle connections", measure(RATE, seconds), alone)
        time.sleep(SETTLE_S)
        print_row(f"the daemon again, {RATE:,}/s", measure(RATE, seconds), alone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=6_000, help="in the store (default: 6000)")
    parser.add_argument("--dashboards", type=int, default=100, help="open ones (default: 100)")
    parser.add_argument("--idle", type=int, default=1_000, help="connections (default: 1000)")
    parser.add_argument("--seconds", type=float, default=10, help="of each row (default: 10)")
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), parser.parse_args())


if __name__ == "__main__":
    main()
