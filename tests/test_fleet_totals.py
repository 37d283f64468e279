"""A fleet's server has the sums of its machines' reports, to the cent, after each fault.

`make trust ROW=clients` compares the sessions of a corpus of transcripts too, if there is one.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from math import fsum
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from brimline.store.postgres import open_database
from fleet_server import MAX_WAIT_S, new_token
from server.fleet.test_equal_costs import add_own, add_real
from server.running import Running
from server.test_surfaces import CORPUS
from sessions.machine import call, packed
from system_programs import give_up
from test_fleet_operation import Site, blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOKENS = ("input", "cache_read", "cache_write", "output")
SHARED = "shared-session"  # three machines go on with it
HOUR_S = 3_600.0
AHEAD_S = 2 * HOUR_S
CLOCK_AHEAD = f"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now)
{{
    long failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME)
        now->tv_sec += {AHEAD_S:.0f};
    return failed;
}}
"""

Sums: TypeAlias = dict[tuple[str, str], float]
"""Figures by agent and name."""


class Reporter(Running):
    """A machine whose daemon reports to a site."""

    def __init__(self, folder: Path, connection: dict[str, str]) -> None:
        super().__init__(folder)
        self._connection = connection
        self._clock: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | self._connection | self._clock

    def set_clock(self, library: Path | None) -> None:
        """Restart the daemon with a library that has another clock, or without one."""
        assert self.stop() == 0
        self._clock = {} if library is None else {"LD_PRELOAD": str(library)}
        self.start()

    def add_calls(self, session: str, *calls: str, ago_s: float) -> None:
        """Append calls of a second each to a session's transcript."""
        path = self.home / ".claude" / "projects" / "-totals" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            for number, id in enumerate(calls):
                at = datetime.fromtimestamp(time.time() - ago_s + number, UTC)
                line = json.loads(call(f"{session}-{id}", 100_000 + 1_000 * number))
                line |= {"sessionId": session, "timestamp": at.isoformat()}
                file.write(packed(line))

    def sums(self) -> Sums:
        done = self.answered("report", "--by", "agent", "--json")
        assert done.returncode == 0, done.stderr
        return read_sums(json.loads(done.stdout)["lines"], lambda line: line["usage"])


def read_sums(lines: Iterable[Any], usage_of: Callable[[Any], Any]) -> Sums:
    """Return the figures of each agent's line that are not 0."""
    sums: Sums = {}
    for line in lines:
        figures = {"calls": line["calls"], "cost": line["cost"]}
        figures |= {name: usage_of(line)[name] for name in TOKENS}
        sums |= {(line["key"], name): figure for name, figure in figures.items() if figure}
    return sums


def add(sums: Iterable[Sums]) -> Sums:
    total: defaultdict[tuple[str, str], float] = defaultdict(float)
    for each in sums:
        for key, figure in each.items():
            total[key] += figure
    return dict(total)


def subtract(sums: Sums, other: Sums) -> Sums:
    return add([sums, {key: -figure for key, figure in other.items()}])


class TestedFleet:
    """A site and its machines; what a copied home has is in the reports of two of them."""

    __test__ = False

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.site = Site(folder, stack)
        self._token = new_token(self.site.database)
        self._folder, self._stack = folder, stack
        self.machines = [self.add_machine(name) for name in ("ada", "ben", "eve")]
        self._twice: Sums = {}

    def add_machine(self, name: str) -> Reporter:
        machine = Reporter(self._folder / name, self.site.connect(self._token))
        self._stack.callback(machine.close)
        return machine

    def copy_home(self, machine: Reporter, name: str) -> Reporter:
        """Copy a home with all that is in it to another machine."""
        assert machine.stop() == 0
        shutil.copytree(machine.folder, self._folder / name)
        copy = self.add_machine(name)
        self._twice = add([self._twice, machine.sums()])
        for each in (machine, copy):
            each.start()
        self.machines.append(copy)
        return copy

    def check(self, fault: str) -> None:
        """Wait until the server has the sums of all reports; fail if it does not get them."""
        reported = subtract(add(each.sums() for each in self.machines), self._twice)
        cost = fsum(figure for (_, name), figure in reported.items() if name == "cost")
        expected = {key: to_the_cent(figure) for key, figure in reported.items()}
        end = time.monotonic() + MAX_WAIT_S
        while (shown := self._shown()) != expected or self._listed_cost() != to_the_cent(cost):
            differences = {key: (shown.get(key), reported.get(key)) for key in shown | reported}
            uplinks = [each.get("/v1/daemon")["uplink"] for each in self.machines]
            assert time.monotonic() < end, (fault, differences, self._listed_cost(), cost, uplinks)
            time.sleep(0.2)

    def _shown(self) -> Sums:
        """Return the sums of all days, and of tomorrow, where a clock may be."""
        asyncio.run(update_sums(self.site.database))
        last = datetime.now(UTC).date() + timedelta(days=1)
        path = f"/v1/fleet/usage?by=agent&from={last - timedelta(days=3_000)}&to={last}"
        usage: Any = self.site.proxy.get(path, self._token)
        return read_sums(usage["groups"], lambda group: group)

    def _listed_cost(self) -> float:
        """Return the sum of the costs in the list of sessions."""
        views: Any = self.site.proxy.get("/v1/sessions", self._token)
        return fsum(view["cost"] or 0.0 for view in views)


