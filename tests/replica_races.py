"""Races between the replicas of a fleet's server: posts of events, and takers of messages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from brimline.agents.observations import Reply
from brimline.context.inbox import Message
from brimline.monitor.monitor import Monitor
from brimline.store.base import PutSession, QueueMessage, Write
from brimline.store.postgres import open_postgres
from brimline.store.rows import SessionRow
from fleet_server import FleetProcess, new_token

REPLICAS = 3
CONNECTIONS = 8  # to each replica
MAX_POSTS_PER_TOKEN = 5_000  # a token may send 12,000 requests a minute
RETRY_S = 0.05
MODEL = "claude-sonnet-4-5"
LEVEL_50, LEVEL_65 = 110_000, 140_000  # tokens of a window of 200,000
MESSAGE_CHARS = 250  # so that a taker gets 35 at a time
POLL_S = 0.2
CRASHING = "0"  # the taker that is killed
MAX_WAIT_S = 60.0


@dataclass(frozen=True)
class RaceSize:
    """How many events race; each is posted to every replica."""

    sessions: int
    cycles: int
    calls: int  # at each level

    @property
    def posts(self) -> int:
        return self.sessions * self.cycles * (2 * self.calls + 1) * REPLICAS


@dataclass
class RaceResult:
    """What was posted and stored."""

    posts: int = 0
    refused: int = 0  # and posted again
    seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter[str])  # by session
    fired: Counter[tuple[str, int, float]] = field(
        default_factory=Counter[tuple[str, int, float]]
    )  # by session, cycle and level: the signals
    messages: Counter[tuple[str, int, float]] = field(
        default_factory=Counter[tuple[str, int, float]]
    )

    def check(self, size: RaceSize) -> None:
        """Fail unless each call is stored, and each level fired, exactly once."""
        sessions = [f"s{n}" for n in range(size.sessions)]
        assert self.calls == dict.fromkeys(sessions, 2 * size.cycles * size.calls)
        once = {
            (session, cycle, level): 1
            for session in sessions
            for cycle in range(size.cycles)
            for level in (50.0, 65.0)
        }
        assert self.fired == once
        # No program of these sessions takes messages, so that a level need not queue one.
        assert self.messages.items() <= once.items()


class Connection:
    """Posts events to a replica over one connection."""

    def __init__(self, replica: FleetProcess) -> None:
        self.replica = replica
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, token: str, body: bytes) -> int | None:
        """Return the status; None if the replica does not answer."""
        try:
            return await self._post(token, body)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return None

    async def _post(self, token: str, body: bytes) -> int:
        parts = urlsplit(self.replica.url)
        if self._streams is None:
            self._streams = await asyncio.open_connection(parts.hostname, parts.port)
        reader, writer = self._streams
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\r\n"
        )
        writer.write(head.encode() + body)
        header = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = header.partition("content-length:")[2].split("\r\n")[0]
        await reader.readexactly(int(length))
        return int(header.split()[1])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class EventRace:
    """Posts every event to all replicas at the same time; one of them is killed half-way.

    Its events are then posted to the others, as a client does that got no answer.
    """

    def __init__(self, database: str, folder: Path, size: RaceSize) -> None:
        self._database, self._size = database, size
        count = 1 + size.posts // MAX_POSTS_PER_TOKEN
        self._tokens = [new_token(database) for _ in range(count)]
        self.result = RaceResult()
        self._running = ExitStack()
        self._replicas = [FleetProcess(database, folder) for _ in range(REPLICAS)]
        for replica in self._replicas:
            self._running.callback(replica.close)

    def run(self) -> RaceResult:
        with self._running:
            asyncio.run(self._post_all())
        asyncio.run(self._read_result())
        return self.result

    async def _post_all(self) -> None:
        began = time.perf_counter()
        phases = list(_phases(self._size))
        for place, events in enumerate(phases):
            kill_at = len(events) // 2 if place == len(phases) // 2 else None
            queues = [iter(enumerate(events)) for _ in self._replicas]
            await asyncio.gather(
                *(
                    self._post_to(number, queue, kill_at)
                    for number, queue in enumerate(queues)
                    for _ in range(CONNECTIONS)
                )
            )
        self.result.seconds = time.perf_counter() - began

    async def _post_to(
        self, number: int, events: Iterator[tuple[int, bytes]], kill_at: int | None
    ) -> None:
        connection = Connection(self._replicas[number])
        for place, event in events:
            if place == kill_at and number == REPLICAS - 1:
                self._replicas[number].process.send_signal(signal.SIGKILL)
            token = self._tokens[self.result.posts % len(self._tokens)]
            while (status := await connection.post(token, event)) != 200:
                assert status in (None, 429, 503), status
                self.result.refused += 1
                if status is None:
                    connection = Connection(self._replicas[place % (REPLICAS - 1)])
                await asyncio.sleep(RETRY_S)
            self.result.posts += 1
        connection.close()

    async def _read_result(self) -> None:
        store = await open_postgres(self._database)
        try:
            for row in await store.sessions():
                self.result.calls[row.id] = len(await store.calls(row.id))
            for row in await store.signals():
                if row.kind == "level":
                    self.result.fired[row.session, row.cycle, row.level] += 1
            for message in await store.messages():
                if message.cycle is not None and message.level is not None:
                    self.result.messages[message.session, message.cycle, message.level] += 1
        finally:
            await store.close()


def _phases(size: RaceSize) -> Iterator[list[bytes]]:
    """Yield events that may come in any order, in the order in which they are sent."""
    numbers = range(size.sessions)
    for cycle in range(size.cycles):
        for sent in (LEVEL_50, LEVEL_65):
            yield [
                _event(
                    f"s{session}", f"{cycle} {sent} {call}", _call(f"{cycle} {sent} {call}", sent)
                )
                for call in range(size.calls)
                for session in numbers
            ]
        ended = {"type": "Compacted", "trigger": "manual"}
        yield [_event(f"s{session}", f"end of {cycle}", ended) for session in numbers]


def _call(id: str, sent: int) -> dict[str, Any]:
    usage = {"input": sent, "cache_read": 0, "cache_write": 0, "output": 5}
    return {"type": "Call", "id": id, "usage": usage, "model": MODEL}


def _event(session: str, id: str, event: dict[str, Any]) -> bytes:
    new = {"id": f"{session} {id}", "session": session, "agent": "my-agent", "event": event}
    return json.dumps({"events": [new]}).encode()


@dataclass
class DeliveryResult:
    """What the takers of messages logged: `redelivered_after_s` is since a taker was killed."""

    messages: int = 0
    violations: int = 0
    repeated: int = 0
    redelivered_after_s: float | None = None
    seconds: float = 0.0


class DeliveryRace:
    """Takers of messages in processes of their own; the first is killed with its first messages.

    Their clocks run `speed` times as fast.
    """

    def __init__(self, database: str, folder: Path, sessions: int, messages: int) -> None:
        self._database, self._log = database, folder / "deliveries"
        self._log.touch()
        self._sessions = [f"m{n}" for n in range(sessions)]
        self._messages = messages  # of each session

    def run(self, workers: int, speed: float = 1.0) -> DeliveryResult:
        asyncio.run(self._queue_all())
        began = time.perf_counter()
        with ExitStack() as running:
            crashing = self._start(running, CRASHING, speed)
            self._wait_for_lines(1)
            others = [self._start(running, str(n), speed) for n in range(1, workers)]
            self._wait_for_lines(workers)
            crashing.kill()
            killed_at = time.time()
            assert [process.wait() for process in others] == [0] * len(others)
        result = self._result(killed_at)
        result.seconds = time.perf_counter() - began
        return result

    def _start(self, running: ExitStack, taker: str, speed: float) -> subprocess.Popen[bytes]:
        words = [sys.executable, __file__, self._database, str(self._log), str(speed), taker]
        process = subprocess.Popen([*words, *self._sessions])
        running.callback(process.wait)
        running.callback(process.kill)
        return process

    def _wait_for_lines(self, count: int) -> None:
        deadline = time.monotonic() + MAX_WAIT_S
        while self._log.read_bytes().count(b"\n") < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    async def _queue_all(self) -> None:
        store = await open_postgres(self._database)
        try:
            for session in self._sessions:
                writes: list[Write] = [PutSession(SessionRow(session, "my-agent", time.time()))]
                writes += [
                    QueueMessage(
                        Message(f"{session} {n}", session, f"{n}".ljust(MESSAGE_CHARS), 1.0)
                    )
                    for n in range(self._messages)
                ]
                await store.write(writes)
        finally:
            await store.close()

    def _result(self, killed_at: float) -> DeliveryResult:
        result = DeliveryResult()
        expected: dict[str, int] = defaultdict(int)
        holders: dict[tuple[str, int], str] = {}
        for line in self._log.read_text().splitlines():
            taker, at, session, number = line.split()
            key = session, int(number)
            if key in holders:
                result.repeated += 1
                if holders[key] == CRASHING and result.redelivered_after_s is None:
                    result.redelivered_after_s = float(at) - killed_at
            elif expected[session] == int(number):
                expected[session] += 1
                result.messages += 1
            else:
                result.violations += 1
            holders[key] = taker
        return result


async def take_all(
    database: str, log: Path, speed: float, name: str, sessions: Sequence[str]
) -> None:
    """Take the messages of sessions in any order, log and acknowledge them, until none is left."""
    store, began = await open_postgres(database), time.time()
    monitor = Monitor(store, lambda: began + (time.time() - began) * speed, shared=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    left = deque(sessions)
    blocked: deque[tuple[float, str]] = deque()  # sessions, and when to look at them again
    while left or blocked:
        if blocked and (not left or blocked[0][0] <= time.time()):
            await asyncio.sleep(blocked[0][0] - time.time())
            session = blocked.popleft()[1]
        else:
            session = left.popleft()
        messages = await monitor.take_messages(session)
        # One write for all: the lines of several takers are in the order of their writes.
        os.write(descriptor, b"".join(_line(name, message) for message in messages))
        while messages and name == CRASHING:
            await asyncio.sleep(MAX_WAIT_S)  # it is killed with them
        await monitor.mark_delivered(Reply(message_ids=tuple(each.id for each in messages)))
        if messages:
            left.append(session)
        elif await store.pending_messages(session):
            blocked.append((time.time() + POLL_S, session))
    await store.close()


def _line(taker: str, message: Message) -> bytes:
    session, number = message.id.split()
    return f"{taker} {time.time()} {session} {number}\n".encode()


if __name__ == "__main__":
    _, url, path, factor, taker, *names = sys.argv
    asyncio.run(take_all(url, Path(path), float(factor), taker, names))
