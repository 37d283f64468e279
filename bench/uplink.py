"""A day without the server: how long all of a machine's calls take to arrive when it is back.

And hooks while a hostile server offers messages with each reply, beside those of a quiet one.
"""

import argparse
import asyncio
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the processes are started as the tests start them

from brimline.store.base import PutCall, PutSession, PutThread, Write  # noqa: E402
from brimline.store.rows import CallRow, SessionRow, ThreadRow  # noqa: E402
from brimline.store.sqlite import SqliteStore  # noqa: E402
from fleet_server import FleetProcess, new_token  # noqa: E402
from postgres_server import execute, local_server  # noqa: E402
from server.otlp_collector import recording_collector  # noqa: E402
from uplink.test_processes import LinkedDaemon  # noqa: E402

MAX_WAIT_S = 600.0
DAY_S = 86_400.0
MACHINE = "0" * 32


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument(
        "--away", type=float, default=45.0, help="seconds that the daemon runs without it"
    )
    about = "messages that a hostile server offers with each reply (0: not measured)"
    parser.add_argument("--offered", type=int, default=30_000, help=about)
    parser.add_argument("--rounds", type=int, default=1_500, help="hooks of each daemon")
    options = parser.parse_args(arguments)
    if options.offered:
        with tempfile.TemporaryDirectory() as folder:
            measure_hooks(Path(folder), options.offered, options.rounds)
    with tempfile.TemporaryDirectory() as folder, local_server() as postgres:
        measure(Path(folder), postgres.url, options.calls, options.sessions, options.away)
    return 0


def measure(folder: Path, database: str, calls: int, sessions: int, away_s: float) -> None:
    token, port = new_token(database), _free_port()
    daemon = LinkedDaemon(folder / "machine", f"http://127.0.0.1:{port}", token)
    asyncio.run(_fill(daemon.state / "brimline.db", calls // sessions, sessions))
    daemon.start()
    server: FleetProcess | None = None
    try:
        time.sleep(away_s)
        before = daemon.get("/v1/daemon")["uplink"]
        print(f"without the server: {before['behind']:,} sessions behind, {before['problem']}")
        server = FleetProcess(database, folder, listen=f"127.0.0.1:{port}")
        began = time.monotonic()
        assert daemon.process is not None
        used = [_cpu_s(daemon.process.pid), _cpu_s(server.process.pid)]
        first_s = 0.0
        while (status := daemon.get("/v1/daemon")["uplink"])["behind"]:
            assert time.monotonic() - began < MAX_WAIT_S, status
            first_s = first_s or (time.monotonic() - began if status["batches"] else 0.0)
            time.sleep(0.1)
        took_s = time.monotonic() - began
        machine_s = _cpu_s(daemon.process.pid) - used[0]
        server_s = _cpu_s(server.process.pid) - used[1]
        _check(database, calls // sessions, sessions)
        sent = status["sent_bytes"]
        print(f"{calls:,} calls of {sessions:,} sessions arrived {took_s:.1f} s after the start")
        print(f"the first batch after {first_s:.1f} s; {status['batches']} batches")
        print(f"{sent:,} bytes sent, {sent / calls:.1f} per call")
        print(f"CPU: machine {machine_s:.1f} s, server {server_s:.1f} s")
    finally:
        daemon.close()
        if server is not None:
            server.close()


def measure_hooks(folder: Path, offered: int, rounds: int) -> None:
    """Print how long a daemon takes for a hook with a hostile server, and with a quiet one."""
    message = {"session": "s", "text": "Stop now", "sender": "boss"}
    flood = [{"id": str(number), **message} for number in range(offered)]
    replies = [
        json.dumps({"machine": MACHINE, "messages": messages}).encode() for messages in ([], flood)
    ]
    with (
        recording_collector(reply=replies[0]) as quiet,
        recording_collector(reply=replies[1]) as hostile,
    ):
        daemons = [
            LinkedDaemon(folder / name, server.address, "brim_x")
            for name, server in (("quiet", quiet), ("hostile", hostile))
        ]
        taken_s: list[list[float]] = [[], []]
        try:
            for daemon in daemons:
                daemon.state.mkdir(mode=0o700, parents=True)
                (daemon.state / "machine").write_text(MACHINE)
                daemon.start()
            for number in range(rounds):
                for daemon, times in zip(daemons, taken_s, strict=True):
                    daemon.show_status("s", 1_000 + number)  # a change: batches go on
                    began = time.perf_counter()
                    daemon.prompt("s")
                    times.append(time.perf_counter() - began)
            refused = daemons[1].get("/v1/daemon")["uplink"]["refused"]
        finally:
            for daemon in daemons:
                daemon.close()
    print(f"{len(hostile.received)} replies with {offered:,} messages each; {refused:,} refused")
    for name, place in (("median", 50), ("p99", 99)):
        values = [statistics.quantiles(times, n=100)[place - 1] * 1e3 for times in taken_s]
        print(
            f"hook, {name}: {values[0]:.2f} ms with a quiet server, {values[1]:.2f} ms with this "
            f"one: {values[1] / values[0]:.2f} x"
        )


async def _fill(path: Path, calls: int, sessions: int) -> None:
    """Store the sessions of the last 24 hours, one after the other, as the monitor does.

    A transaction for each call would only take longer.
    """
    path.parent.mkdir(parents=True, mode=0o700)
    store = await SqliteStore.open(path)
    begin = time.time() - DAY_S
    for number in range(sessions):
        times = [begin + DAY_S * (number + seq / calls) / sessions for seq in range(calls)]
        await store.write(list(_session_writes(number, times)))
    await store.close()


def _session_writes(number: int, times: list[float]) -> Iterator[Write]:
    session, calls, last_at = f"session-{number}", len(times), times[-1]
    yield PutSession(SessionRow(session, "claude", last_at, "host", "/home/ada/shop", "sonnet"))
    yield PutThread(
        ThreadRow(session, "main", 0, calls, "hook", "measured", last_at, 9, calls=calls)
    )
    for seq, at in enumerate(times):
        yield PutCall(
            CallRow(session, "main", f"msg_{number:05}{seq:015x}", seq, 0, 10, 20_000 + seq,
                    900 + seq % 700, 300 + seq % 90, "claude-sonnet-4-5", at, 0, 0.01)
        )  # fmt: skip


def _check(database: str, calls: int, sessions: int) -> None:
    """Check that each call is there once, with its place in its session."""
    rows = execute(
        database, "SELECT session, count(*), count(DISTINCT seq), max(seq) FROM calls GROUP BY 1"
    )
    assert len(rows) == sessions, len(rows)
    assert all(row[1:] == [calls, calls, calls - 1] for row in rows)


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
