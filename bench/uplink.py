"""A day without the server: how long all of a machine's calls take to arrive when it is back.

The same rows by COPY, in transactions of as many rows as a batch has, are the reference.
"""

import argparse
import asyncio
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
from daemon.uplink.test_processes import LinkedDaemon  # noqa: E402
from fleet import copy_rate  # noqa: E402
from fleet_server import FleetProcess, new_token  # noqa: E402
from fleet_servers import cpu_seconds  # noqa: E402
from postgres_server import execute, local_server  # noqa: E402
from reserved_port import ReservedPort  # noqa: E402

MAX_WAIT_S = 600.0
DAY_S = 86_400.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument(
        "--away", type=float, default=45.0, help="seconds that the daemon runs without it"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, local_server() as postgres:
        measure(Path(folder), postgres.url, options.calls, options.sessions, options.away)
    return 0


def measure(folder: Path, database: str, calls: int, sessions: int, away_s: float) -> None:
    token, port = new_token(database), ReservedPort()
    daemon = LinkedDaemon(folder / "machine", f"http://127.0.0.1:{port.number}", token)
    asyncio.run(_fill(daemon.state / "brimline.db", calls // sessions, sessions))
    daemon.start()
    server: FleetProcess | None = None
    try:
        time.sleep(away_s)
        before = daemon.get("/v1/daemon")["uplink"]
        print(f"without the server: {before['behind']:,} sessions behind, {before['problem']}")
        server = FleetProcess(database, folder, listen=f"127.0.0.1:{port.number}")
        began = time.monotonic()
        assert daemon.process is not None
        processes = [psutil.Process(each.pid) for each in (daemon.process, server.process)]
        before_s = [cpu_seconds(each) for each in processes]
        first_s = 0.0
        while (status := daemon.get("/v1/daemon")["uplink"])["behind"]:
            assert time.monotonic() - began < MAX_WAIT_S, status
            first_s = first_s or (time.monotonic() - began if status["batches"] else 0.0)
            time.sleep(0.1)
        took_s = time.monotonic() - began
        pairs = zip(processes, before_s, strict=True)
        machine_s, server_s = (cpu_seconds(each) - used_s for each, used_s in pairs)
        _check(database, calls // sessions, sessions)
        sent = status["sent_bytes"]
        print(f"{calls:,} calls of {sessions:,} sessions arrived {took_s:.1f} s after the start")
        print(f"the first batch after {first_s:.1f} s; {status['batches']} batches")
        print(f"{sent:,} bytes sent, {sent / calls:.1f} per call")
        print(f"CPU: machine {machine_s:.1f} s, server {server_s:.1f} s")
        copy_s = calls / asyncio.run(copy_rate(database, calls // status["batches"], calls))
        print(f"a bare COPY of the same rows: {copy_s:.1f} s, ratio {took_s / copy_s:.1f}")
    finally:
        daemon.close()
        if server is not None:
            server.close()


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
