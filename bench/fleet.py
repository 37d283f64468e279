"""A fleet's server under load: two replicas on one PostgreSQL, compared with a bare COPY.

Machines post uplink batches, programs post events; each sends its next request when the last one is
acknowledged. `--chaos` kills a replica every 20 seconds and restarts PostgreSQL once. `--day` sends
a day of many agents instead, as fast as the replicas take it.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import asyncpg

from fleet_load import Outcome, Post, Sender, day_posts, machine_posts, program_posts
from fleet_servers import ORGANISATION, Fleet, new_token, running_fleet

KILL_INTERVAL_S = 20.0
DAY_CONNECTIONS = 16
REPLICAS = 2

DATABASE_SIZE = "SELECT pg_database_size(current_database())"
# Counts the calls that were acknowledged and are stored. Ids are ordered as their numbers.
STORED = """
SELECT count(*) FROM calls JOIN unnest($2::text[], $3::text[]) AS ends(session, before)
    ON calls.session = ends.session AND calls.call < ends.before COLLATE "C"
WHERE organisation = $1
"""


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

    @property
    def events_per_request(self) -> int:
        requests = sum(map(len, self.outcome.seconds.values()))
        return max(1, round(self.events / requests))


class Load:
    """The senders, each with what it posts; they go on where they stopped."""

    def __init__(self, fleet: Fleet, token: str, posts: list[Iterator[Post]]) -> None:
        self.outcome = Outcome()
        self._senders = [
            (Sender(fleet.ports, place, token, self.outcome), each)
            for place, each in enumerate(posts)
        ]

    async def warm_up(self, requests: int) -> None:
        """Send the first requests, which cost more than the others."""
        await asyncio.gather(*(one.run(islice(posts, requests)) for one, posts in self._senders))
        self.outcome.seconds.clear()

    async def run(self, seconds: float) -> None:
        """Send until the time is over; every request is acknowledged before its sender stops."""
        end = time.monotonic() + seconds
        await asyncio.gather(*(one.run(_until(end, posts)) for one, posts in self._senders))


def _until(end: float, posts: Iterator[Post]) -> Iterator[Post]:
    while time.monotonic() < end and (post := next(posts, None)) is not None:
        yield post


async def cause_chaos(fleet: Fleet, seconds: float) -> None:
    """Kill replicas in turn, and restart PostgreSQL in the middle."""
    kills = max(1, int(seconds / KILL_INTERVAL_S))
    for number in range(kills):
        await asyncio.sleep(min(KILL_INTERVAL_S, seconds / (kills + 1)))
        if number == kills // 2:
            await asyncio.to_thread(_restart_database, fleet)
        replica = fleet.replicas[number % len(fleet.replicas)]
        replica.kill_and_restart()
        await asyncio.to_thread(replica.wait_until_ready)


def _restart_database(fleet: Fleet) -> None:
    fleet.database.crash()
    fleet.database.start()


async def measure(fleet: Fleet, token: str, options: argparse.Namespace) -> Figures:
    load = Load(fleet, token, posts_of(options))
    if not options.day:
        await load.warm_up(options.sessions)
    before = load.outcome.events
    size = await _query(fleet.database.url, DATABASE_SIZE)
    server_cpu_s, database_cpu_s = fleet.server_cpu_s, fleet.database_cpu_s
    start = time.perf_counter()
    sending = [load.run(float("inf") if options.day else options.seconds)]
    sending += [cause_chaos(fleet, options.seconds)] if options.chaos else []
    await asyncio.gather(*sending)
    return Figures(
        outcome=load.outcome,
        events=load.outcome.events - before,
        seconds=time.perf_counter() - start,
        server_cpu_s=fleet.server_cpu_s - server_cpu_s,
        # A database that was restarted has only the CPU time since then.
        database_cpu_s=None if options.chaos else fleet.database_cpu_s - database_cpu_s,
        bytes=await _query(fleet.database.url, DATABASE_SIZE) - size,
    )


def posts_of(options: argparse.Namespace) -> list[Iterator[Post]]:
    """What each sender posts; those of a day take the next batch from one list."""
    if options.day:
        return [day_posts(options.day, options.hours)] * DAY_CONNECTIONS
    calls = options.calls
    machines = [machine_posts(each, options.sessions, calls) for each in range(options.machines)]
    return machines + [program_posts(each, calls) for each in range(options.programs)]


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


async def copy_rate(url: str, batch: int, limit: int) -> float:
    """Rows a second of the same rows by COPY, `batch` in each transaction, from as many clients."""
    connections = [await asyncpg.connect(url) for _ in range(REPLICAS)]
    first = connections[0]
    await first.execute("CREATE TABLE bare (LIKE calls INCLUDING ALL)")
    rows = await first.fetch("SELECT * FROM calls LIMIT $1", limit)
    parts = (rows[start : start + batch] for start in range(0, len(rows), batch))

    async def copy_parts(connection: Any) -> None:
        for part in parts:
            await connection.copy_records_to_table("bare", records=part)

    start = time.perf_counter()
    await asyncio.gather(*map(copy_parts, connections))
    seconds = time.perf_counter() - start
    await first.execute("DROP TABLE bare")
    for connection in connections:
        await connection.close()
    return len(rows) / seconds


def print_figures(figures: Figures, lost: int) -> None:
    events = figures.events
    print(f"{events:,} events in {figures.seconds:.1f} s: {figures.rate:,.0f} a second")
    for path, seconds in figures.outcome.seconds.items():
        with suppress(statistics.StatisticsError):  # of a single request
            cuts = statistics.quantiles(seconds, n=100)
            times = f"p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
            print(f"  {path}: {len(seconds):,} requests, {times}")
    print(f"  CPU per event, servers: {figures.server_cpu_s / events * 1e6:.0f} us")
    if figures.database_cpu_s is not None:
        print(f"  CPU per event, PostgreSQL: {figures.database_cpu_s / events * 1e6:.0f} us")
    print(f"  bytes per event in the database: {figures.bytes / events:.0f}")
    print(f"  retried requests: {figures.outcome.retries:,}; acknowledged and lost: {lost}")


def run(options: argparse.Namespace) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="brimline-bench-") as folder,
        running_fleet(Path(folder), REPLICAS) as fleet,
    ):
        url = fleet.database.url
        figures = asyncio.run(measure(fleet, new_token(url, ORGANISATION), options))
        lost = asyncio.run(count_lost(url, figures.outcome))
        print_figures(figures, lost)
        if options.day:
            sessions, speed = len(figures.outcome.acknowledged), options.hours * 3_600
            print(f"  {sessions:,} sessions; {speed / figures.seconds:.1f} x as fast as the day")
        if not options.chaos:
            batch = figures.events_per_request
            rate = asyncio.run(copy_rate(url, batch, min(options.copy_rows, figures.events)))
            ratio = f"ratio {figures.rate / rate:.2f}"
            print(f"  bare COPY of {batch} rows at a time: {rate:,.0f} a second, {ratio}")
    return 1 if lost else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--machines", type=int, default=32, help="that post uplink batches")
    parser.add_argument("--sessions", type=int, default=4, help="of each machine")
    parser.add_argument("--programs", type=int, default=4, help="that post events")
    parser.add_argument("--calls", type=int, default=50, help="in each request")
    parser.add_argument("--chaos", action="store_true", help="kill replicas, restart PostgreSQL")
    parser.add_argument("--day", type=int, default=0, metavar="AGENTS", help="whose day is sent")
    parser.add_argument("--hours", type=float, default=8.0, help="that each agent works in a day")
    parser.add_argument("--copy-rows", type=int, default=200_000, help="of the bare COPY")
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
