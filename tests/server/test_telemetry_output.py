"""A real daemon that exports to a collector and passes telemetry on to it."""

from pathlib import Path
from typing import Any

import pytest

from .otlp_collector import RecordingCollector, recording_collector
from .running import Running, free_port
from .test_daemon import SESSION, status_input
from .test_telemetry_export import plain, records

pytestmark = pytest.mark.slow


def start_daemon(folder: Path, port: int) -> Running:
    """Start a daemon whose collector is at a port."""
    daemon = Running(folder)
    config = daemon.home / ".config" / "brimline" / "config.toml"
    config.parent.mkdir(parents=True)
    address = f"http://127.0.0.1:{port}"
    config.write_text(f'[telemetry]\nexport = "{address}"\nheaders = {{api-key = "k"}}\n')
    daemon.start()
    return daemon


def levels(collector: RecordingCollector) -> list[tuple[str, Any]]:
    attributes = [plain(each["attributes"]) for each in records(collector)]
    return [
        (each["gen_ai.conversation.id"], each["brimline.level"])
        for each in attributes
        if each["brimline.signal"] == "level"
    ]


def test_daemon_exports_each_signal_once_over_restarts(tmp_path: Path) -> None:
    """Signals that fired while the collector was down arrive after the next start, once."""
    port = free_port()
    daemon = start_daemon(tmp_path, port)
    try:
        daemon.hook(status_input(110_000), "statusline")
        assert daemon.stop() == 0
        with recording_collector(port=port) as collector:
            daemon.start()
            collector.until(lambda: "/v1/metrics" in collector.paths())
            assert levels(collector) == [(SESSION, 50.0)]
            daemon.hook(status_input(140_000), "statusline")
            collector.until(lambda: len(levels(collector)) == 2)
            daemon.kill()
            received = len(collector.received)
            daemon.start()
            # Signals are sent before readings.
            collector.until(lambda: "/v1/metrics" in collector.paths()[received:])
            assert levels(collector) == [(SESSION, 50.0), (SESSION, 65.0)]
            assert all(each.headers["api-key"] == "k" for each in collector.received)
    finally:
        daemon.close()
