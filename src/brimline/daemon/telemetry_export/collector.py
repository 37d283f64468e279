"""An OpenTelemetry collector: requests are sent until it takes or refuses them.

The forwarder passes the telemetry that clients send on to one, unchanged and in order.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from brimline.daemon.http_client import REQUEST_TIMEOUT_S, HttpClient, HttpFailed
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.retry import growing_pauses
from brimline.errors import BrimlineError
from brimline.files.foreign_json import JsonDecoder

# The statuses after which the OTLP specification has a client try again.
RETRYABLE = (429, 502, 503, 504)
MAX_RETRY_AFTER_S = 60.0

MAX_WAITING_BYTES = 64 << 20  # more is dropped until the collector takes some
MAX_WAITING_REQUESTS = 20_000
DRAIN_TIMEOUT_S = 2.0
# What describes a body. Others, as the client's own token, are not for the collector.
PASSED_HEADERS = ("content-type", "content-encoding")


class CollectorBusy(BrimlineError):
    """The collector cannot take a request now; `retry_after_s` is its `Retry-After`."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class _PartialSuccess(msgspec.Struct, frozen=True, rename="camel"):
    error_message: str = ""


class _CollectorReply(msgspec.Struct, frozen=True, rename="camel"):
    partial_success: _PartialSuccess | None = None


class Collector:
    """Sends requests to one collector, one at a time; `name` is for the log."""

    def __init__(
        self,
        name: str,
        address: str,
        headers: Mapping[str, str],
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self._name, self._headers, self._timeout_s = name, headers, timeout_s
        self._client = HttpClient(address)
        self._log = RateLimitedLog()

    async def send(self, path: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Send until the collector answers; return whether it took the request.

        A failure is retried after a growing pause, for as long as it takes.
        """
        for pause in growing_pauses():
            try:
                return await self.try_to_send(path, headers, body)
            except CollectorBusy as busy:
                await asyncio.sleep(max(pause, busy.retry_after_s))
        raise AssertionError("pauses do not end")

    async def try_to_send(self, path: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Send once; return whether the collector took it; raises CollectorBusy."""
        try:
            sent_headers = {**headers, **self._headers}
            reply = await self._client.post(body, sent_headers, path, self._timeout_s)
        except HttpFailed as error:
            raise self._busy(str(error)) from error
        if reply.is_success:
            self._log_rejections(reply.body)
            return True
        reason = f"the collector answered {path} with HTTP status {reply.status}"
        if reply.status in RETRYABLE:
            raise self._busy(reason, reply.retry_after_s(MAX_RETRY_AFTER_S))
        self._log.warn(f"{self._name}: request dropped", HttpFailed(reason))
        return False

    def _log_rejections(self, body: bytes) -> None:
        """Log that a collector took only a part: what it rejected must not be sent again."""
        reply = JsonDecoder(_CollectorReply).decode_or_none(body)  # it may be empty, or protobuf
        partial_success = reply.partial_success if reply else None
        if partial_success is not None and partial_success.error_message:
            rejection = HttpFailed(partial_success.error_message)
            self._log.warn(f"{self._name}: the collector rejected a part", rejection)

    def close(self) -> None:
        self._client.close()

    def _busy(self, reason: str, retry_after_s: float = 0.0) -> CollectorBusy:
        self._log.warn(f"{self._name}: will retry", HttpFailed(reason))
        return CollectorBusy(reason, retry_after_s)


class _ForwardedRequest(NamedTuple):
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
        self._waiting: deque[_ForwardedRequest] = deque()
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
        self._waiting.append(_ForwardedRequest(path, passed, body))
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
