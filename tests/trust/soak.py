"""A daemon under a steady load for long: memory and descriptors stay the same, no call is missing.

Four in five sessions are those of Claude Code: a call is written into a transcript, then a hook
asks the daemon. One in five is a program that posts its calls. All are compacted again and again,
while dashboards open, read the stream and close.
"""

import http.client
import json
import random
import select
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from server.running import MAX_WAIT_S, Running

from .row import RowResult

SEED = 1
SESSIONS, SENDERS, PAGES = 20, 4, 5
PUSHED_PART = 5  # one in so many sessions has no transcript
CALLS_OF_CYCLE = 800  # each compaction reads the whole transcript for a draft
MAX_TEXT_BYTES = 3_000  # of a call in a transcript
MAX_PAGE_S = 15.0  # that a dashboard stays open
POLL_S = 0.2
SETTLE_S = 2.0  # after which the daemon has closed what its clients have closed
OPENING_S = 3.0  # of load, before descriptors are counted for the first time
SAMPLE_EVERY_S = 1.0
REPORT_EVERY_S = 60.0
WARM_UP = 1 / 3  # of the time: threads, caches and the allocator fill up
MIN_SLOPE_S = 600.0  # a shorter run shows no slope


class Session(Protocol):
    """A session that makes calls; counts what the store must have of it."""

    id: str
    calls: int

    def make_call(self) -> None:
        """Make the next call, and report it to the daemon."""
        ...


class HookedSession:
    """A session of Claude Code: its transcript grows, and its hooks ask the daemon."""

    def __init__(self, number: int, daemon: Running, rng: random.Random) -> None:
        self.id, self.calls = f"hooked-{number}", 0
        self._daemon, self._rng = daemon, rng
        self._path = daemon.home / ".claude" / "projects" / "-project" / f"{self.id}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def make_call(self) -> None:
        place = self.calls % CALLS_OF_CYCLE
        if self.calls and place == 0:
            self._hook("PreCompact", trigger="auto")
            content = {"trigger": "auto", "preTokens": 180_000}
            self._write("system", subtype="compact_boundary", compactMetadata=content)
            self._hook("SessionStart", source="compact")
        usage = {"input_tokens": 4, "cache_read_input_tokens": 20_000 + 200 * place}
        text = "x" * self._rng.randrange(MAX_TEXT_BYTES)
        message = {
            "id": f"{self.id}-{self.calls}",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": text}],
            "usage": {**usage, "output_tokens": 9},
        }
        self._write("assistant", message=message)
        self.calls += 1
        self._hook("UserPromptSubmit" if place % 10 == 0 else "PostToolUse")

    def _write(self, type: str, **more: object) -> None:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
        record = {"type": type, "sessionId": self.id, "version": "2.1.325", "timestamp": now}
        with self._path.open("a") as file:
            file.write(json.dumps({**record, **more}) + "\n")

    def _hook(self, event: str, **more: str) -> None:
        hook = {"session_id": self.id, "transcript_path": str(self._path), "cwd": "/project"}
        self._daemon.hook({**hook, "hook_event_name": event, **more})


class PushedSession:
    """A program built on an SDK: it posts its calls and compactions as events."""

    def __init__(self, number: int, daemon: Running) -> None:
        self.id, self.calls = f"pushed-{number}", 0
        self._daemon = daemon

    def make_call(self) -> None:
        place = self.calls % CALLS_OF_CYCLE
        if self.calls and place == 0:
            self._post("compacted", {"type": "Compacted", "at": time.time(), "trigger": "auto"})
        usage = {"input": 4, "cache_read": 20_000 + 200 * place, "cache_write": 0, "output": 9}
        call = {"type": "Call", "id": f"{self.id}-{self.calls}", "usage": usage}
        self._post("call", {**call, "at": time.time(), "model": "claude-sonnet-4-5"})
        self.calls += 1

    def _post(self, kind: str, event: dict[str, object]) -> None:
        pushed = {"id": f"{kind}-{self.calls}", "session": self.id, "agent": "sdk", "event": event}
        self._daemon.over_unix("POST", "/v1/events", {"events": [pushed]})


