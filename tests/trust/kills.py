"""Kills of the daemon and of hook clients under load: no event is lost, none has its effect twice.

The daemon is killed at random moments, also while it starts, and so are hook clients. A hook counts
once its client has exited with 0; a pushed call and a message once the daemon has accepted them.
"""

import json
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from brimline.context.inbox import DELIVERY_LEASE_S
from hooks.agent import Agent, open_stdin
from server.running import MAX_WAIT_S, Running

from .hook_clients import client_commands
from .row import RowResult

SEED = 1
WORKERS = 3  # that compact sessions, at a time
CYCLES = 3  # of a session, each with the hooks of one compaction
KILLED_PART = 0.2  # of all clients
MAX_CLIENT_LIFE_S = 0.02  # of a client that is killed; the compiled one takes 5 ms
MAX_SERVING_S, MAX_BOOT_S = 1.0, 0.8  # until the daemon is killed
KILLED_BOOTS = 0.25  # of all starts
PAUSE_S = 0.05  # between two events of a worker
REPORTED_KILLS = 50  # between two lines of progress

COMPACTION = (
    {"hook_event_name": "PreCompact", "trigger": "auto"},
    {"hook_event_name": "SessionStart", "source": "compact"},
)
PROMPT = {"session_id": "inbox", "hook_event_name": "UserPromptSubmit"}
MESSAGE = re.compile(r"message number (\d+)\.")
USAGE = {"input": 9, "cache_read": 0, "cache_write": 0, "output": 5}
UNREACHABLE = (OSError, HTTPException)  # the daemon does not run, or died before it replied


@dataclass
class Load:
    """Work for a daemon that may be gone at any time, and what must come of it.

    `compactions` are those of each session whose hooks all ended; those of the sessions in
    `unsure` ended with a killed client, whose hook may have been stored.
    """

    daemon: Running
    rng: random.Random
    ended: threading.Event = field(default_factory=threading.Event)
    exit_codes: list[int] = field(default_factory=list[int])
    compactions: dict[str, int] = field(default_factory=dict[str, int])
    unsure: set[str] = field(default_factory=set[str])
    calls: int = 0
    messages: list[int] = field(default_factory=list[int])
    received: list[int] = field(default_factory=list[int])
    printed_by_killed: list[int] = field(default_factory=list[int])

    @property
    def killed_clients(self) -> int:
        return self.exit_codes.count(-signal.SIGKILL)

    @contextmanager
    def running(self) -> Generator[None]:
        """Do all of it in threads until the block ends; what is begun is finished."""
        with ThreadPoolExecutor(WORKERS + 2) as threads:
            work = [threads.submit(self._compact_sessions, worker) for worker in range(WORKERS)]
            work += [threads.submit(self._push_calls), threads.submit(self._send_messages)]
            try:
                yield
            finally:
                self.ended.set()
            for each in work:
                each.result()

    def run_hook(self, body: dict[str, str], killed_part: float = KILLED_PART) -> bool:
        """Run a client; return whether it ended by itself."""
        command = self.rng.choice(list(client_commands().values()))
        words = Agent(command, self.daemon.state, self.daemon.socket).words("hook")
        with open_stdin(json.dumps({"cwd": "/project", **body}).encode()) as stdin:
            process = subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE, env={})
        if self.rng.random() < killed_part:
            time.sleep(self.rng.uniform(0, MAX_CLIENT_LIFE_S))
            process.kill()
        printed = process.communicate(timeout=MAX_WAIT_S)[0].decode()
        self.exit_codes.append(process.returncode)
        is_killed = process.returncode == -signal.SIGKILL
        numbers = [int(number) for number in MESSAGE.findall(printed)]
        (self.printed_by_killed if is_killed else self.received).extend(numbers)
        return not is_killed

    def _compact_sessions(self, worker: int) -> None:
        """Compact one session after the other, several times each."""
        for number in self._until_ended():
            session = f"compacted-{worker}-{number}"
            self.compactions[session] = 0
            for _ in range(CYCLES):
                if not all(
                    self._run_in_order({"session_id": session, **hook}) for hook in COMPACTION
                ):
                    self.unsure.add(session)
                    break
                self.compactions[session] += 1

    def _run_in_order(self, hook: dict[str, str]) -> bool:
        """Run a hook after the hook before was processed: a compaction takes longer than that.

        A running daemon reads the spool once a second, and answers other hooks meanwhile.
        """
        while _has_spool(self.daemon):
            time.sleep(PAUSE_S)
        return self.run_hook(hook)

    def _push_calls(self) -> None:
        """Post the calls of a program, each again until it is accepted."""
        for number in self._until_ended():
            event = {"type": "Call", "id": f"c{number}", "usage": USAGE}
            pushed = {"id": f"e{number}", "session": "pushed", "agent": "sdk", "event": event}
            while not self._accepted("/v1/events", {"events": [pushed]}):
                time.sleep(PAUSE_S)
            self.calls = number

    def _send_messages(self) -> None:
        """Queue messages for one session, and run its hooks."""
        for number in self._until_ended():
            message = {"text": f"message number {number}."}
            if self._accepted("/v1/sessions/inbox/messages", message):
                self.messages.append(number)
            self.run_hook(PROMPT)

    def _accepted(self, path: str, body: object) -> bool:
        with suppress(*UNREACHABLE):
            self.daemon.post(path, body)
            return True
        return False

    def _until_ended(self) -> Iterator[int]:
        number = 0
        while not self.ended.wait(PAUSE_S):
            number += 1
            yield number


