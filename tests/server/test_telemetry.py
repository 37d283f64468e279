"""OpenTelemetry logs over HTTP to a daemon; tests/server/test_otlp.py has the rest."""

import gzip
import json
import time
import urllib.request
from typing import Any

import pytest

from .filled_session import write_filled_session
from .running import Running

pytestmark = pytest.mark.slow

PACKED = {"content-type": "application/json", "content-encoding": "gzip"}


def logs(session: str = "otel-1", **fields: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "event.name": "api_request",
        "session.id": session,
        "request_id": "req_1",
        "model": "claude-sonnet-4-5",
        "input_tokens": 10,
        "cache_read_tokens": 90_000,
        "cache_creation_tokens": 10_000,
        "output_tokens": 500,
        "query_source": "sdk",
        **fields,
    }
    attributes = [attribute(*each) for each in values.items()]
    record = {"timeUnixNano": str(time.time_ns()), "attributes": attributes}
    resource = {"attributes": [attribute("service.name", "claude-code")]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]}


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": value}}


def test_session_is_known_by_its_telemetry(daemon: Running) -> None:
    address, body = f"http://127.0.0.1:{daemon.port}/v1/logs", json.dumps(logs()).encode()
    headers = {**daemon.authorization, **PACKED}
    request = urllib.request.Request(address, gzip.compress(body), headers)
    with urllib.request.urlopen(request) as answer:
        assert answer.read() == b"{}"
    view = daemon.get("/v1/sessions/otel-1")
    assert view["session"]["agent"] == "claude"
    (main,) = view["threads"]
    assert (main["sent"], main["calls"], main["percent"]) == (100_010, 1, 50.0)


def test_session_with_a_transcript_has_its_calls_from_there(daemon: Running) -> None:
    write_filled_session(daemon.home, "filled", 3, 0, "x = 1\n")
    daemon.until("/v1/sessions", lambda views: len(views) == 1)
    before = daemon.get("/v1/sessions/filled")["threads"]
    daemon.post("/v1/logs", logs("filled"))
    assert daemon.get("/v1/sessions/filled")["threads"] == before
