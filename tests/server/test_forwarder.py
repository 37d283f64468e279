"""Telemetry of clients passed on to a collector: unchanged, in order, within bounds."""

import asyncio
import logging

import pytest

from brimline.daemon.telemetry_export.collector import Collector, Forwarder
from brimline.daemon.telemetry_export.exporter import TelemetryOutput
from brimline.settings import TelemetrySettings
from brimline.store.sqlite import MemoryStore
from reserved_port import ReservedPort

from .otlp_collector import MAX_WAIT_S, RecordingCollector, recording_collector

JSON = {"content-type": "application/json", "content-encoding": "gzip"}


def make_forwarder(address: str, **bounds: int) -> Forwarder:
    return Forwarder(Collector("forwarding", address, {"api-key": "secret"}), **bounds)


async def forward_all(forwarder: Forwarder, wait_s: float = MAX_WAIT_S) -> None:
    """Run a forwarder until its queue is empty."""
    running = asyncio.create_task(forwarder.run())
    await forwarder.drain(wait_s)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_body_and_its_headers_arrive_unchanged() -> None:
    """But not the client's token: it is for us, and the settings have that of the collector."""

    async def run() -> None:
        forwarder = make_forwarder(f"{collector.address}/base")
        client = {**JSON, "authorization": "Bearer brim_client", "cookie": "c"}
        forwarder.put("/v1/traces", client, b"\x1f\x8b\x00\xff")
        await forward_all(forwarder)
        assert (forwarder.forwarded, forwarder.dropped, forwarder.waiting) == (1, 0, 0)

    with recording_collector() as collector:
        asyncio.run(run())
        (received,) = collector.received
    assert (received.path, received.body) == ("/base/v1/traces", b"\x1f\x8b\x00\xff")
    assert received.headers.items() >= {**JSON, "api-key": "secret"}.items()
    assert not {"authorization", "cookie"} & received.headers.keys()


def test_requests_arrive_in_order_although_some_are_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After 429 and 503 they are sent again; other refusals, and redirects, drop a request."""

    async def run() -> None:
        forwarder = make_forwarder(collector.address)
        for number in range(6):
            forwarder.put("/v1/logs", JSON, b"%d" % number)
        await forward_all(forwarder)
        assert (forwarder.forwarded, forwarder.dropped) == (4, 2)

    with recording_collector(200, 503, 429, 200, 307, 400) as collector:
        asyncio.run(run())
        assert [each.body for each in collector.received] == [b"0", b"1", b"4", b"5"]
        assert set(collector.paths()) == {"/v1/logs"}
    text = caplog.text
    assert "HTTP status 503" in text
    assert "HTTP status 307" in text
    assert "secret" not in text


def test_collector_that_is_down_gets_all_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    port = ReservedPort()
    started: list[RecordingCollector] = []

    async def run() -> None:
        forwarder = make_forwarder(f"http://127.0.0.1:{port.number}")
        for number in range(3):
            forwarder.put("/v1/logs", JSON, b"%d" % number)
        running = asyncio.create_task(forwarder.run())
        while not caplog.records:
            await asyncio.sleep(0.01)
        assert forwarder.waiting == 3
        started.append(RecordingCollector(port=port.number))
        await forwarder.drain(MAX_WAIT_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    caplog.set_level(logging.WARNING)
    try:
        asyncio.run(run())
    finally:
        for collector in started:
            collector.close()
    assert [each.body for each in started[0].received] == [b"0", b"1", b"2"]
    assert len(caplog.records) == 1  # however often it was tried


def test_full_queue_drops_and_counts() -> None:
    """A slow collector holds nothing up: `put` returns at once."""
    forwarder = make_forwarder("http://127.0.0.1:9", max_bytes=10, max_requests=3)
    for body in (b"12345", b"123456", b"12345", b"1"):
        forwarder.put("/v1/logs", JSON, body)
    assert (forwarder.waiting, forwarder.dropped) == (2, 2)
    forwarder.put("/v1/logs", JSON, b"")
    forwarder.put("/v1/logs", JSON, b"")
    assert (forwarder.waiting, forwarder.dropped) == (3, 3)


def test_requests_that_are_lost_at_the_end_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    port = ReservedPort()

    async def run() -> None:
        settings = TelemetrySettings(forward=f"http://127.0.0.1:{port.number}")
        output = TelemetryOutput(settings, MemoryStore())
        assert output.forwarder is not None
        output.start()
        output.forwarder.put("/v1/logs", JSON, b"{}")
        await output.close(drain_timeout_s=0.1)

    asyncio.run(run())
    assert "1 requests were not sent" in caplog.text
