"""A day of many agents at speed: their calls and compactions, as uplink batches, in order of time.

Each agent has its own machine and works for some hours, with pauses between its calls as in real
sessions. A batch has the calls of `--tick` seconds instead of 2, because a day is simulated in
minutes: that is what is cut. `--agents` and `--hours` make a smaller day.
"""

import argparse
import asyncio
import math
import random
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from msgspec.structs import replace

from brimline.store.rows import CompactionRow
from fleet_load import Outcome, Post, Sender, session_part, uplink_post
from fleet_servers import Fleet, create_token, running_fleet

# Real sessions: scripts/capacity.py says how they were measured.
MEDIAN_PAUSE_S, MEAN_PAUSE_S = 7.9, 3_600 / 153
SIGMA = math.sqrt(2 * math.log(MEAN_PAUSE_S / MEDIAN_PAUSE_S))  # of a log-normal distribution
CALLS_PER_CYCLE = 98  # 147,000 tokens to the limit, 1,500 with each call
SESSION_CALLS = 300  # then the agent starts another session
CONNECTIONS = 16
REPLICAS = 2
VIEWS = 20


@dataclass
class Agent:
    """Where an agent is in its day."""

    number: int
    next_at: float
    sessions: int = 0
    calls: int = 0

    @property
    def session(self) -> str:
        return f"{self.number:08}-{self.sessions:04}-4000-8000-000000000000"


def day_posts(agents: int, hours: float, tick_s: float, start: float) -> Iterator[Post]:
    """The batches of a day that ends now, tick by tick."""
    rng = random.Random(20261117)
    working = [Agent(n, rng.uniform(0, MEAN_PAUSE_S)) for n in range(agents)]
    for tick in range(1, math.ceil(hours * 3_600 / tick_s) + 1):
        for agent in working:
            if agent.next_at < tick * tick_s:
                yield _batch(agent, tick * tick_s, start, rng)


def _batch(agent: Agent, until: float, start: float, rng: random.Random) -> Post:
    first, at = agent.calls, agent.next_at
    while agent.next_at < until:
        at = agent.next_at
        agent.calls += 1
        agent.next_at += rng.lognormvariate(math.log(MEDIAN_PAUSE_S), SIGMA)
    part = session_part(agent.session, first, agent.calls - first, start + at)
    ended = agent.calls // CALLS_PER_CYCLE
    if ended > first // CALLS_PER_CYCLE:
        compaction = CompactionRow(agent.session, "main", ended - 1, start + at, "auto", 167_000)
        part = replace(part, compactions=[compaction])
    if agent.calls >= SESSION_CALLS:
        agent.sessions, agent.calls = agent.sessions + 1, 0
    return uplink_post(f"machine-{agent.number:05}", [part])


async def send_day(fleet: Fleet, token: str, posts: Iterator[Post]) -> Outcome:
    outcome = Outcome()
    senders = [Sender(fleet.ports, place, token, outcome) for place in range(CONNECTIONS)]
    await asyncio.gather(*(sender.run(posts) for sender in senders))
    return outcome


async def database_bytes(url: str) -> dict[str, int]:
    """The bytes of the calls, and of the whole database."""
    connection = await asyncpg.connect(url)
    try:
        calls = await connection.fetchval(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('calls')"
        )
        whole = await connection.fetchval("SELECT pg_database_size(current_database())")
    finally:
        await connection.close()
    return {"calls": int(calls), "all": whole}


def view_seconds(port: int, token: str) -> list[float]:
    """How long the fleet view takes at the end of the day."""
    times: list[float] = []
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/fleet?by=team", headers={"Authorization": f"Bearer {token}"}
    )
    for _ in range(VIEWS):
        start = time.perf_counter()
        urllib.request.urlopen(request, timeout=60).read()
        times.append(time.perf_counter() - start)
    return times


def run(agents: int, hours: float, tick_s: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="brimline-bench-") as folder,
        running_fleet(Path(folder), REPLICAS) as fleet,
    ):
        token = create_token(fleet.database.url, "ingest", "read")
        before = asyncio.run(database_bytes(fleet.database.url))["all"]
        start = time.perf_counter()
        posts = day_posts(agents, hours, tick_s, time.time() - hours * 3_600)
        outcome = asyncio.run(send_day(fleet, token, posts))
        seconds = time.perf_counter() - start
        size = asyncio.run(database_bytes(fleet.database.url))
        calls, [times] = outcome.events, outcome.seconds.values()
        print(f"{agents:,} agents, {hours:g} h each, batches of {tick_s:g} s")
        print(f"{calls:,} calls of {len(outcome.acknowledged):,} sessions in {seconds:,.0f} s:")
        print(f"  {hours * 3_600 / seconds:.1f} x the speed of the day")
        print(f"  {calls / seconds:,.0f} calls and {len(times) / seconds:,.0f} requests a second")
        print(
            f"  CPU: servers {fleet.server_cpu_s:,.0f} s, PostgreSQL {fleet.database_cpu_s:,.0f} s"
        )
        print(f"  request p99 {statistics.quantiles(times, n=100)[98] * 1e3:,.0f} ms")
        print(f"  {size['calls'] / calls:.0f} bytes a call in the table of calls")
        print(f"  {(size['all'] - before) / calls:.0f} bytes a call in the whole database")
        views = view_seconds(fleet.ports[0], token)
        print(f"  fleet view: median {statistics.median(views) * 1e3:,.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--hours", type=float, default=8.0, help="that each agent works")
    parser.add_argument("--tick", type=float, default=600.0, help="seconds of a batch")
    options = parser.parse_args()
    run(options.agents, options.hours, options.tick)


if __name__ == "__main__":
    main()
