"""Machines and programs that post to replicas, each one request after the other, in one process.

A request that fails, or that the server refuses for now, is sent again to the next replica, as a
daemon's uplink does. What was acknowledged is remembered, to be looked for in the database.
"""

import asyncio
import gzip
import math
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from brimline.api.schemas import NewEvent, NewEvents
from brimline.context.events import Call
from brimline.context.usage import Usage
from brimline.daemon.uplink.protocol import PATH as UPLINK_PATH
from brimline.daemon.uplink.protocol import UplinkBatch, UplinkSession
from brimline.store.rows import CallRow, CompactionRow, ThreadRow

EVENTS_PATH = "/v1/events"
MODEL = "claude-opus-4-5"
RETRY_S = 0.1
RETRIED = (408, 429, 500, 502, 503, 504)
WINDOW_TOKENS = 200_000
GROWTH_TOKENS = 1_500  # of a context, at each call
GZIP_LEVEL = 1

# A day of agents. The pauses are log-normal, as scripts/capacity.py measured them in real sessions.
MEDIAN_PAUSE_S, MEAN_PAUSE_S = 7.9, 3_600 / 153
PAUSE_SIGMA = math.sqrt(2 * math.log(MEAN_PAUSE_S / MEDIAN_PAUSE_S))
CALLS_PER_CYCLE = 98  # 147,000 tokens to the limit, 1,500 with each call
CALLS_PER_SESSION = 300  # then the agent starts another session
TICK_S = 600.0  # whose calls are in a batch: with 2 s, as in use, a day would take hours


@dataclass
class Outcome:
    """What was acknowledged: the calls by session, and the seconds of each request by path."""

    acknowledged: dict[str, int] = field(default_factory=dict[str, int])
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    retries: int = 0

    @property
    def events(self) -> int:
        return sum(self.acknowledged.values())


@dataclass(frozen=True)
class Post:
    """One request, and how many calls each session has when it is acknowledged."""

    path: str
    body: bytes
    calls: dict[str, int]


def call_id(number: int) -> str:
    """Return an id whose order as text is that of the numbers."""
    return f"msg_{number:012}"


def usage_of(number: int) -> Usage:
    """A context that grows from call to call, and starts again when it is full."""
    sent = 20_000 + number * GROWTH_TOKENS % (WINDOW_TOKENS - 40_000)
    return Usage(3, sent - GROWTH_TOKENS, GROWTH_TOKENS - 3, 700)


def session_part(session: str, first: int, calls: int, at: float) -> UplinkSession:
    """What a daemon reports of a session that made some calls."""
    rows = [_call_row(session, number, at) for number in range(first, first + calls)]
    sent = rows[-1].usage.sent
    thread = ThreadRow(
        session,
        "main",
        0,
        first + calls,
        "transcript",
        "measured",
        at=at,
        sent=sent,
        held=sent + 700,
        window=WINDOW_TOKENS,
        percent=round(100 * sent / WINDOW_TOKENS, 1),
        calls=first + calls,
        model=MODEL,
    )
    return UplinkSession(
        session, "claude", at, "project", MODEL, "2.1.325", threads=[thread], calls=rows
    )


def _call_row(session: str, number: int, at: float) -> CallRow:
    usage = usage_of(number)
    return CallRow(
        session,
        "main",
        call_id(number),
        number,
        0,
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        MODEL,
        at,
        cost=0.02,
    )


def uplink_post(machine: str, sessions: list[UplinkSession]) -> Post:
    batch = UplinkBatch(machine, f"host-{machine}", "0.1.0", "dev", "core", sessions)
    body = gzip.compress(msgspec.json.encode(batch), GZIP_LEVEL)
    ends = {session.id: session.threads[0].calls for session in sessions}
    return Post(UPLINK_PATH, body, ends)


def machine_posts(number: int, sessions: int, calls: int) -> Iterator[Post]:
    """The batches of one machine without end: each of its sessions makes `calls` in turn."""
    machine = f"machine-{number:05}"
    names = [f"{number:05}-{place:02}-0000-4000-8000-000000000000" for place in range(sessions)]
    done = 0
    while True:
        for name in names:
            yield uplink_post(machine, [session_part(name, done, calls, time.time())])
        done += calls


def program_posts(number: int, calls: int) -> Iterator[Post]:
    """The events of one program without end."""
    session, done = f"program-{number:05}", 0
    while True:
        numbers = range(done, done + calls)
        events = [
            NewEvent(
                call_id(each),
                session,
                "program",
                Call(at=time.time(), id=call_id(each), usage=usage_of(each), model=MODEL),
                "project",
            )
            for each in numbers
        ]
        done += calls
        yield Post(EVENTS_PATH, msgspec.json.encode(NewEvents(events)), {session: done})


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


def day_posts(agents: int, hours: float) -> Iterator[Post]:
    """The batches of a day of agents that ends now, in order of time.

    Each agent has its own machine, and pauses between its calls as in real sessions.
    """
    rng, start = random.Random(20261117), time.time() - hours * 3_600
    working = [Agent(number, rng.uniform(0, MEAN_PAUSE_S)) for number in range(agents)]
    for tick in range(1, math.ceil(hours * 3_600 / TICK_S) + 1):
        for agent in working:
            if agent.next_at < tick * TICK_S:
                yield _day_batch(agent, tick * TICK_S, start, rng)


def _day_batch(agent: Agent, until: float, start: float, rng: random.Random) -> Post:
    first, at = agent.calls, agent.next_at
    while agent.next_at < until:
        at = agent.next_at
        agent.calls += 1
        agent.next_at += rng.lognormvariate(math.log(MEDIAN_PAUSE_S), PAUSE_SIGMA)
    part = session_part(agent.session, first, agent.calls - first, start + at)
    ended = agent.calls // CALLS_PER_CYCLE
    if ended > first // CALLS_PER_CYCLE:
        compaction = CompactionRow(agent.session, "main", ended - 1, start + at, "auto", 167_000)
        part = msgspec.structs.replace(part, compactions=[compaction])
    if agent.calls >= CALLS_PER_SESSION:
        agent.sessions, agent.calls = agent.sessions + 1, 0
    return uplink_post(f"machine-{agent.number:05}", [part])


class Sender:
    """One connection at a time, to one replica until it fails."""

    def __init__(self, ports: list[int], first: int, token: str, outcome: Outcome) -> None:
        self._ports, self._place, self._outcome = ports, first, outcome
        self._authorization = f"Authorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, posts: Iterable[Post]) -> None:
        for post in posts:
            await self._send(post)
        self._close()

    async def _send(self, post: Post) -> None:
        while True:
            start = time.perf_counter()
            try:
                status = await self._post(post)
            except (OSError, EOFError, ValueError):
                status = 503
                self._close()
            if status == 200:
                break
            if status not in RETRIED:
                raise RuntimeError(f"{post.path} answered {status}")
            self._outcome.retries += 1
            self._place += 1
            self._close()
            await asyncio.sleep(RETRY_S)
        self._outcome.seconds.setdefault(post.path, []).append(time.perf_counter() - start)
        self._outcome.acknowledged.update(post.calls)

    async def _post(self, post: Post) -> int:
        if self._streams is None:
            port = self._ports[self._place % len(self._ports)]
            self._streams = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = self._streams
        packed = "Content-Encoding: gzip\r\n" if post.path == UPLINK_PATH else ""
        head = (
            f"POST {post.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self._authorization}{packed}"
            f"Content-Type: application/json\r\nContent-Length: {len(post.body)}\r\n\r\n"
        )
        writer.write(head.encode() + post.body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        return int(answer.split(maxsplit=2)[1])

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
