"""Sessions that start at once without a daemon: the slowest hook, daemons, recorded sessions."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from brimline.files.socket_path import socket_path
from brimline.hooks.client import client

CLIENT = Path(client.__file__)
COMPILED = CLIENT.with_name("brimline-hook")
PYTHON = [sys.executable, "-I", "-S"]
MAX_WAIT_S = 60.0


@dataclass(frozen=True)
class Row:
    """A client, and a process that does nothing, its reference."""

    name: str
    command: Sequence[str]
    reference_name: str
    reference: Sequence[str]


ROWS = (
    Row(
        "brimline-hook",
        [str(COMPILED), sys.executable, str(CLIENT)],
        "sh -c true",
        ["/bin/sh", "-c", "true"],
    ),
    Row("client.py", [*PYTHON, str(CLIENT)], "python3 -I -S -c pass", [*PYTHON, "-c", "pass"]),
)


def run_at_once(
    command: Sequence[str], bodies: Sequence[bytes], env: dict[str, str]
) -> list[float]:
    """Run a command with each body at the same time; return how long each took, sorted, in ms."""
    barrier, times = threading.Barrier(len(bodies)), list[float]()

    def run(body: bytes) -> None:
        reader, writer = os.pipe()
        os.write(writer, body)
        os.close(writer)
        actions = [(os.POSIX_SPAWN_DUP2, reader, 0)]
        barrier.wait()
        begun = time.perf_counter()
        pid = os.posix_spawn(command[0], list(command), env, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        times.append(1000 * (time.perf_counter() - begun))
        os.close(reader)
        if status:
            raise SystemExit(f"bench: a hook ended with {os.waitstatus_to_exitcode(status)}")

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times)


def watch_daemons(state: Path, ended: threading.Event, seen: set[int]) -> None:
    """Add the process of each daemon of a state folder until an event, also one that ends soon."""
    while not ended.wait(0.01):
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended, or belongs to another user
                folder = process.environ().get("BRIMLINE_STATE_DIR")
                if folder == str(state) and "serve" in process.cmdline():
                    seen.add(process.pid)


def start_sessions(command: Sequence[str], count: int, folder: Path) -> tuple[list[float], str]:
    """Start sessions at once on a state folder without a daemon; return times and a summary."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "BRIMLINE_STATE_DIR": str(state)}
    words = ["start", "claude", str(socket_path(state, os.getuid())), str(state / "spool")]
    start = {"hook_event_name": "SessionStart", "source": "startup"}
    bodies = [json.dumps({"session_id": f"s{each}", **start}).encode() for each in range(count)]
    ended, seen = threading.Event(), set[int]()
    watcher = threading.Thread(target=watch_daemons, args=(state, ended, seen))
    watcher.start()
    times = run_at_once([*command, *words], bodies, env)
    end = time.monotonic() + MAX_WAIT_S
    while (recorded := count_sessions(state)) < count and time.monotonic() < end:
        time.sleep(0.1)
    ended.set()
    watcher.join()
    serve = [sys.executable, "-m", "brimline", "serve"]
    status = subprocess.run(
        [*serve, "--status", "--json"], env=env, capture_output=True, check=True
    )
    subprocess.run([*serve, "--stop"], env=env, capture_output=True, check=False)
    dropped = json.loads(status.stdout)["dropped"]
    return times, f"daemons {len(seen)}, recorded {recorded} of {count}, dropped {dropped}"


def count_sessions(state: Path) -> int:
    """How many sessions the store has, 0 while there is none."""
    try:
        with closing(sqlite3.connect(f"file:{state / 'brimline.db'}?mode=ro", uri=True)) as store:
            return int(store.execute("SELECT count(*) FROM sessions").fetchone()[0])
    except sqlite3.Error:
        return 0


def measure(row: Row, count: int) -> str:
    """Run the client and its reference once, and return a line."""
    with tempfile.TemporaryDirectory(prefix="brimline-") as folder:
        bare = run_at_once(row.reference, [b"{}"] * count, {"PATH": os.environ["PATH"]})
        ours, outcome = start_sessions(row.command, count, Path(folder))
    figures = f"{ours[-1]:8.0f}{ours[count // 2]:8.0f}{bare[-1]:10.0f}{ours[-1] / bare[-1]:7.2f}"
    return f"{row.name:14}{figures}  {row.reference_name}; {outcome}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hooks", type=int, default=50, help="sessions that start at once")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    head = f"{options.hooks} at once"
    print(f"{head:14}{'slowest':>8}{'median':>8}{'reference':>10}{'ratio':>7}, in ms")
    for row in ROWS:
        if not Path(row.command[0]).exists():
            print(f"{row.name:14} is not compiled")
            continue
        for _ in range(options.rounds):
            print(measure(row, options.hooks), flush=True)


if __name__ == "__main__":
    main()
