"""Limits of HTTP requests: how many are answered at a time, and how many a sender may send.

Every server has the first, so that hooks are always answered. A fleet's server has the second too,
for each token. Long work shares the event loop: it runs in slices, and for some sessions at a time.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from time import perf_counter
from typing import TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brimline.api.responses import (
    RETRY_AFTER_S,
    RETRY_HINT,
    RequestRefused,
    json_response,
)
from brimline.api.schemas import Problem
from brimline.files.bounded_dict import BoundedDict
from brimline.settings import FleetSettings

MAX_CONCURRENT_REQUESTS = 16
MAX_WAITING_REQUESTS = 256
MAX_ARRIVING_BYTES = 64 << 20  # of bodies that are not complete yet
STREAMS = ("/v1/stream",)  # responses that last for hours and cost little

MINUTE_S = 60.0
MAX_KEYS = 10_000  # tokens or users whose requests are counted

SLICE_S = 0.001
BACKGROUND_SLICE_S = 0.0003
# Background work pauses this many times as long as it ran: a hook returns to the loop about eight
# times before it is answered, and could wait for a slice each time.
BACKGROUND_PAUSE_SHARE = 3.0

MAX_TOGETHER = 64  # sessions: one request with 25,000 delayed other organisations by 17 s

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class LoadLimit:
    """Answers some requests at a time, lets some wait, and refuses more with a 503.

    A request holds its slot until its response begins, and not while its body arrives, so that slow
    clients block no others. A request whose client hung up while it waited is skipped.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_concurrent: int = MAX_CONCURRENT_REQUESTS,
        max_waiting: int = MAX_WAITING_REQUESTS,
        max_arriving_bytes: int = MAX_ARRIVING_BYTES,
    ) -> None:
        self._app = app
        self._slots = asyncio.Semaphore(max_concurrent)
        self._max_waiting = max_waiting
        self._waiting = 0
        self._max_arriving_bytes = max_arriving_bytes
        self._arriving_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMS:
            await self._app(scope, receive, send)
        elif self._slots.locked() and self._waiting >= self._max_waiting:
            hint = f"Try again in {RETRY_AFTER_S} s."
            refusal = json_response(Problem("the daemon is overloaded", hint), 503)
            await refusal(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _Client(receive)
        has_waited = await self.take_slot()
        request = _Request(self, client, send)
        try:
            if not (has_waited and await client.has_gone()):
                await self._app(scope, request.receive, request.send)
        finally:
            request.close()

    async def take_slot(self) -> bool:
        """Wait for a slot; return whether it was necessary to wait."""
        has_waited = self._slots.locked()
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        return has_waited

    def free_slot(self) -> None:
        self._slots.release()

    def count_arrived(self, amount: int) -> None:
        """Count bytes of incomplete bodies; raises RequestRefused if there are too many."""
        self._arriving_bytes += amount
        if amount > 0 and self._arriving_bytes > self._max_arriving_bytes:
            raise RequestRefused(503, "too many requests arrive at a time", RETRY_HINT)


class _Request:
    """A request with a slot, which it gives up while its body arrives and when it is answered."""

    def __init__(self, limit: LoadLimit, client: "_Client", send: Send) -> None:
        self._limit, self._client, self._send = limit, client, send
        self._has_slot, self._is_answered, self._arrived_bytes = True, False, 0

    async def receive(self) -> Message:
        self._free_slot()
        message = await self._client.receive()
        if message.get("more_body", False):
            size = len(message["body"])
            self._arrived_bytes += size
            self._limit.count_arrived(size)
        elif not self._is_answered:
            await self._limit.take_slot()
            self._has_slot = True
            self._drop_arrived()
        return message

    async def send(self, message: Message) -> None:
        self._is_answered = True
        self._free_slot()
        await self._send(message)

    def close(self) -> None:
        self._free_slot()
        self._drop_arrived()

    def _free_slot(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._limit.free_slot()

    def _drop_arrived(self) -> None:
        self._limit.count_arrived(-self._arrived_bytes)
        self._arrived_bytes = 0


class _Client:
    """The client of a request: checks whether it is connected without losing its body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: asyncio.Task[Message] | None = None

    async def has_gone(self) -> bool:
        self._first = asyncio.ensure_future(self._receive())  # type: ignore[arg-type]
        await asyncio.wait([self._first], timeout=0)
        return self._first.done() and self._first.result()["type"] == "http.disconnect"

    async def receive(self) -> Message:
        first, self._first = self._first, None
        return await (self._receive() if first is None else first)


class Allowance:
    """A token bucket for each key, which holds what it gets in a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._left = BoundedDict[str, tuple[float, float]](MAX_KEYS)  # the time, and what was left

    def spend(self, key: str, amount: float) -> None:
        """Take an amount, even if less is left: then the next request has to wait."""
        self._left[key] = self._clock(), self._amount_left(key) - amount

    def wait_s(self, key: str) -> float:
        """Return how long a key has to wait until 1 is left; 0 if that much is left now."""
        left = self._amount_left(key)
        return 0.0 if left >= 1 else (1 - left) * MINUTE_S / self._per_minute

    def _amount_left(self, key: str) -> float:
        at, left = self._left.get(key, (self._clock(), self._per_minute))
        refilled = (self._clock() - at) * self._per_minute / MINUTE_S
        return min(left + refilled, self._per_minute)


class RateLimit:
    """The limits of the settings, for each token or user."""

    def __init__(
        self, settings: FleetSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._requests = Allowance(settings.requests_per_minute, clock)
        self._bytes = Allowance(settings.bytes_per_minute, clock)

    def count_request(self, key: str) -> None:
        """Count a request; raises RequestRefused if its sender has to wait."""
        if wait_s := max(self._requests.wait_s(key), self._bytes.wait_s(key)):
            raise too_many("too many requests or bytes in a minute", wait_s)
        self._requests.spend(key, 1)

    def count_body(self, key: str, receive: Receive) -> Receive:
        """Return `receive` with the bytes of the body counted."""

        async def count() -> Message:
            message = await receive()
            self._bytes.spend(key, len(message.get("body", b"")))
            return message

        return count


def too_many(reason: str, wait_s: float) -> RequestRefused:
    """Return the error for a sender who has to wait."""
    after_s = math.ceil(wait_s)
    return RequestRefused(429, reason, f"Try again in {after_s} s.", after_s)


class TimeSlice:
    """The time that one task has used without letting others run."""

    def __init__(self, background: bool = False) -> None:
        self._slice_s = BACKGROUND_SLICE_S if background else SLICE_S
        self._pause = BACKGROUND_PAUSE_SHARE if background else 0.0
        self._started = perf_counter()

    async def pause_if_over(self) -> None:
        """Let others run if the slice is used up, and begin a new one."""
        used = perf_counter() - self._started
        if used > self._slice_s:
            await asyncio.sleep(used * self._pause)
            self._started = perf_counter()


class Turns:
    """Lets many ready tasks continue one by one, one in each round of the loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)


async def handle_by_session(
    items: Iterable[ItemT],
    session_of: Callable[[ItemT], str],
    handle: Callable[[list[ItemT]], Awaitable[list[ResultT]]],
) -> list[ResultT]:
    """Handle the items of each session, which are in order; return the results, by session.

    Sessions do not wait for each other: the store writes what waits in one transaction. Of many,
    some are handled at a time: a request may have 25,000, and others wait for the store as well. If
    one fails, the others are handled, and its error is raised.
    """
    groups: dict[str, list[ItemT]] = {}
    for item in items:
        groups.setdefault(session_of(item), []).append(item)
    waiting, outcomes = iter(groups.values()), list[list[ResultT] | BaseException]()
    while some := list(islice(waiting, MAX_TOGETHER)):
        outcomes += await asyncio.gather(*map(handle, some), return_exceptions=True)
    results: list[ResultT] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results += outcome
    return results
