"""Sessions that start at once without a daemon: daemons, recorded sessions, the slowest hook."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from brimline.hooks.client import client
from brimline.settings import socket_path

CLIENT = Path(client.__file__)
COMPILED = CLIENT.with_name("brimline-hook")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Result:
    """What came of one round; times in milliseconds."""

    slowest_ms: float
    median_ms: float
    daemons: int | None = None
    recorded: int | None = None
    dropped: int | None = None


def run_at_once(
    commands: Sequence[Sequence[str]], bodies: Sequence[bytes], env: dict[str, str]
) -> list[float]:
    """Run commands at the same time; returns how long each took, in milliseconds."""
    barrier = threading.Barrier(len(commands))
    times = [0.0] * len(commands)

    def run(place: int) -> None:
        reader, writer = os.pipe()
        os.write(writer, bodies[place])
        os.close(writer)
        barrier.wait()
        begun = time.perf_counter()
        pid = os.posix_spawn(
            commands[place][0],
            list(commands[place]),
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)],
        )
        _, status = os.waitpid(pid, 0)
        times[place] = 1000 * (time.perf_counter() - begun)
        os.close(reader)
        if status:
            raise SystemExit(f"bench: a hook ended with {os.waitstatus_to_exitcode(status)}")

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(commands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def daemons_of(state: Path) -> list[int]:
    """The processes that serve a state folder, by what /proc says of them."""
    found: list[int] = []
    wanted = f"BRIMLINE_STATE_DIR={state}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and wanted in variables:
            found.append(int(process.name))
    return found


def watch_daemons(state: Path, until: threading.Event) -> Iterator[int]:
    """Every daemon process that is seen until an event, also one that ends soon."""
    seen: set[int] = set()
    while not until.wait(0.01):
        for pid in daemons_of(state):
            if pid not in seen:
                seen.add(pid)
                yield pid


def sessions_in(state: Path) -> int:
    """How many sessions a store has."""
    try:
        with sqlite3.connect(f"file:{state / 'brimline.db'}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM sessions").fetchone()[0])
    except sqlite3.Error:
        return 0


def start_sessions(start: Sequence[str], count: int, folder: Path) -> Result:
    """Start sessions at once with a client, on a state folder without a daemon."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "BRIMLINE_STATE_DIR": str(state)}
    words = ["start", "claude", str(socket_path(state, os.getuid())), str(state / "spool")]
    bodies = [
        json.dumps(
            {"session_id": f"s{number}", "hook_event_name": "SessionStart", "source": "startup"}
        ).encode()
        for number in range(count)
    ]
    done, seen = threading.Event(), list[int]()
    watcher = threading.Thread(target=lambda: seen.extend(watch_daemons(state, done)))
    watcher.start()
    times = run_at_once([[*start, *words]] * count, bodies, env)
    end = time.monotonic() + PATIENCE_S
    while sessions_in(state) < count and time.monotonic() < end:
        time.sleep(0.1)
    done.set()
    watcher.join()
    command = [sys.executable, "-m", "brimline", "serve"]
    result = subprocess.run(
        [*command, "--status", "--json"], env=env, capture_output=True, check=False
    )
    status = json.loads(result.stdout)
    recorded = sessions_in(state)
    subprocess.run([*command, "--stop"], env=env, capture_output=True, check=False)
    return Result(
        max(times), sorted(times)[count // 2], len(set(seen)), recorded, status.get("dropped")
    )


def measure_reference(command: Sequence[str], count: int) -> Result:
    """Run a process that does nothing as often, in the same way."""
    times = run_at_once([command] * count, [b"{}"] * count, {"PATH": os.environ["PATH"]})
    return Result(max(times), sorted(times)[count // 2])


def main() -> int:
    """Print a row for each client, and for a process that does nothing beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hooks", type=int, default=50, help="sessions that start at once")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    python = [sys.executable, "-I", "-S"]
    rows = {
        "sh -c true": ["/bin/sh", "-c", "true"],
        "brimline-hook": [str(COMPILED), sys.executable, str(CLIENT)],
        "python3 -I -S -c pass": [*python, "-c", "pass"],
        "client.py": [*python, str(CLIENT)],
    }
    print(f"{options.hooks} at once, {options.rounds} rounds, the worst of them")
    print(f"{'':24}{'slowest ms':>11}{'median ms':>10}{'daemons':>9}{'recorded':>10}{'dropped':>9}")
    for name, command in rows.items():
        if not Path(command[0]).exists():
            print(f"{name:24}is not compiled")
            continue
        results: list[Result] = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="brimline-") as folder:
                ours = str(CLIENT) in command
                results.append(
                    start_sessions(command, options.hooks, Path(folder))
                    if ours
                    else measure_reference(command, options.hooks)
                )
        print(row(name, results))
    return 0


def row(name: str, results: Sequence[Result]) -> str:
    """The worst of each figure over all rounds."""
    slowest = max(result.slowest_ms for result in results)
    median = max(result.median_ms for result in results)
    if results[0].daemons is None:
        return f"{name:24}{slowest:11.0f}{median:10.0f}"
    daemons = max(result.daemons or 0 for result in results)
    recorded = min(result.recorded or 0 for result in results)
    dropped = max(result.dropped or 0 for result in results)
    return f"{name:24}{slowest:11.0f}{median:10.0f}{daemons:9}{recorded:10}{dropped:9}"


if __name__ == "__main__":
    sys.exit(main())
