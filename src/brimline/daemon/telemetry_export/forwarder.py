"""Passes the telemetry that clients send on to a collector, unchanged and in order."""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from brimline.daemon.telemetry_export.collector import Collector

MAX_WAITING_BYTES = 64 << 20  # more is dropped until the collector takes some
MAX_WAITING_REQUESTS = 20_000
DRAIN_TIMEOUT_S = 2.0
# What describes a body. Others, as the client's own token, are not for the collector.
PASSED_HEADERS = ("content-type", "content-encoding")


class _Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes


class Forwarder:
    """A bounded queue of requests; `put` never waits.

    `forwarded` and `dropped` count requests since the start.
    """

    def __init__(
        self,
        collector: Collector,
        max_bytes: int = MAX_WAITING_BYTES,
        max_requests: int = MAX_WAITING_REQUESTS,
    ) -> None:
        self._collector = collector
        self._max_bytes, self._max_requests = max_bytes, max_requests
        self._waiting: deque[_Request] = deque()
        self._waiting_bytes = 0
        self._arrived, self._empty = asyncio.Event(), asyncio.Event()
        self._empty.set()
        self.forwarded = self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def put(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Queue a request with its body as it came; it is dropped if the queue is full."""
        is_full = (
            self._waiting_bytes + len(body) > self._max_bytes
            or len(self._waiting) >= self._max_requests
        )
        if is_full:
            self.dropped += 1
            return
        passed = {name: headers[name] for name in PASSED_HEADERS if name in headers}
        self._waiting.append(_Request(path, passed, body))
        self._waiting_bytes += len(body)
        self._empty.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Send what is queued, one after the other, for ever."""
        try:
            while True:
                while self._waiting:
                    await self._send_first()
                self._empty.set()
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self._collector.close()

    async def drain(self, timeout_s: float = DRAIN_TIMEOUT_S) -> None:
        """Wait until everything is sent, but not longer; `run` must be running."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()

    async def _send_first(self) -> None:
        request = self._waiting[0]  # it stays first if this is cancelled
        is_taken = await self._collector.send(request.path, request.headers, request.body)
        self._waiting.popleft()
        self._waiting_bytes -= len(request.body)
        if is_taken:
            self.forwarded += 1
        else:
            self.dropped += 1
