"""A fleet's server under load: two replicas on one PostgreSQL, compared with a bare COPY.

Machines post uplink batches, programs post events; each sends its next request when the last one is
acknowledged. `--chaos` kills a replica every 20 seconds and restarts PostgreSQL once.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import asyncpg

from fleet_load import Outcome, Post, Sender, machine_posts, program_posts
from fleet_servers import ORGANISATION, Fleet, create_token, running_fleet

KILL_INTERVAL_S = 20.0
MIN_COPY_RATIO = 0.5
REPLICAS = 2

DATABASE_SIZE = "SELECT pg_database_size(current_database())"
# Counts the calls that were acknowledged and are stored. Ids are ordered as their numbers.
STORED = """
SELECT count(*) FROM calls JOIN unnest($2::text[], $3::text[]) AS ends(session, before)
    ON calls.session = ends.session AND calls.call < ends.before COLLATE "C"
WHERE organisation = $1
"""


@dataclass(frozen=True)
class Options:
    """What is sent, and for how long."""

    seconds: float
    machines: int
    sessions: int
    programs: int
    calls: int
    chaos: bool


@dataclass(frozen=True)
class Figures:
    """What a run took."""

    outcome: Outcome
    events: int
    seconds: float
    server_cpu_s: float
    database_cpu_s: float | None
    bytes: int

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class Load:
    """The senders, which go on where `run` has left them."""

    def __init__(self, fleet: Fleet, token: str, options: Options) -> None:
        self._fleet, self._options, self.outcome = fleet, options, Outcome()
        posts = [machine_posts(n, options.sessions, options.calls) for n in range(options.machines)]
        posts += [program_posts(n, options.calls) for n in range(options.programs)]
        self._senders = [
            (Sender(fleet.ports, place, token, self.outcome), each)
            for place, each in enumerate(posts)
        ]

    async def warm_up(self) -> None:
        """Send the first request of each session, which costs more than the others."""
        count = self._options.sessions
        await asyncio.gather(*(one.run(islice(posts, count)) for one, posts in self._senders))
        self.outcome.seconds.clear()

    async def run(self) -> None:
        """Send until the time is over; every request is acknowledged before its sender stops."""
        options, deadline = self._options, time.monotonic() + self._options.seconds
        chaos = asyncio.create_task(cause_chaos(self._fleet, options)) if options.chaos else None
        posted = (_until(deadline, posts) for _, posts in self._senders)
        senders = (one for one, _ in self._senders)
        await asyncio.gather(*(one.run(posts) for one, posts in zip(senders, posted, strict=True)))
        if chaos is not None:
            await chaos


def _until(deadline: float, posts: Iterator[Post]) -> Iterator[Post]:
    while time.monotonic() < deadline:
        yield next(posts)


async def cause_chaos(fleet: Fleet, options: Options) -> None:
    """Kill replicas in turn, and restart PostgreSQL in the middle."""
    kills = max(1, int(options.seconds / KILL_INTERVAL_S))
    for number in range(kills):
        await asyncio.sleep(min(KILL_INTERVAL_S, options.seconds / (kills + 1)))
        if number == kills // 2:
            await asyncio.to_thread(_restart_database, fleet)
        replica = fleet.replicas[number % len(fleet.replicas)]
        replica.kill_and_restart()
        await asyncio.to_thread(replica.wait_until_ready)


def _restart_database(fleet: Fleet) -> None:
    fleet.database.crash()
    fleet.database.start()


async def measure(fleet: Fleet, token: str, options: Options) -> Figures:
    load = Load(fleet, token, options)
    await load.warm_up()
    before = load.outcome.events
    size = await _query(fleet.database.url, DATABASE_SIZE)
    server_cpu_s, database_cpu_s = fleet.server_cpu_s, fleet.database_cpu_s
    start = time.perf_counter()
    await load.run()
    return Figures(
        outcome=load.outcome,
        events=load.outcome.events - before,
        seconds=time.perf_counter() - start,
        server_cpu_s=fleet.server_cpu_s - server_cpu_s,
        # A database that was restarted has only the CPU time since then.
        database_cpu_s=None if options.chaos else fleet.database_cpu_s - database_cpu_s,
        bytes=await _query(fleet.database.url, DATABASE_SIZE) - size,
    )


async def count_lost(url: str, outcome: Outcome) -> int:
    """Return how many acknowledged calls are not in the database."""
    ends = [f"msg_{calls:012}" for calls in outcome.acknowledged.values()]
    stored = await _query(url, STORED, ORGANISATION, list(outcome.acknowledged), ends)
    return outcome.events - stored


async def _query(url: str, statement: str, *values: object) -> int:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement, *values)
    finally:
        await connection.close()


async def bare_rates(url: str, calls: int, limit: int) -> dict[str, float]:
    """Rows a second of the same rows by COPY and by INSERT, over as many connections."""
    connections = [await asyncpg.connect(url) for _ in range(REPLICAS)]
    first = connections[0]
    rows = await first.fetch("SELECT * FROM calls LIMIT $1", limit)
    columns = list(rows[0].keys())
    marks = ", ".join(f"${place + 1}" for place in range(len(columns)))
    insert = f"INSERT INTO bare VALUES ({marks})"

    def copy(connection: Any, part: Sequence[Any]) -> Any:
        return connection.copy_records_to_table("bare", records=part, columns=columns)

    def insert_each(connection: Any, part: Sequence[Any]) -> Any:
        return connection.execute(insert, *part[0])

    rates: dict[str, float] = {}
    cases: list[tuple[str, int, Callable[[Any, Sequence[Any]], Any]]] = [
        ("COPY, as many rows as a request", calls, copy),
        ("COPY, 10,000 rows", 10_000, copy),
        ("INSERT, one row", 1, insert_each),
    ]
    for name, size, write in cases:
        await first.execute("DROP TABLE IF EXISTS bare")
        await first.execute("CREATE TABLE bare (LIKE calls INCLUDING ALL)")
        few = [tuple(row) for row in rows[: limit // 10 if size == 1 else limit]]
        parts = (few[start : start + size] for start in range(0, len(few), size))
        start = time.perf_counter()
        await asyncio.gather(*(_write_parts(each, parts, write) for each in connections))
        rates[name] = len(few) / (time.perf_counter() - start)
    await first.execute("DROP TABLE bare")
    for connection in connections:
        await connection.close()
    return rates


async def _write_parts(
    connection: Any, parts: Iterator[Sequence[Any]], write: Callable[[Any, Sequence[Any]], Any]
) -> None:
    for part in parts:
        await write(connection, part)


def print_figures(figures: Figures, lost: int) -> None:
    events = figures.events
    print(f"{events:,} events in {figures.seconds:.1f} s: {figures.rate:,.0f} a second")
    for path, seconds in figures.outcome.seconds.items():
        cuts = statistics.quantiles(seconds, n=100)
        times = f"p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
        print(f"  {path}: {len(seconds):,} requests, {times}")
    print(f"  CPU per event, servers: {figures.server_cpu_s / events * 1e6:.0f} us")
    if figures.database_cpu_s is not None:
        print(f"  CPU per event, PostgreSQL: {figures.database_cpu_s / events * 1e6:.0f} us")
    print(f"  bytes per event in the database: {figures.bytes / events:.0f}")
    print(f"  retried requests: {figures.outcome.retries:,}; acknowledged and lost: {lost}")


def run(options: Options, copy_rows: int) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="brimline-bench-") as folder,
        running_fleet(Path(folder), REPLICAS) as fleet,
    ):
        token = create_token(fleet.database.url, "ingest")
        figures = asyncio.run(measure(fleet, token, options))
        lost = asyncio.run(count_lost(fleet.database.url, figures.outcome))
        print_figures(figures, lost)
        if not options.chaos:
            rows = min(copy_rows, figures.outcome.events)
            rates = asyncio.run(bare_rates(fleet.database.url, options.calls, rows))
            for name, rate in rates.items():
                print(f"  bare {name}: {rate:,.0f} a second, ratio {figures.rate / rate:.2f}")
    return 1 if lost else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--machines", type=int, default=32, help="that post uplink batches")
    parser.add_argument("--sessions", type=int, default=4, help="of each machine")
    parser.add_argument("--programs", type=int, default=4, help="that post events")
    parser.add_argument("--calls", type=int, default=50, help="in each request")
    parser.add_argument("--chaos", action="store_true", help="kill replicas, restart PostgreSQL")
    parser.add_argument("--copy-rows", type=int, default=200_000, help="of the bare COPY")
    args = vars(parser.parse_args())
    copy_rows = args.pop("copy_rows")
    return run(Options(**args), copy_rows)


if __name__ == "__main__":
    raise SystemExit(main())