def kill_at_random(daemon: Running, rng: random.Random) -> None:
    """Start the daemon, and kill it after a random time: while it serves, or while it boots."""
    if rng.random() > KILLED_BOOTS:
        daemon.start()
        time.sleep(rng.uniform(0, MAX_SERVING_S))
        daemon.kill()
        return

    def kill_booting() -> None:
        if daemon.process is not None:
            daemon.process.kill()

    timer = threading.Timer(rng.uniform(0, MAX_BOOT_S), kill_booting)
    timer.start()
    try:
        with suppress(AssertionError):  # it ended before it served
            daemon.start()
            timer.join()
            daemon.kill()
    finally:
        timer.cancel()


def finish(load: Load) -> None:
    """Wait until the daemon has processed what clients spooled, and delivered every message."""
    daemon = load.daemon
    daemon.stop()
    with closing(_open(daemon)) as store:
        earlier = f"UPDATE messages SET handed_at = handed_at - {2 * DELIVERY_LEASE_S}"
        store.execute(earlier)  # whoever was handed them is gone
        store.commit()
    daemon.start()
    deadline = time.monotonic() + MAX_WAIT_S
    while _has_spool(daemon) or _undelivered(daemon):
        assert time.monotonic() < deadline, _undelivered(daemon)
        load.run_hook(PROMPT, killed_part=0)
        time.sleep(PAUSE_S)


def _has_spool(daemon: Running) -> bool:
    return any(daemon.state.glob("spool*"))


def _undelivered(daemon: Running) -> list[str]:
    messages = daemon.get("/v1/sessions/inbox/messages")
    return [message["id"] for message in messages if message["state"] in ("queued", "handed")]


def _open(daemon: Running) -> sqlite3.Connection:
    return sqlite3.connect(daemon.state / "brimline.db")


class Effects:
    """What is missing, and what happened too often."""

    def __init__(self, load: Load) -> None:
        self.lost: list[str] = []
        self.twice: list[str] = []
        for kind in ("compacting", "compacted"):
            found = self._signals(load.daemon, kind)
            for session, count in load.compactions.items():
                most = count + (session in load.unsure)
                self._compare(f"{kind} signals of {session}", found[session], count, most)
        view = load.daemon.get("/v1/sessions/pushed")
        self._compare("pushed calls", view["threads"][0]["calls"], load.calls, load.calls)
        received = Counter(load.received)
        sure = set(load.messages) - set(load.printed_by_killed)
        for number in sure.union(load.received):
            self._compare(f"message {number}", received[number], number in sure, 1)

    def _signals(self, daemon: Running, kind: str) -> Counter[str]:
        query = "SELECT session, count(*) FROM signals WHERE kind = ? GROUP BY session"
        with closing(_open(daemon)) as store:
            return Counter(dict(store.execute(query, (kind,))))

    def _compare(self, name: str, found: int, least: int, most: int) -> None:
        if found < least:
            self.lost.append(f"{name}: {found} of {least}")
        if found > most:
            self.twice.append(f"{name}: {found} instead of {most}")


def kill_under_load(folder: Path, kills: int) -> RowResult:
    """Kill the daemon and hook clients, half of the number each."""
    daemon, rng = Running(folder), random.Random(SEED)
    load = Load(daemon, rng)
    killed_daemons = 0
    try:
        with load.running():
            while min(killed_daemons, load.killed_clients) < kills // 2:
                kill_at_random(daemon, rng)
                killed_daemons += 1
                if killed_daemons % REPORTED_KILLS == 0:
                    print(f"killed: {killed_daemons} daemons, {load.killed_clients} clients")
            daemon.start()
        finish(load)
        effects = Effects(load)
    finally:
        daemon.close()
    figures = {
        "killed daemons": killed_daemons,
        "killed clients": load.killed_clients,
        "hooks": len(load.exit_codes),
        "calls": load.calls,
        "messages": len(load.messages),
        "exit codes other than 0": _other_codes(load.exit_codes),
        "lost": len(effects.lost),
        "twice": len(effects.twice),
    }
    most = {"exit codes other than 0": 0, "lost": 0, "twice": 0}
    return RowResult(figures, most, [*effects.lost, *effects.twice])


def _other_codes(exit_codes: Iterable[int]) -> int:
    return sum(1 for code in exit_codes if code not in (0, -signal.SIGKILL))
