"""What connections that misbehave cost the hooks: many idle ones, and a head of megabytes.

    python bench/connections.py --connections 1000

A hook is answered by a real daemon, alone first, then beside each kind of misbehaviour. Connections
of another user need root; without it that row is left out.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from brimline.daemon.sockets import read_port
from serving import Daemon, serving

OTHER_UID = 65_534
HEAD_BYTES = 40 << 20
PIECE = b"a" * (1 << 20)

IDLE = """
import encodings.idna, os, socket, sys
uid, port, count = map(int, sys.argv[1:])
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
held = []
for _ in range(count):
    connection = socket.socket()
    connection.settimeout(2)
    try:
        connection.connect(("127.0.0.1", port))
    except OSError:
        pass
    held.append(connection)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def idle_connections(port: int, count: int, uid: int) -> Generator[None]:
    """Hold connections open that send nothing; `uid` 0 is our own user."""
    words = [sys.executable, "-c", IDLE, str(uid), str(port), str(count)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        yield


def send_long_head(port: int) -> float:
    """Send a head of 40 MB as far as it is taken; the seconds until the daemon hangs up."""
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
            for _ in range(HEAD_BYTES // len(PIECE)):
                connection.sendall(PIECE)
            connection.recv(1)
        except OSError:
            pass
    return time.perf_counter() - begun


def hook_times(
    daemon: Daemon, rounds: int, beside: Callable[[], object] | None = None
) -> list[float]:
    """The milliseconds of each hook; something may be done beside each."""
    body = json.dumps(
        {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "cwd": "/", "prompt": "x"}
    ).encode()
    times: list[float] = []
    for _ in range(rounds):
        if beside is not None:
            beside()
        begun = time.perf_counter()
        daemon.ask("hook", body)
        times.append((time.perf_counter() - begun) * 1_000)
    return times


def show(name: str, times: list[float], daemon: Daemon) -> None:
    """Print a row: the hook's median and 99th percentile, and the daemon's open files."""
    late = statistics.quantiles(times, n=100)[98]
    files = len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))
    print(f"{name:44}{statistics.median(times):>9.2f}{late:>9.2f}{files:>12}", flush=True)


def measure(daemon: Daemon, connections: int, rounds: int) -> None:
    """Print a row for each kind of misbehaviour, the reference first and last."""
    port = read_port(daemon.state)
    assert port is not None
    hook_times(daemon, rounds)
    show("alone", hook_times(daemon, rounds), daemon)
    with idle_connections(port, connections, 0):
        show(f"{connections:,} idle connections of our user", hook_times(daemon, rounds), daemon)
    if os.geteuid() == 0:
        with idle_connections(port, connections, OTHER_UID):
            show(f"{connections:,} idle of another user", hook_times(daemon, rounds), daemon)
    heads: list[float] = []
    times = hook_times(daemon, 30, lambda: heads.append(send_long_head(port)))
    show("after a head of 40 MB each", times, daemon)
    print(f"{'  the head, until it was hung up on':44}{statistics.median(heads) * 1e3:>9.2f}")
    show("alone again", hook_times(daemon, rounds), daemon)


def main() -> int:
    """Measure one daemon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=500, help="hooks for each row")
    args = parser.parse_args()
    if not Path("/proc/self/fd").exists():
        print("bench: no /proc; connections are not measured")
        return 0
    print(f"{'a hook, ms':44}{'median':>9}{'p99':>9}{'open files':>12}")
    with tempfile.TemporaryDirectory() as work, serving(Path(work)) as daemon:
        measure(daemon, args.connections, args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
