"""Hook latency of a real daemon with many open pages, beside the same daemon without any."""

import argparse
import asyncio
import http.client
import selectors
import socket
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from brimline.store.base import PutSession, PutThread, Write
from brimline.store.rows import SessionRow, ThreadRow
from brimline.store.sqlite import SqliteStore
from hook_load import HookSender, Load, ask, measure, print_row, process, session_id
from serving import Daemon, serving

MAX_ADDED_P99_MS = 5.0
"""The target: open pages may add this much to the 99th percentile."""

ACTIVE_SESSIONS = 600
"""The hooks come from this many of the sessions, in turn."""

WRITES_PER_TRANSACTION = 500
SETTLE_S = 3.0
"""The daemon comes to rest for this long between two phases."""

REPLY_TIMEOUT_S = 30.0


class Viewers:
    """Runs in its own process: open pages that read whatever the daemon sends."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port = port
        lines = {"Host": f"127.0.0.1:{port}", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._request = f"GET /v1/stream HTTP/1.1\r\n{head}\r\n".encode()
        self._sockets: list[socket.socket] = []
        self._received = 0

    def serve(self, commands: Connection) -> None:
        """Open as many pages as are asked for; report the bytes received since the last time."""
        with selectors.DefaultSelector() as selector:
            selector.register(commands, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is commands:
                        if (wanted := commands.recv()) is None:
                            return
                        self._resize(wanted, selector)
                        commands.send(self._received)
                        self._received = 0
                    else:
                        self._read(key.fileobj)

    def _resize(self, wanted: int, selector: selectors.DefaultSelector) -> None:
        while len(self._sockets) > wanted:
            page = self._sockets.pop()
            selector.unregister(page)
            page.close()
        while len(self._sockets) < wanted:
            page = socket.create_connection(("127.0.0.1", self._port))
            page.sendall(self._request)
            page.setblocking(False)
            selector.register(page, selectors.EVENT_READ)
            self._sockets.append(page)

    def _read(self, page: object) -> None:
        assert isinstance(page, socket.socket)
        data = page.recv(1 << 18)
        if not data:
            raise SystemExit("bench: the daemon closed a stream")
        self._received += len(data)


async def fill_store(path: Path, sessions: int, transcripts: Path) -> None:
    """Write sessions of the last hours, each with its main thread."""
    path.parent.mkdir(parents=True)
    store = await SqliteStore.open(path)
    now = time.time()
    writes: list[Write] = []
    for number in range(sessions):
        id = session_id(number)
        writes.append(PutSession(_session_row(id, now - 3_600 - number, transcripts)))
        writes.append(PutThread(_thread_row(id, now - 3_600 - number)))
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


def list_sessions_ms(port: int, headers: dict[str, str]) -> float:
    """How long GET /v1/sessions takes, in milliseconds."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REPLY_TIMEOUT_S)
    connection.request("GET", "/v1/sessions", headers=headers)
    connection.getresponse().read()
    connection.close()
    return (time.perf_counter() - start) * 1e3


def run(work: Path, sessions: int, viewers: int, load: Load) -> None:
    """Measure without pages, while they open, with them open, and without again; print it."""
    transcripts = work / "transcripts"
    transcripts.mkdir()
    asyncio.run(fill_store(work / "state" / "brimline.db", sessions, transcripts))
    with serving(work) as daemon:
        port, headers = _port_of(daemon), daemon.authorization
        active = min(ACTIVE_SESSIONS, sessions)
        sender = HookSender(str(daemon.socket), transcripts, active)
        with process(sender.serve) as hooks, process(Viewers(port, headers).serve) as pages:
            measure(hooks, daemon, Load(load.rate, active / load.rate))  # each session is read once
            time.sleep(SETTLE_S)
            before = measure(hooks, daemon, load)
            ask(pages, viewers)
            opening = measure(hooks, daemon, load)
            while ask(pages, viewers):  # until every page has received all sessions
                time.sleep(SETTLE_S)
            cpu, started = daemon.cpu_ns, time.perf_counter()
            beside = measure(hooks, daemon, load)
            busy = (daemon.cpu_ns - cpu) / 1e7 / (time.perf_counter() - started)
            received = ask(pages, viewers)
            listing_ms = list_sessions_ms(port, headers)
            ask(pages, 0)
            time.sleep(SETTLE_S)
            after = measure(hooks, daemon, load)
    print_row("no pages", before)
    print_row(f"{viewers} pages open", opening)
    print_row(f"{viewers} pages read", beside)
    print_row("no pages again", after)
    reference = (before.p99 + after.p99) / 2
    added = beside.p99 - reference
    verdict = "yes" if added <= MAX_ADDED_P99_MS else "NO"
    print(f"added to p99        {added:8.2f} ms <= {MAX_ADDED_P99_MS:g} ms: {verdict}")
    print(f"ratio of p99        {beside.p99 / reference:8.2f} x")
    print(f"received by a page  {received / viewers / load.seconds / 1024:8.1f} KiB/s")
    print(f"CPU of the daemon   {busy:8.1f} % of a core, with the pages")
    print(f"GET /v1/sessions    {listing_ms:8.1f} ms, once they are open")


def _port_of(daemon: Daemon) -> int:
    return int(daemon.address.rpartition(":")[2])


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=100, help="open pages (default: 100)")
    parser.add_argument("--sessions", type=int, default=6_000, help="in the store (default: 6000)")
    parser.add_argument("--rate", type=int, default=300, help="hooks per second (default: 300)")
    parser.add_argument("--seconds", type=float, default=10, help="per phase (default: 10)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = Load(options.rate, options.seconds)
        run(Path(folder), options.sessions, options.viewers, load)


if __name__ == "__main__":
    main()
