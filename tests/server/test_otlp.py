"""OTLP requests in both encodings: equal results, partial success, and hostile bodies."""

import asyncio
import gzip
import json
import random
import sys
from typing import Any

import pytest
from google.protobuf.json_format import Parse, ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from starlette.requests import Request

from brimline.api.responses import RequestRefused
from brimline.api.telemetry.endpoint import TelemetryRoutes
from brimline.api.telemetry.request_body import MAX_DECOMPRESSED_BYTES
from brimline.monitor.monitor import Monitor
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore

JSON, PROTOBUF = "application/json", "application/x-protobuf"
NOW = 1_794_911_000.0
RESOURCE = {"service.name": "claude-code", "service.version": "2.1.325"}
API_REQUEST: dict[str, Any] = {
    "event.name": "api_request",
    "session.id": "s1",
    "request_id": "req_1",
    "model": "claude-sonnet-4-5",
    "input_tokens": 10,
    "cache_read_tokens": 90_000,
    "cache_creation_tokens": 10_000,
    "output_tokens": 500,
    "query_source": "sdk",
}
CHAT: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.conversation.id": "s1",
    "gen_ai.usage.input_tokens": 50_000,
    "gen_ai.usage.output_tokens": 10,
}


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as JSON, which has integers as text, though some clients send numbers."""
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    return [
        {"key": key, "value": {kinds[type(each)]: str(each) if type(each) is int else each}}
        for key, each in values.items()
    ]


def export_logs(*records: dict[str, Any], **resource: Any) -> dict[str, Any]:
    logs = [{"timeUnixNano": str(int(NOW * 1e9)), "attributes": attributes(r)} for r in records]
    owner = {"attributes": attributes(resource or RESOURCE)}
    return {"resourceLogs": [{"resource": owner, "scopeLogs": [{"logRecords": logs}]}]}


def export_spans(*spans: dict[str, Any], service: str = "my-agent") -> dict[str, Any]:
    """Spans as JSON, whose ids are in hexadecimal digits."""
    owner = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": owner, "scopeSpans": [{"spans": [*spans]}]}]}


def span(id: str, at: float = NOW, **more: Any) -> dict[str, Any]:
    fields = {**CHAT, **{name.replace("__", "."): value for name, value in more.items()}}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {
        "spanId": id,
        "endTimeUnixNano": str(int(at * 1e9)),
        "attributes": attributes(kept),
    }


class Receiver:
    """The routes with a store in memory."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self._routes = TelemetryRoutes(self.store, Monitor(self.store, lambda: NOW))

    def send(
        self, path: str, body: bytes, media: str = JSON, coding: str | None = None
    ) -> tuple[int, bytes]:
        """Return the status and the body of the response."""
        headers = [(b"content-type", media.encode())]
        headers += [(b"content-encoding", coding.encode())] if coding else []
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def go() -> tuple[int, bytes]:
            handler = getattr(self._routes, path.rpartition("/")[2])
            response = await handler(Request(scope, receive))
            assert response.media_type == media
            return response.status_code, bytes(response.body)

        try:
            return asyncio.run(go())
        except RequestRefused as refused:
            return refused.status, f"{refused.reason}. {refused.hint}".encode()

    def send_json(self, path: str, exported: dict[str, Any]) -> dict[str, Any]:
        status, body = self.send(path, json.dumps(exported).encode())
        assert status == 200
        return json.loads(body)

    def session(self) -> SessionRow:
        (row,) = asyncio.run(self.store.sessions())
        return row

    def calls(self) -> list[tuple[str, int]]:
        """Return the ids of the stored calls, and what they sent."""
        rows = asyncio.run(self.store.calls("s1"))
        return [(row.call, row.usage.sent) for row in rows]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def pack_logs(exported: dict[str, Any]) -> bytes:
    text = json.dumps(exported).replace("NaN", '"NaN"')  # so it is in the JSON of protobuf
    return Parse(text, ExportLogsServiceRequest()).SerializeToString()


