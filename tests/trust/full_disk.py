"""A disk that fills up at different points: accepted data is stored, hooks exit with 0, no damage.

At each point a daemon starts on a small disk with some free space. Calls are posted until it
refuses them; at every second point it is then killed. With space again, all of them are stored.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError

from hooks.agent import Agent
from server.running import MAX_WAIT_S, Running

from .hook_clients import client_commands
from .kills import USAGE
from .row import RowResult
from .small_disk import MountFailed, fill, small_disk

DISK_BYTES = 16 << 20
MAX_POSTS = 500  # until the disk must be full
HOOK_EVERY = 10  # posts
STATUS_WHEN_FULL = 503
SESSION = "pushed"


@dataclass
class Point:
    """One disk: what the daemon accepted and refused on it, and what went wrong."""

    daemon: Running
    posted: int = 0
    refused: list[int] = field(default_factory=list[int])
    problems: list[str] = field(default_factory=list[str])
    did_start: bool = True

    def run(self, filler: Path, is_killed: bool) -> None:
        """Use the daemon until the disk is full, then make space and use it again."""
        self._start_on_full_disk()
        if self.did_start:
            self._fill()
            if self.daemon.get("/healthz")["status"] != "ok":
                self.problems.append("the daemon is not healthy")
            if is_killed:
                self.daemon.kill()
        filler.unlink()
        if self.daemon.process is None:
            self.daemon.start()
        for number in self.refused or [self.posted]:
            self._post_until_accepted(number)
        self._run_hook()
        self._check_store()

    def _start_on_full_disk(self) -> None:
        try:
            self.daemon.start()
        except AssertionError as error:  # with what it printed
            self.did_start = False
            if "Traceback" in str(error):
                self.problems.append(str(error))

    def _fill(self) -> None:
        while not self.refused and self.posted < MAX_POSTS:
            if not self._accepts(self.posted):
                self.refused.append(self.posted)
            self.posted += 1
            if self.posted % HOOK_EVERY == 1:
                self._run_hook()
        if not self.refused:
            self.problems.append(f"the disk was not full after {MAX_POSTS} calls")
        self._run_hook()

    def _accepts(self, number: int) -> bool:
        event = {"type": "Call", "id": f"c{number}", "usage": USAGE}
        pushed = {"id": f"e{number}", "session": SESSION, "agent": "sdk", "event": event}
        try:
            self.daemon.post("/v1/events", {"events": [pushed]})
        except HTTPError as error:
            with error:
                if error.code != STATUS_WHEN_FULL:
                    self.problems.append(f"{error.code}: {error.read().decode()}")
            return False
        return True

    def _post_until_accepted(self, number: int) -> None:
        deadline = time.monotonic() + MAX_WAIT_S
        while not self._accepts(number):
            if time.monotonic() > deadline:
                self.problems.append("the daemon accepts nothing although there is space again")
                return
            time.sleep(0.1)
        self.posted = max(self.posted, number + 1)

    def _run_hook(self) -> None:
        for name, command in client_commands().items():
            agent = Agent(command, self.daemon.state, self.daemon.socket)
            body = b'{"session_id": "hooked", "hook_event_name": "Stop"}'
            result = agent.run(body)
            if result.code or result.stderr:
                self.problems.append(f"{name} client: {result.code}, {result.stderr!r}")

    def _check_store(self) -> None:
        """Every call is there, before and after a restart; nothing was moved aside."""
        for _ in range(2):
            with closing(sqlite3.connect(self.daemon.state / "brimline.db")) as store:
                query = "SELECT count(*) FROM calls WHERE session = ?"
                (stored,) = store.execute(query, (SESSION,)).fetchone()
                (state,) = store.execute("PRAGMA integrity_check").fetchone()
            if (stored, state) != (self.posted, "ok"):
                self.problems.append(f"stored {stored} of {self.posted} calls, the file is {state}")
            self.daemon.stop()
            self.daemon.start()
        self.problems += [
            f"moved aside: {path.name}" for path in self.daemon.state.glob("brimline.db.*-*")
        ]


def fill_disk(folder: Path, free_bytes: Sequence[int]) -> RowResult:
    """Fill a disk that has so many bytes left when the daemon starts, one point after the other."""
    points: list[Point] = []
    problems: list[str] = []
    for number, free in enumerate(free_bytes):
        try:
            with small_disk(folder / str(number), DISK_BYTES) as disk:
                point = Point(Running(disk))
                try:
                    point.run(fill(disk, free), is_killed=number % 2 == 1)
                finally:
                    point.daemon.close()
        except MountFailed as error:
            return RowResult(skipped=str(error))
        points.append(point)
        problems += [f"{free:,} bytes free: {problem}" for problem in point.problems]
        print(f"{free:,} bytes free: {point.posted} calls, {len(problems)} problems", flush=True)
    figures = {
        "points": len(points),
        "points at which no daemon started": sum(not point.did_start for point in points),
        "accepted calls": sum(point.posted for point in points),
        "problems": len(problems),
    }
    return RowResult(figures, {"problems": 0}, problems)
