"""How a daemon's memory grows with calls: a steady load for minutes, beside an idle daemon."""

import argparse
import http.client
import os
import random
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from brimline.settings import socket_path
from prose import Prose
from records import Call, Ids, Lines, Tokens, uuid
from serving import Daemon, serving

SAMPLE_EVERY_S = 5.0
SETTLE_S = 3.0
"""The daemon has stored what the last hooks reported after this time."""

MAX_MB_AN_HOUR = 1.0
"""The target, for the second half of ten minutes."""

PUSHED_PART = 5
"""One in this many sessions is a program that posts its calls and has no transcript."""

PROMPT_EVERY, STOP_EVERY = 10, 25
"""After this many calls a hook is of a prompt or of the end of a turn; else of a tool."""

LIMIT, OPENING = 167_000, 18_000
"""When a session is compacted, and its size afterwards, in tokens."""

MODEL = "claude-opus-4-6"
PROJECT = "soak"


class Growth:
    """How many tokens each call of one session sends, and when it is compacted."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.sent = OPENING

    def next_tokens(self) -> Tokens:
        """The usage of the next call."""
        grown = 1 + int(self._rng.lognormvariate(6.5, 1.2))
        tokens = Tokens(4, grown, self.sent, 5 + int(self._rng.lognormvariate(5.5, 1.2)))
        self.sent += grown
        return tokens

    def is_full(self) -> bool:
        """Whether the session is compacted before its next call."""
        return self.sent > LIMIT

    def compact(self) -> None:
        """Leave a third of it."""
        self.sent //= 3


class Session(Protocol):
    """A session that makes calls; counts what the store must have of it."""

    id: str
    calls: int
    compactions: int

    def make_call(self, daemon: Daemon) -> None:
        """Make the next call, and send its hook or event."""
        ...


class HookedSession:
    """A session of Claude Code: its transcript grows, and its hooks ask the daemon."""

    def __init__(self, folder: Path, rng: random.Random, prose: Prose) -> None:
        self.id = uuid(rng)
        self.calls = self.compactions = 0
        self._path = folder / ".claude" / "projects" / f"-home-dev-{PROJECT}" / f"{self.id}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._rng = rng
        self._lines = Lines(rng, prose, Ids(self.id, None, PROJECT, new=True))
        self._growth = Growth(rng)

    def make_call(self, daemon: Daemon) -> None:
        """Write a call, and its copy, as the client does; then run a hook."""
        if self._growth.is_full():
            self._compact(daemon)
        call = Call(self._rng, MODEL, self._growth.next_tokens())
        output = call.tokens.output
        self._write(
            self._lines.assistant(_now(), call, min(output, 3), self._lines.tool_use()),
            self._lines.system(_now()),
            self._lines.assistant(_now(), call, output, self._lines.tool_use()),
        )
        self.calls += 1
        self._hook(daemon, self._hook_name())

    def _hook_name(self) -> str:
        if self.calls % STOP_EVERY == 0:
            return "Stop"
        return "UserPromptSubmit" if self.calls % PROMPT_EVERY == 0 else "PostToolUse"

    def _compact(self, daemon: Daemon) -> None:
        self._hook(daemon, "PreCompact", trigger="auto")
        self._write(self._lines.boundary(_now(), self._growth.sent), self._lines.summary(_now()))
        self._growth.compact()
        self.compactions += 1
        self._hook(daemon, "SessionStart", source="compact")

    def _write(self, *lines: str) -> None:
        with self._path.open("a") as file:
            file.writelines(lines)

    def _hook(self, daemon: Daemon, name: str, **more: str) -> None:
        hook = {"session_id": self.id, "transcript_path": str(self._path), "cwd": "/home/dev"}
        daemon.ask("hook", msgspec.json.encode({**hook, "hook_event_name": name, **more}))


class PushedSession:
    """A program built on an SDK: it posts its calls and compactions as events."""

    def __init__(self, rng: random.Random) -> None:
        self.id = uuid(rng)
        self.calls = self.compactions = self._events = 0
        self._growth = Growth(rng)

    def make_call(self, daemon: Daemon) -> None:
        """Post a call, and before it a compaction if it is due."""
        if self._growth.is_full():
            self._post(daemon, {"type": "Compacted", "at": time.time(), "trigger": "auto"})
            self._growth.compact()
            self.compactions += 1
        tokens = self._growth.next_tokens()
        usage = {
            "input": tokens.fresh,
            "cache_read": tokens.read,
            "cache_write": tokens.written,
            "output": tokens.output,
        }
        self.calls += 1
        call = {"id": f"{self.id}-{self.calls}", "usage": usage, "model": MODEL}
        self._post(daemon, {"type": "Call", "at": time.time(), **call})

    def _post(self, daemon: Daemon, event: dict[str, object]) -> None:
        self._events += 1
        event_json = {"id": str(self._events), "session": self.id, "agent": "sdk", "event": event}
        with closing(_UnixConnection(socket_path(daemon.state, os.getuid(), "http"))) as http:
            body = msgspec.json.encode({"events": [event_json]})
            http.request("POST", "/v1/events", body, {"content-type": "application/json"})
            answer = http.getresponse()
            if answer.status != 200:
                raise SystemExit(f"soak: {answer.status}: {answer.read().decode()}")


class _UnixConnection(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10.0)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


@dataclass
class Samples:
    """The memory of a daemon over time, in MB."""

    daemon: Daemon
    times: list[float] = field(default_factory=list[float])
    megabytes: list[float] = field(default_factory=list[float])

    def take(self, at: float) -> None:
        """Sample it now."""
        self.times.append(at)
        self.megabytes.append(self.daemon.megabytes)

    def slope_an_hour(self) -> float:
        """The growth in MB an hour, by a line through the second half."""
        half = len(self.times) // 2
        times, sizes = self.times[half:], self.megabytes[half:]
        middle, size = sum(times) / len(times), sum(sizes) / len(sizes)
        spread = sum((at - middle) ** 2 for at in times)
        moved = sum((at - middle) * (mb - size) for at, mb in zip(times, sizes, strict=True))
        return 3_600 * moved / spread if spread else 0.0

    def by_minute(self) -> str:
        """Its course."""
        every = max(1, round(60 / SAMPLE_EVERY_S))
        return " ".join(f"{megabytes:.1f}" for megabytes in self.megabytes[::every])

    def row(self, name: str) -> str:
        half = self.megabytes[len(self.megabytes) // 2]
        sizes = f"{self.megabytes[0]:9.1f}{half:9.1f}{self.megabytes[-1]:9.1f}"
        return f"{name:16}{sizes}{self.slope_an_hour():12.2f}"


def load(
    sessions: Sequence[Session], rate: float, seconds: float, samples: Sequence[Samples]
) -> float:
    """Make calls at a rate, one session after the other; the calls a second that came of it."""
    begun = time.monotonic()
    made, next_sample = 0, 0.0
    while (passed := time.monotonic() - begun) < seconds:
        if passed >= next_sample:
            for each in samples:
                each.take(passed)
            next_sample += SAMPLE_EVERY_S
        sessions[made % len(sessions)].make_call(samples[0].daemon)
        made += 1
        time.sleep(max(0.0, begun + made / rate - time.monotonic()))
    return made / (time.monotonic() - begun)


def missing_rows(state: Path, sessions: Sequence[Session]) -> Iterator[str]:
    """What the store does not have, or has too often."""
    time.sleep(SETTLE_S)
    with closing(sqlite3.connect(f"file:{state / 'brimline.db'}?mode=ro", uri=True)) as store:
        calls = dict(store.execute("SELECT session, count(*) FROM calls GROUP BY session"))
        compactions = dict(
            store.execute("SELECT session, count(*) FROM compactions GROUP BY session")
        )
    for session in sessions:
        found = calls.get(session.id, 0), compactions.get(session.id, 0)
        if found != (session.calls, session.compactions):
            yield f"{session.id}: made {(session.calls, session.compactions)}, stored {found}"


def main() -> None:
    """Print the table; fail if the store has not every call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second, of all sessions")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, prose = random.Random(options.seed), Prose(options.seed)
    with tempfile.TemporaryDirectory(prefix="brimline-") as name:
        work, idle = Path(name) / "loaded", Path(name) / "idle"
        work.mkdir()
        idle.mkdir()
        sessions: list[Session] = [
            PushedSession(rng) if number % PUSHED_PART == 0 else HookedSession(work, rng, prose)
            for number in range(options.sessions)
        ]
        with serving(work) as daemon, serving(idle) as idle_daemon:
            samples = Samples(daemon), Samples(idle_daemon)
            rate = load(sessions, options.rate, options.seconds, samples)
            missing = list(missing_rows(daemon.state, sessions))
            files = {path.name: path.stat().st_size / 1e6 for path in daemon.state.glob("*.db*")}
    made, cycles = sum(each.calls for each in sessions), sum(each.compactions for each in sessions)
    print(f"{made:,} calls and {cycles:,} compactions in {len(sessions)} sessions, ", end="")
    print(f"{rate:.0f} calls/s for {options.seconds:.0f} s, Python {sys.version.split()[0]}\n")
    print(f"{'resident MB':16}{'start':>9}{'half':>9}{'end':>9}{'MB an hour':>12}")
    print(samples[0].row("loaded daemon"), samples[1].row("idle daemon"), sep="\n")
    print(f"\nloaded daemon, MB by the minute: {samples[0].by_minute()}")
    grown = samples[0].slope_an_hour()
    print(f"target: <= {MAX_MB_AN_HOUR:g} MB an hour in the second half of 600 s: ", end="")
    print("yes" if grown <= MAX_MB_AN_HOUR else "NO", f"({grown:.2f})")
    print("files:", ", ".join(f"{name} {size:.1f} MB" for name, size in sorted(files.items())))
    if missing:
        raise SystemExit("soak: the store differs from what was sent:\n" + "\n".join(missing))
    print("the store has every call and compaction")


if __name__ == "__main__":
    main()
