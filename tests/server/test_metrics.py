"""The metrics for Prometheus: of a running daemon, and as text."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from brimline.api.metrics import (
    MAX_AGENTS,
    MAX_SESSIONS,
    IngestCounts,
    IngestMeter,
    Metric,
    MetricsRoutes,
    Sample,
    histogram_samples,
    render,
)
from brimline.api.schemas import DaemonStatus
from brimline.daemon.telemetry_export.exporter import TelemetryOutput
from brimline.monitor.user_rules import Rules
from brimline.settings import TelemetrySettings
from brimline.store.base import PutSession, PutThread
from brimline.store.metered import MeteredStore
from brimline.store.rows import SessionRow, ThreadRow
from brimline.store.sqlite import MemoryStore

from .running import Running
from .test_daemon import SESSION, status_input

ROOT = Path(__file__).parents[2]

slow = pytest.mark.slow


def values(text: str) -> dict[str, float]:
    """The samples of a text by name and labels."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def fetch(daemon: Running) -> str:
    content_type, text = daemon.get_text("/metrics")
    assert content_type.startswith("text/plain; version=0.0.4")
    return text


@slow
def test_live_session_has_its_figures(daemon: Running) -> None:
    daemon.hook(status_input(120_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    found = values(fetch(daemon))
    labels = next(name for name in found if name.startswith("brimline_context_fill_ratio"))
    assert f'session="{SESSION}"' in labels
    assert 'agent="claude"' in labels
    assert 'project="project"' in labels
    assert found[labels] == 0.6
    assert found['brimline_sessions{agent="claude"}'] == 1
    assert found['brimline_signals_total{agent="claude",kind="level",level="50"}'] == 1
    assert found['brimline_messages_total{state="queued"}'] == 2
    assert found["brimline_messages_pending"] == 2
    assert found["brimline_hooks_total"] >= 1
    assert found["brimline_store_write_seconds_count"] >= 2
    assert found['brimline_store_write_seconds_bucket{le="+Inf"}'] >= 2


@slow
def test_guide_and_alert_rules_name_the_metrics_that_exist(daemon: Running) -> None:
    """The guide has all of them; a rule with a name that does not exist would never fire."""
    served = set(re.findall(r"^# TYPE (\w+)", fetch(daemon), re.MULTILINE))
    guide = (ROOT / "docs" / "guides" / "metrics.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)`", guide, re.MULTILINE)) == served
    rules = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text("utf-8")
    named = {name.removesuffix("_bucket") for name in re.findall(r"\bbrimline_\w+", rules)}
    assert named
    assert named <= served


def fetch_from(rows: Sequence[tuple[SessionRow, ThreadRow]], ingest: IngestCounts) -> str:
    """The metrics of a store with these sessions."""

    async def run() -> str:
        store = MeteredStore(MemoryStore())
        await store.write([PutSession(row) for row, _ in rows])
        await store.write([PutThread(main) for _, main in rows])
        output = TelemetryOutput(TelemetrySettings(), store)
        status = DaemonStatus(version="1", pid=1, since=1.0, address="", heard=0, malformed=0,
                              dropped=0)  # fmt: skip
        routes = MetricsRoutes(store, lambda: status, ingest, output, Rules(), lambda: 1_000.0)
        response = await routes.metrics(Request({"type": "http", "headers": []}))
        return bytes(response.body).decode()

    return asyncio.run(run())


def live_session(
    number: int, percent: float | None, agent: str = "codex"
) -> tuple[SessionRow, ThreadRow]:
    main = ThreadRow(f"s{number}", "main", 0, 1, "hook", "measured", sent=number,
                     percent_of_limit=percent, calls_left=3)  # fmt: skip
    return SessionRow(f"s{number}", agent, 900.0, user="ada", team="tools"), main


def test_many_sessions_have_a_bounded_number_of_series() -> None:
    """The fullest sessions have series of their own; all are counted by how full they are."""
    sessions = [live_session(at, at / 10, f"agent {at % 90}") for at in range(1_000)]
    found = values(fetch_from(sessions, IngestCounts()))
    of_sessions = [name for name in found if "context_limit_fill_ratio" in name]
    assert len(of_sessions) == MAX_SESSIONS
    assert min(found[name] for name in of_sessions) == pytest.approx(0.8)
    counted = {name: value for name, value in found.items() if "brimline_sessions{" in name}
    assert len(counted) == MAX_AGENTS + 1
    assert sum(counted.values()) == 1_000
    assert counted['brimline_sessions{agent="other"}'] > 1
    assert len(found) < 6 * MAX_SESSIONS + 8 * MAX_AGENTS


def test_sessions_near_their_limit_have_reached_their_last_level() -> None:
    sessions = [live_session(number, at) for number, at in enumerate((None, 77.9, 78.0, 100.0))]
    found = values(fetch_from(sessions, IngestCounts()))
    assert found['brimline_sessions_near_limit{agent="codex"}'] == 2


def test_sessions_are_counted_by_how_full_they_are() -> None:
    fills = (None, 0.0, 49.9, 50.0, 80.0, 99.9, 100.0, 140.0)
    sessions = [live_session(number, percent) for number, percent in enumerate(fills)]
    found = values(fetch_from(sessions, IngestCounts()))
    counted = {
        name.partition('fill="')[2].rstrip('"}'): value
        for name, value in found.items()
        if "sessions_by_fill" in name
    }
    assert counted == {"unknown": 1, "0-50": 2, "50-80": 1, "80-90": 1, "90-100": 1, "100+": 2}
    labels = next(name for name in found if name.startswith("brimline_context_calls_left"))
    assert 'user="ada",team="tools"' in labels


def test_ended_and_continued_sessions_are_not_shown() -> None:
    row, main = live_session(1, 10.0)
    ended = replace(row, ended_at=900.0), main
    other, other_main = live_session(2, 10.0)
    continued = replace(other, became="s3", became_at=900.0), other_main
    found = fetch_from([ended, continued], IngestCounts())
    assert "s1" not in found
    assert "s2" not in found


def test_ingest_is_counted_by_path_and_status() -> None:
    counts = IngestCounts()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        assert counts.pending == (scope["path"] == "/v1/logs")
        if scope["query_string"] == b"fail":
            raise RuntimeError
        await send({"type": "http.response.start", "status": 415})

    async def receive() -> Message:
        return {"type": "http.request", "body": b"12345"}

    async def send(message: Message) -> None:
        pass

    async def run() -> None:
        meter = IngestMeter(app, counts, ["/v1/logs"])
        for path, query in (("/v1/logs", b""), ("/v1/sessions", b""), ("/v1/logs", b"fail")):
            scope = {"type": "http", "path": path, "query_string": query}
            with suppress(RuntimeError):
                await meter(scope, receive, send)

    asyncio.run(run())
    found = values(fetch_from([], counts))
    assert found['brimline_ingest_requests_total{path="/v1/logs",status="4xx"}'] == 1
    assert found['brimline_ingest_requests_total{path="/v1/logs",status="5xx"}'] == 1
    assert found['brimline_ingest_bytes_total{path="/v1/logs"}'] == 10
    assert found["brimline_ingest_pending"] == 0


def test_text_escapes_labels() -> None:
    sample = Sample(1.5, {"project": 'a"b\\c\nd'})
    assert render([Metric("x", "gauge", "About x.", [sample, Sample(2)])]) == (
        '# HELP x About x.\n# TYPE x gauge\nx{project="a\\"b\\\\c\\nd"} 1.5\nx 2\n'
    )


def test_histogram_is_cumulative() -> None:
    samples = histogram_samples((0.1, 1.0), [3, 2, 1], 4.5)
    assert [(each.suffix, each.labels, each.value) for each in samples] == [
        ("_bucket", {"le": "0.1"}, 3),
        ("_bucket", {"le": "1.0"}, 5),
        ("_bucket", {"le": "+Inf"}, 6),
        ("_sum", {}, 4.5),
        ("_count", {}, 6),
    ]