def pack_spans(exported: dict[str, Any]) -> bytes:
    """Ids are bytes, which the JSON of protobuf has in base64, unlike that of OTLP."""
    request = ParseDict(exported, ExportTraceServiceRequest())
    spans = exported["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span, each in zip(request.resource_spans[0].scope_spans[0].spans, spans, strict=True):
        span.span_id = bytes.fromhex(each["spanId"])
    return request.SerializeToString()


@pytest.mark.parametrize("coding", [None, "gzip"])
@pytest.mark.parametrize("media", [JSON, PROTOBUF])
def test_both_encodings_have_the_same_effect(
    receiver: Receiver, media: str, coding: str | None
) -> None:
    exported = export_logs(API_REQUEST, {**API_REQUEST, "request_id": "req_2"})
    body = json.dumps(exported).encode() if media == JSON else pack_logs(exported)
    for _ in range(2):
        sent = gzip.compress(body) if coding else body
        answer = receiver.send("/v1/logs", sent, media, coding)
        assert answer == (200, b"{}" if media == JSON else b"")
    assert receiver.calls() == [("req_1", 100_010), ("req_2", 100_010)]
    row = receiver.session()
    assert (row.agent, row.version) == ("claude", "2.1.325")


@pytest.mark.parametrize("media", [JSON, PROTOBUF])
def test_spans_of_any_program_are_calls(receiver: Receiver, media: str) -> None:
    spans = [
        span("0000000000000001", NOW - 2, gen_ai__response__id="r1"),
        span("0000000000000002", NOW - 1),
        span("0000000000000003", gen_ai__operation__name="invoke_agent"),
        {"spanId": "0000000000000004", "attributes": attributes({"http.method": "GET"})},
    ]
    exported = export_spans(*spans)
    body = json.dumps(exported).encode() if media == JSON else pack_spans(exported)
    assert receiver.send("/v1/traces", body, media) == (200, b"{}" if media == JSON else b"")
    assert receiver.calls() == [("r1", 50_000), ("0000000000000002", 50_000)]
    assert receiver.session().agent == "my-agent"


def test_rejected_spans_are_counted_in_the_answer(receiver: Receiver) -> None:
    exported = export_spans(
        span("01"),
        span("02", gen_ai__conversation__id=None),
        span("03", gen_ai__usage__input_tokens=-5),
    )
    partial = receiver.send_json("/v1/traces", exported)["partialSuccess"]
    assert partial["rejectedSpans"] == 2
    assert "gen_ai.conversation.id" in partial["errorMessage"]
    status, body = receiver.send("/v1/traces", pack_spans(exported), PROTOBUF)
    answer = ExportTraceServiceResponse.FromString(body)
    assert (status, answer.partial_success.rejected_spans) == (200, 2)
    assert "gen_ai.conversation.id" in answer.partial_success.error_message
    assert receiver.calls() == [("01", 50_000)]


def test_rejected_log_records_are_counted_in_the_answer(receiver: Receiver) -> None:
    exported = export_logs(API_REQUEST, {**API_REQUEST, "input_tokens": "many"}, {"a": 1.5})
    partial = receiver.send_json("/v1/logs", exported)["partialSuccess"]
    assert partial == {"rejectedLogRecords": 1, "errorMessage": partial["errorMessage"]}
    _, body = receiver.send("/v1/logs", pack_logs(exported), PROTOBUF)
    answer = ExportLogsServiceResponse.FromString(body)
    assert answer.partial_success.rejected_log_records == 1
    assert receiver.calls() == [("req_1", 100_010)]


@pytest.mark.parametrize("media", [JSON, PROTOBUF])
def test_call_without_a_request_id_counts_once(receiver: Receiver, media: str) -> None:
    fields = {name: value for name, value in API_REQUEST.items() if name != "request_id"}
    exported = export_logs(fields, fields | {"output_tokens": 501})
    body = json.dumps(exported).encode() if media == JSON else pack_logs(exported)
    for _ in range(2):
        assert receiver.send("/v1/logs", body, media) == (200, b"{}" if media == JSON else b"")
    assert [sent for _, sent in receiver.calls()] == [100_010, 100_010]


def test_call_without_a_session_is_rejected_with_the_reason(receiver: Receiver) -> None:
    exported = export_logs(API_REQUEST | {"session.id": ""}, API_REQUEST)
    partial = receiver.send_json("/v1/logs", exported)["partialSuccess"]
    assert partial["rejectedLogRecords"] == 1
    assert "'session.id' must be an id: it is missing" in partial["errorMessage"]
    assert len(receiver.calls()) == 1


def test_user_team_and_host_come_from_the_resource(receiver: Receiver) -> None:
    more = {"user.id": "hash", "user.email": "a@example.org"}
    owner = {**RESOURCE, "host.name": "laptop", "department": "core"}
    receiver.send_json("/v1/logs", export_logs({**API_REQUEST, **more}, **owner))
    row = receiver.session()
    assert (row.user, row.team, row.host) == ("a@example.org", "core", "laptop")
    owner |= {"user.email": "b@example.org", "team.id": "db"}
    second = {**API_REQUEST, **more, "request_id": "req_2"}
    receiver.send_json("/v1/logs", export_logs(second, **owner))
    assert (receiver.session().user, receiver.session().team) == ("b@example.org", "db")


def test_late_compaction_is_placed_by_its_time(receiver: Receiver) -> None:
    """The span of a turn ends after those of its calls; its events are older."""
    event = {
        "name": "github.copilot.session.compaction_complete",
        "timeUnixNano": str(int((NOW - 5) * 1e9)),
        "attributes": attributes({"github.copilot.success": True}),
    }
    turn = {**span("03", gen_ai__operation__name="invoke_agent"), "events": [event]}
    calls = [span("01", NOW - 9), span("02", NOW - 1, gen_ai__usage__input_tokens=45_000)]
    receiver.send_json("/v1/traces", export_spans(*calls, turn, service="github-copilot"))
    (compaction,) = asyncio.run(receiver.store.compactions("s1"))
    assert (compaction.at, compaction.after, compaction.inferred) == (NOW - 5, 45_000, False)


def test_session_of_another_agent_is_left_alone(receiver: Receiver) -> None:
    receiver.send_json("/v1/logs", export_logs(API_REQUEST))
    answer = receiver.send_json("/v1/traces", export_spans(span("01")))
    assert "another agent" in answer["partialSuccess"]["errorMessage"]
    assert receiver.calls() == [("req_1", 100_010)]


@pytest.mark.parametrize("service", ["", "claude"])
def test_program_cannot_pose_as_an_agent(receiver: Receiver, service: str) -> None:
    receiver.send_json("/v1/traces", export_spans(span("01"), service=service))
    assert receiver.session().agent == "opentelemetry"


def test_time_far_in_the_future_is_not_stored(receiver: Receiver) -> None:
    receiver.send_json("/v1/traces", export_spans(span("01", NOW + 1e8)))
    assert receiver.session().seen_at == NOW


def test_ten_thousand_attributes_are_read(receiver: Receiver) -> None:
    many = {f"a{number}": number for number in range(10_000)}
    exported = export_logs({**many, **API_REQUEST})
    assert receiver.send_json("/v1/logs", exported) == {}
    assert receiver.calls() == [("req_1", 100_010)]


def test_metrics_are_accepted(receiver: Receiver) -> None:
    assert receiver.send("/v1/metrics", b"{}") == (200, b"{}")
    assert receiver.send("/v1/metrics", b"\xff", PROTOBUF) == (200, b"")


BOMB = gzip.compress(b" " * (MAX_DECOMPRESSED_BYTES + 1))
LONG = export_logs({**API_REQUEST, "session.id": "s" * 201})
NEGATIVE = export_logs({**API_REQUEST, "output_tokens": -1})
NOT_A_NUMBER = export_logs({**API_REQUEST, "output_tokens": float("nan")})


def with_time(value: object) -> bytes:
    exported = export_logs(API_REQUEST)
    exported["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["timeUnixNano"] = value
    return json.dumps(exported).encode()


@pytest.mark.parametrize(
    ("body", "media", "coding", "status"),
    [
        (b"{", JSON, None, 400),
        (b'{"resourceLogs": 1}', JSON, None, 400),
        (b'{"a":' + b"[" * 100_000, JSON, None, 400),
        (json.dumps(NOT_A_NUMBER).encode(), JSON, None, 400),
        (json.dumps(export_logs(API_REQUEST)).replace('"500"', '"x"').encode(), JSON, None, 400),
        (with_time("soon"), JSON, None, 400),
        (with_time("9" * 4_000), JSON, None, 400),
        (with_time(-1), JSON, None, 400),
        (pack_logs(export_logs(API_REQUEST))[:-3], PROTOBUF, None, 400),
        (b"\x0a\xff\xff\xff\xff\xff", PROTOBUF, None, 400),
        (b"{}", JSON, "gzip", 400),
        # Without its time: each test worker must collect the same ids.
        (gzip.compress(b"{}", mtime=0)[:-9], JSON, "gzip", 400),
        (BOMB, JSON, "gzip", 413),
        (BOMB, PROTOBUF, "gzip", 413),
        (b"{}", JSON, "zstd", 415),
        (b"{}", "text/plain", None, 415),
        (json.dumps(LONG).encode(), JSON, None, 200),
        (json.dumps(NEGATIVE).encode(), JSON, None, 200),
        (pack_logs(NOT_A_NUMBER), PROTOBUF, None, 200),
    ],
)
def test_hostile_body_is_refused_and_nothing_is_stored(
    receiver: Receiver, body: bytes, media: str, coding: str | None, status: int
) -> None:
    answer = receiver.send("/v1/logs", body, media, coding)
    assert answer[0] == status
    assert answer[1] not in (b"", b"{}")  # it says what is wrong
    assert asyncio.run(receiver.store.sessions()) == []


def test_damaged_protobuf_never_crashes(receiver: Receiver) -> None:
    """Any change of a byte is an error, a rejected record, or another value."""
    whole, seed = pack_logs(export_logs(API_REQUEST)), random.Random(1)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[seed.randrange(len(damaged))] = seed.randrange(256)
        assert receiver.send("/v1/logs", bytes(damaged), PROTOBUF)[0] in (200, 400)


def test_without_the_package_protobuf_is_refused_with_a_hint(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "brimline.api.telemetry.otlp_protobuf", None)
    monkeypatch.delattr("brimline.api.telemetry.otlp_protobuf", raising=False)
    status, error = receiver.send("/v1/logs", b"", PROTOBUF)
    assert status == 415
    assert b"brimline[fleet]" in error
    assert b"http/json" in error
