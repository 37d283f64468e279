"""How many servers and databases a number of agents needs: the tables of docs/concepts/scale.md.

`python scripts/capacity.py --write` puts the tables into the page, `--check` fails if they differ.
`python scripts/capacity.py --pace DIR` measures the pace of real agents, in the transcripts that
DIR/truth.json names. The other constants are figures of bench/fleet.py.
"""

import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.sessions.target import load_target

PAGE = Path(__file__).parent.parent / "docs/concepts/scale.md"
BEGIN, END = "<!-- scripts/capacity.py writes this table -->\n", "<!-- end of the table -->\n"

# The pace of real agents (--pace): 4,827 calls in 31.6 hours of work, in 34 sessions. The median of
# these sessions is 180 calls an hour, one in ten makes 335 or more.
CALLS_PER_HOUR = 153
PEAK_FACTOR = 2.0
BREAK_S = 600.0  # a longer pause between two calls is no work
MIN_CALLS = 10
HOURS_PER_DAY = 8  # that an agent works
KEEP_DAYS = 30  # by the setting daemon.keep; its default is 90

POLL_INTERVAL_S = 30.0  # a machine without changes asks for messages this often
IDLE_MACHINES_PER_AGENT = 1.0  # machines that are on while no agent works there

# bench/fleet.py --programs 0 --sessions 2: microseconds of CPU per call, by calls in a request.
SERVER_US = {1: 670.0, 200: 21.0}
DATABASE_US = {1: 308.0, 200: 25.0}
BYTES_PER_CALL = 518  # bench/fleet.py --day 10000: in the whole database, with keys

# One database: a server of 16 cores that is busy by half, and 2 TB of disk.
DATABASE_CORES = 8.0
DATABASE_GB = 2_000
REPLICA_CORES = 0.5  # of a replica, which is one process: busy by half

COLUMNS = (
    "agents at work",
    "calls a second",
    "requests a second",
    "replicas",
    "cores of PostgreSQL",
    "bytes a day",
    "bytes in 30 days",
    "databases",
)
AGENTS = (100, 1_000, 10_000, 100_000, 1_000_000)


class Cost(NamedTuple):
    """Seconds of CPU of a request and of each call in it."""

    request_s: float
    call_s: float


class Capacity(NamedTuple):
    """What a number of agents that work at the same time needs, at the peak."""

    agents: int
    calls_per_s: float
    requests_per_s: float
    gb_per_day: float
    gb_kept: float
    replicas: int
    database_cores: float
    databases: int


def split_cost(us_per_call: dict[int, float]) -> Cost:
    """Return the costs of a request and of a call from those with few and many calls in one."""
    (few, cost_few), (many, cost_many) = sorted(us_per_call.items())
    request_us = (cost_few - cost_many) / (1 / few - 1 / many)
    return Cost(request_us / 1e6, (cost_few - request_us / few) / 1e6)


def compute_capacity(agents: int) -> Capacity:
    average = agents * CALLS_PER_HOUR / 3_600
    calls = average * PEAK_FACTOR
    # A machine reports a call within 2 seconds: one that comes alone has a request for itself.
    requests = calls + agents * IDLE_MACHINES_PER_AGENT / POLL_INTERVAL_S
    server, database = split_cost(SERVER_US), split_cost(DATABASE_US)
    server_cores = requests * server.request_s + calls * server.call_s
    database_cores = requests * database.request_s + calls * database.call_s
    gb_per_day = agents * CALLS_PER_HOUR * HOURS_PER_DAY * BYTES_PER_CALL / 1e9
    gb_kept = gb_per_day * KEEP_DAYS
    databases = max(database_cores / DATABASE_CORES, gb_kept / DATABASE_GB)
    replicas = max(2, math.ceil(server_cores / REPLICA_CORES))
    return Capacity(
        agents,
        calls,
        requests,
        gb_per_day,
        gb_kept,
        replicas,
        database_cores,
        math.ceil(databases),
    )


def table() -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", "|---:" * len(COLUMNS) + "|"]
    for each in map(compute_capacity, AGENTS):
        cells = [
            f"{each.agents:,}",
            f"{each.calls_per_s:,.0f}",
            f"{each.requests_per_s:,.0f}",
            f"{each.replicas:,}",
            f"{each.database_cores:,.1f}",
            format_gb(each.gb_per_day),
            format_gb(each.gb_kept),
            f"{each.databases:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_gb(gigabytes: float) -> str:
    if gigabytes >= 1_000:
        return f"{gigabytes / 1_000:.1f} TB"
    return f"{gigabytes:.0f} GB" if gigabytes >= 10 else f"{gigabytes:.2f} GB"


def with_table(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def call_times(folder: Path) -> Iterator[list[float]]:
    """The times of all calls of each session."""
    names = msgspec.json.decode((folder / "truth.json").read_bytes(), type=dict[str, object])
    for name in names:
        session = load_target(str(folder / name), Places(folder, {}), BytesIO()).session
        calls = (call for thread in session.threads.values() for call in thread.calls_from(0))
        yield sorted(call.at for call in calls if call.at is not None)


def print_pace(folder: Path) -> None:
    paces: list[float] = []
    pauses: list[float] = []
    calls = 0
    for times in call_times(folder):
        work = [b - a for a, b in pairwise(times) if b - a <= BREAK_S]
        if len(times) >= MIN_CALLS and sum(work) > BREAK_S / 4:
            calls += len(times)
            pauses += work
            paces.append(len(times) * 3_600 / sum(work))
    hours = sum(pauses) / 3_600
    print(f"{calls:,} calls in {hours:.1f} hours of work, {len(paces)} sessions")
    print(f"{calls / hours:.0f} calls an hour; median pause {statistics.median(pauses):.1f} s")
    deciles = statistics.quantiles(paces, n=10)
    print(f"sessions: median {statistics.median(paces):.0f}, upper tenth {deciles[-1]:.0f}")


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--pace"]:
        print_pace(Path(arguments[1]))
        return 0
    page = PAGE.read_text("utf-8")
    if arguments == ["--write"]:
        PAGE.write_text(with_table(page), "utf-8")
    elif arguments == ["--check"]:
        return 0 if with_table(page) == page else 1
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
