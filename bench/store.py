"""Opening a store with the check of its content, compared with opening it without."""

import argparse
import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite.connections import CHECK_BUDGET_S, connect, prepare

ROW_BYTES = 125  # what a row of FILL takes in the file
FILL = """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO calls
    (session, thread, call, seq, cycle, input, cache_read, cache_write, output, model, at)
SELECT printf('%08d-0000-4000-8000-000000000000', n / 500), 'main', printf('msg_%024d', n), n, 0, 3,
    90000, 900, 700, 'claude-opus-4-5', 1e9 FROM numbers"""


def fill_calls(path: Path, megabytes: int) -> None:
    prepare(path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(FILL, (megabytes * (1 << 20) // ROW_BYTES,))


async def open_s(path: Path, check_budget_s: float) -> float:
    """Return how long opening a store takes, in seconds."""
    start = time.perf_counter()
    store = await SqliteStore.open(path, check_budget_s)
    seconds = time.perf_counter() - start
    await store.close()
    return seconds


async def whole_check_s(path: Path) -> float:
    """Return how long the check takes without a limit of its time, in seconds."""
    store = await SqliteStore.open(path, 0.0)
    start = time.perf_counter()
    await store.check_content()
    seconds = time.perf_counter() - start
    await store.close()
    return seconds


def measure(path: Path, rounds: int) -> str:
    """Open a store with and without the check, in turn; return its row."""
    checked: list[float] = []
    unchecked: list[float] = []
    for _ in range(rounds):
        checked.append(asyncio.run(open_s(path, CHECK_BUDGET_S)))
        unchecked.append(asyncio.run(open_s(path, 0.0)))
    ours, bare = (1e3 * statistics.median(times) for times in (checked, unchecked))
    name = f"{path.stat().st_size / (1 << 20):,.0f} MB"
    whole = asyncio.run(whole_check_s(path))
    return f"{name:24}{ours:9.0f}{bare:7.0f}{ours / bare:8.1f}{whole:17.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk to measure")
    parser.add_argument("--mb", type=int, nargs="*", default=[10, 200], help="of each store")
    options = parser.parse_args()
    print(f"sqlite {sqlite3.sqlite_version}, {os.cpu_count()} cores, {options.rounds} rounds\n")
    print(f"{'ms to open a store':24}{'checked':>9}{'not':>7}{'ratio':>8}{'whole check, s':>17}")
    for megabytes in options.mb:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / "brimline.db"
            fill_calls(path, megabytes)
            print(measure(path, options.rounds), flush=True)


if __name__ == "__main__":
    main()