def to_the_cent(figure: float) -> Any:
    return pytest.approx(figure, rel=0, abs=0.005)


async def update_sums(url: str) -> None:
    """Sum what changed, as each replica does every 20 s."""
    database = await open_database(url)
    try:
        await database.session_sums("default").update()
    finally:
        await database.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[TestedFleet]:
    with ExitStack() as stack:
        yield TestedFleet(tmp_path, stack)


@pytest.fixture(scope="session")
def clock_ahead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that sets the clock of a program two hours ahead."""
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if compiler is None or sys.platform != "linux":
        give_up("the clock of a daemon is set with a C compiler, on Linux")
    folder = tmp_path_factory.mktemp("clock")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK_AHEAD)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


@pytest.mark.parametrize(
    "add_sessions",
    [
        pytest.param(add_own, id="fixtures"),
        pytest.param(add_real, id="corpus", marks=pytest.mark.long),
    ],
)
def test_server_has_the_sums_of_all_reports_after_each_fault(
    fleet: TestedFleet, add_sessions: Callable[[Path], None], clock_ahead: Path
) -> None:
    """Each machine goes on with one session, and has a part of its calls."""
    if add_sessions is add_real and not CORPUS:
        pytest.skip("BRIMLINE_CORPUS names no corpus")
    ada, ben, eve = fleet.machines
    add_sessions(ada.home)
    for number, machine in enumerate(fleet.machines):
        machine.add_calls(SHARED, f"{number}-a", f"{number}-b", ago_s=number * 30 * HOUR_S)
        machine.add_calls(f"own-{number}", "a", "b", "c", ago_s=10)
        machine.start()
    fleet.check("first report")
    [dump, restore] = blocks("Back up and restore")
    fleet.site.operator.follow(dump)

    for number, machine in enumerate(fleet.machines):
        machine.add_calls(SHARED, f"{number}-c", ago_s=number * 5 * HOUR_S)
        machine.add_calls(f"killed-{number}", *map(str, range(300)), ago_s=HOUR_S)
    ada.kill()
    fleet.site.crash()
    ada.start()
    fleet.check("kill")

    ben.set_clock(clock_ahead)
    ben.add_calls(SHARED, "ahead", ago_s=-AHEAD_S)
    ben.add_calls("clock", "ahead", ago_s=-AHEAD_S)
    fleet.check("clock two hours ahead")
    ben.set_clock(None)
    ben.add_calls(SHARED, "back", ago_s=0)
    ben.add_calls("clock", "back", ago_s=0)
    fleet.check("clock set back")

    copy = fleet.copy_home(ada, "copy")
    for name, machine in (("ada", ada), ("copy", copy)):
        machine.add_calls(SHARED, f"{name}-d", ago_s=60)
        machine.add_calls("own-0", f"{name}-d", ago_s=60)
        machine.add_calls(f"after-copy-{name}", "a", ago_s=60)
    fleet.check("copied home")

    fleet.site.stop()
    fleet.site.operator.follow(restore)
    fleet.site.start()
    fleet.site.proxy.wait_for_replicas()
    eve.add_calls(SHARED, "restored", ago_s=0)
    fleet.check("restore")
