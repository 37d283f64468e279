"""A real daemon that exports to a collector and passes telemetry on to it."""

import gzip
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from reserved_port import ReservedPort

from .otlp_collector import RecordingCollector, recording_collector
from .running import Running
from .test_daemon import SESSION, status_input
from .test_telemetry_export import gauges, plain, records

pytestmark = pytest.mark.slow


def start_daemon(folder: Path, port: int) -> Running:
    """Start a daemon whose collector is at a port."""
    daemon = Running(folder)
    config = daemon.home / ".config" / "brimline" / "config.toml"
    config.parent.mkdir(parents=True)
    address = f"http://127.0.0.1:{port}"
    config.write_text(
        f'[telemetry]\nexport = "{address}"\nheaders = {{api-key = "k"}}\n'
        f'forward = "{address}/forwarded"\nforward_headers = {{api-key = "f"}}\n'
    )
    daemon.start()
    return daemon


def check_forwarding(daemon: Running, collector: RecordingCollector) -> None:
    """What clients send arrives as it was sent; what is refused does not."""
    paths = ("/v1/logs", "/v1/traces", "/v1/metrics")
    bodies = [gzip.compress(json.dumps({"unknown": path}).encode()) for path in paths]
    for path, body in zip(paths, bodies, strict=True):
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{daemon.port}{path}", body, {**daemon.authorization, **headers}
        )
        urllib.request.urlopen(request, timeout=20).close()
    json_type = {"content-type": "application/json"}
    assert daemon.refused("/v1/logs", b"no JSON", json_type)[0] == 400
    collector.until(lambda: sum(path.startswith("/forwarded") for path in collector.paths()) == 3)
    received = [each for each in collector.received if each.path.startswith("/forwarded")]
    assert [each.path for each in received] == [f"/forwarded{path}" for path in paths]
    assert [each.body for each in received] == bodies
    assert {each.headers["content-encoding"] for each in received} == {"gzip"}
    assert {each.headers["api-key"] for each in received} == {"f"}
    assert not any("authorization" in each.headers for each in received)


def levels(collector: RecordingCollector) -> list[tuple[str, Any]]:
    attributes = [plain(each["attributes"]) for each in records(collector)]
    return [
        (each["gen_ai.conversation.id"], each["brimline.level"])
        for each in attributes
        if each["brimline.signal"] == "level"
    ]


def test_daemon_exports_each_signal_once_over_restarts(tmp_path: Path) -> None:
    """Signals that fired while the collector was down arrive after the next start, once."""
    port = ReservedPort()
    daemon = start_daemon(tmp_path, port.number)
    try:
        daemon.hook(status_input(110_000), "statusline")
        assert daemon.stop() == 0
        with recording_collector(port=port.number) as collector:
            daemon.start()
            collector.until(lambda: "/v1/metrics" in collector.paths())
            assert levels(collector) == [(SESSION, 50.0)]
            daemon.hook(status_input(140_000), "statusline")
            collector.until(lambda: len(levels(collector)) == 2)
            # A reading that follows is sent after the daemon has stored that the signal was taken.
            daemon.hook(status_input(141_000), "statusline")
            collector.until(lambda: gauges(collector)[-1]["brimline.context.sent"] == "141000")
            daemon.kill()
            received = len(collector.received)
            daemon.start()
            # Signals are sent before readings.
            collector.until(lambda: "/v1/metrics" in collector.paths()[received:])
            assert levels(collector) == [(SESSION, 50.0), (SESSION, 65.0)]
            assert all(each.headers["api-key"] == "k" for each in collector.received)
            check_forwarding(daemon, collector)
    finally:
        daemon.close()
