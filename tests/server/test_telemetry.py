"""OpenTelemetry logs over HTTP: what is taken, and what is refused."""

import gzip
import json
import time
import urllib.request
from typing import Any

import pytest

from brimline.server.api.telemetry import MAX_UNPACKED_BYTES

from .filled_session import write_filled_session
from .running import Running

pytestmark = pytest.mark.slow

JSON = {"content-type": "application/json"}
GZIP = {**JSON, "content-encoding": "gzip"}


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


def send(daemon: Running, body: bytes, headers: dict[str, str]) -> int:
    address = f"http://127.0.0.1:{daemon.port}/v1/logs"
    request = urllib.request.Request(address, body, {**daemon.authorization, **headers})
    with urllib.request.urlopen(request) as answer:
        return answer.status


def test_session_is_known_by_its_telemetry(daemon: Running) -> None:
    assert daemon.post("/v1/logs", logs()) == {}
    view = daemon.get("/v1/sessions/otel-1")
    assert view["session"]["agent"] == "claude"
    (main,) = view["threads"]
    assert (main["sent"], main["calls"], main["percent"]) == (100_010, 1, 50.0)


def test_request_may_be_packed(daemon: Running) -> None:
    assert send(daemon, gzip.compress(json.dumps(logs()).encode()), GZIP) == 200
    assert daemon.get("/v1/sessions/otel-1")["threads"][0]["calls"] == 1


def test_session_with_a_transcript_has_its_calls_from_there(daemon: Running) -> None:
    write_filled_session(daemon.home, "filled", 3, 0, "x = 1\n")
    daemon.until("/v1/sessions", lambda views: len(views) == 1)
    before = daemon.get("/v1/sessions/filled")["threads"]
    daemon.post("/v1/logs", logs("filled"))
    assert daemon.get("/v1/sessions/filled")["threads"] == before


def test_other_records_are_skipped(daemon: Running) -> None:
    daemon.post("/v1/logs", logs(input_tokens="many"))
    daemon.post("/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [{}]}]}]})
    daemon.post("/v1/metrics", {"resourceMetrics": []})
    assert daemon.get("/v1/sessions") == []


def test_what_cannot_be_read_is_refused(daemon: Running) -> None:
    protobuf = {"content-type": "application/x-protobuf"}
    status, problem = daemon.refused("/v1/logs", b"\x0a", protobuf)
    assert (status, "http/json" in problem["hint"]) == (415, True)
    assert daemon.refused("/v1/logs", b"{", JSON)[0] == 400
    assert daemon.refused("/v1/logs", b'{"resourceLogs": 1}', JSON)[0] == 400
    assert daemon.refused("/v1/logs", b"{}", GZIP)[0] == 400
    bomb = gzip.compress(b" " * (MAX_UNPACKED_BYTES + 1))
    assert daemon.refused("/v1/logs", bomb, GZIP)[0] == 413