@dataclass
class Load:
    """Sessions and dashboards that use a daemon until they are told to end."""

    daemon: Running
    ended: threading.Event = field(default_factory=threading.Event)
    sessions: list[Session] = field(default_factory=list[Session])
    pages: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(SEED)
        self.sessions = [
            PushedSession(number, self.daemon)
            if number % PUSHED_PART == 0
            else HookedSession(number, self.daemon, rng)
            for number in range(SESSIONS)
        ]

    @property
    def calls(self) -> int:
        return sum(session.calls for session in self.sessions)

    @contextmanager
    def running(self, rate: float) -> Generator[None]:
        """Make calls at a rate in threads until the block ends; raise what went wrong in them."""
        self.ended.clear()
        with ThreadPoolExecutor(SENDERS + PAGES) as threads:
            work = [
                threads.submit(self._make_calls, self.sessions[number::SENDERS], rate / SENDERS)
                for number in range(SENDERS)
            ]
            work += [threads.submit(self._view_pages, number) for number in range(PAGES)]
            try:
                yield
            finally:
                self.ended.set()
            for each in work:
                each.result()

    def _make_calls(self, sessions: Sequence[Session], rate: float) -> None:
        begun, made = time.monotonic(), 0
        while not self.ended.wait(max(0.0, begun + made / rate - time.monotonic())):
            sessions[made % len(sessions)].make_call()
            made += 1

    def _view_pages(self, number: int) -> None:
        """Open one dashboard after the other: each reads all sessions, then their changes."""
        rng = random.Random(number)
        while not self.ended.is_set():
            end = time.monotonic() + rng.uniform(0, MAX_PAGE_S)
            page = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=MAX_WAIT_S)
            with closing(page):
                page.request("GET", "/v1/stream", headers=self.daemon.authorization)
                stream = page.getresponse()
                while time.monotonic() < end and not self.ended.is_set():
                    if select.select([page.sock], [], [], POLL_S)[0] and not stream.read1(1 << 16):
                        raise AssertionError("the daemon closed a stream")
            self.pages += 1


@dataclass
class Samples:
    """The resident memory of a process over time."""

    pid: int
    times: list[float] = field(default_factory=list[float])
    megabytes: list[float] = field(default_factory=list[float])

    def take(self, at: float) -> None:
        status = Path(f"/proc/{self.pid}/status").read_text()
        self.times.append(at)
        self.megabytes.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)

    def slope_an_hour(self, since: float) -> float:
        """The growth in MB an hour, by a line through the samples since a time."""
        pairs = [pair for pair in zip(self.times, self.megabytes, strict=True) if pair[0] >= since]
        middle = sum(at for at, _ in pairs) / len(pairs)
        mean = sum(megabytes for _, megabytes in pairs) / len(pairs)
        spread = sum((at - middle) ** 2 for at, _ in pairs)
        moved = sum((at - middle) * (megabytes - mean) for at, megabytes in pairs)
        return 3_600 * moved / spread if spread else 0.0


def open_descriptors(pid: int) -> int:
    """How many a process has open while nobody asks it."""
    time.sleep(SETTLE_S)
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def missing_calls(load: Load) -> list[str]:
    """What the store does not have, or has too often, after all is stored."""
    query = "SELECT session, count(*) FROM calls GROUP BY session"
    deadline = time.monotonic() + MAX_WAIT_S
    while True:
        with closing(sqlite3.connect(load.daemon.state / "brimline.db")) as store:
            stored = dict(store.execute(query))
        wrong = [
            f"{each.id}: {stored.get(each.id, 0):,} of {each.calls:,} calls"
            for each in load.sessions
            if stored.get(each.id, 0) != each.calls
        ]
        if not wrong or time.monotonic() > deadline:
            return wrong
        time.sleep(0.1)


def soak_daemon(folder: Path, rate: float, seconds: float) -> RowResult:
    """Run a load of hooks a second; memory is measured after the first third of the time."""
    if not Path("/proc/self/status").exists():
        return RowResult(skipped="there is no /proc here")
    daemon = Running(folder)
    daemon.start()
    try:
        assert daemon.process is not None
        load, samples = Load(daemon), Samples(daemon.process.pid)
        with load.running(rate):
            time.sleep(OPENING_S)
        before, first_calls = open_descriptors(samples.pid), load.calls
        with load.running(rate):
            begun, next_report = time.monotonic(), 0.0
            while (passed := time.monotonic() - begun) < seconds:
                samples.take(passed)
                if passed >= next_report:
                    next_report += REPORT_EVERY_S
                    megabytes = samples.megabytes[-1]
                    print(f"{passed:.0f} s: {load.calls:,} calls, {megabytes:.1f} MB", flush=True)
                time.sleep(SAMPLE_EVERY_S)
            real_rate = (load.calls - first_calls) / (time.monotonic() - begun)
        missing = missing_calls(load)
        gained = open_descriptors(samples.pid) - before
    finally:
        daemon.close()
    figures = {
        "minutes": round(seconds / 60, 1),
        "hooks per second": round(real_rate),
        "percent below the rate": max(0, round(100 - 100 * real_rate / rate)),
        "calls": load.calls,
        "dashboards": load.pages,
        "MB at the end": round(samples.megabytes[-1], 1),
        "MB per hour": round(samples.slope_an_hour(since=seconds * WARM_UP), 2),
        "descriptors gained": gained,
        "sessions with missing calls": len(missing),
    }
    most: dict[str, float] = {"descriptors gained": 0, "sessions with missing calls": 0}
    if seconds >= MIN_SLOPE_S:
        most |= {"percent below the rate": 10, "MB per hour": 1.0}
    return RowResult(figures, most, missing)
