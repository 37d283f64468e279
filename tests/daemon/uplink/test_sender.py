"""Posts to a server: what is sent, and what each answer means."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from brimline.daemon.http_client import HttpReply
from brimline.daemon.uplink.exchange import load_or_create_machine_id
from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.machine_token import MAX_RETRY_AFTER_S
from brimline.daemon.uplink.protocol import (
    UplinkBatch,
    UplinkDocument,
    UplinkMessage,
    UplinkReply,
)
from brimline.daemon.uplink.sender import UplinkSender, read_reply
from brimline.settings import UplinkSettings
from server.otlp_collector import RecordingCollector, recording_collector

REPLY, PROBLEM = b'{"machine": "m1"}', b'{"error": "no", "hint": null}'


def send(
    collector: RecordingCollector, token: str | None = None, token_file: str | None = None
) -> UplinkReply:
    settings = UplinkSettings(token=token, token_file=token_file)

    async def sent() -> UplinkReply:
        sender = UplinkSender(settings, collector.address, Path("unused"))
        try:
            return await sender.send(UplinkBatch("m1"))
        finally:
            sender.close()

    return asyncio.run(sent())


def test_batch_is_posted_compressed_with_the_token() -> None:
    with recording_collector(reply=REPLY) as collector:
        assert send(collector, token="brim_x") == UplinkReply(machine="m1")
    (received,) = collector.received
    assert received.path == "/v1/uplink"
    assert received.headers["authorization"] == "Bearer brim_x"
    assert received.headers["content-encoding"] == "gzip"
    assert received.document == {"machine": "m1"}


def test_token_is_read_from_its_file_for_each_batch(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with recording_collector(reply=REPLY) as collector:
        for text in ("brim_one\n", "brim_two\n"):
            file.write_text(text)
            send(collector, token_file=str(file))
    sent = [each.headers["authorization"] for each in collector.received]
    assert sent == ["Bearer brim_one", "Bearer brim_two"]


def test_missing_token_is_a_failure_that_says_what_to_do(tmp_path: Path) -> None:
    with recording_collector() as collector:
        with pytest.raises(UplinkFailed, match=r"there is no token: set uplink\.token"):
            send(collector)
        with pytest.raises(UplinkFailed, match=r"uplink\.token_file cannot be read: .*No such"):
            send(collector, token_file=str(tmp_path / "missing"))
    assert collector.attempts == []


@pytest.mark.parametrize(
    ("status", "text", "is_refused"),
    [
        (401, "does not accept the token (no): set uplink.token to", False),
        (403, "the token may not report sessions (no): set uplink.token to", False),
        (404, "the server has no uplink at this address (no): check uplink.url", False),
        (400, "HTTP status 400 (no)", True),
        (413, "HTTP status 413 (no)", True),
        (422, "HTTP status 422 (no)", True),
        (429, "limits this token's rate (no)", False),
        (301, "HTTP status 301 (no)", False),
        (503, "HTTP status 503 (no)", False),
    ],
)
def test_refusal_says_why_and_whether_smaller_batches_may_help(
    status: int, text: str, is_refused: bool
) -> None:
    with (
        recording_collector(status, reply=PROBLEM) as collector,
        pytest.raises(UplinkFailed, match=re.escape(text)) as raised,
    ):
        send(collector, token="brim_x")
    assert (raised.value.is_refused, raised.value.retry_after_s) == (is_refused, 0.0)
    assert raised.value.is_too_large == (status == 413)
    assert collector.attempts == [status]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), ("100000", MAX_RETRY_AFTER_S), ("", 0.0), ("Tue, 17 Nov", 0.0)],
)
def test_pause_that_the_server_asks_for_is_respected(text: str, seconds: float) -> None:
    with pytest.raises(UplinkFailed) as raised:
        read_reply(HttpReply(429, {"retry-after": text}, b""), "m1")
    assert raised.value.retry_after_s == seconds


@pytest.mark.parametrize("body", [b"{}", b'{"status": "ok"}', b'{"machine": "m2"}'])
def test_answer_of_another_service_acknowledges_nothing(body: bytes) -> None:
    with pytest.raises(UplinkFailed, match="not that of a fleet's server: check uplink"):
        read_reply(HttpReply(200, {}, body), "m1")


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"{}", b'{"error": 1}'])
def test_proxy_cannot_refuse_a_session_for_the_server(status: int, body: bytes) -> None:
    """A session that is refused is not sent again until it changes: its calls would be lost."""
    with pytest.raises(UplinkFailed) as raised:
        read_reply(HttpReply(status, {}, body), "m1")
    assert (raised.value.is_refused, raised.value.is_too_large) == (False, status == 413)


def test_answer_of_a_proxy_is_not_quoted() -> None:
    with pytest.raises(UplinkFailed) as raised:
        read_reply(HttpReply(401, {}, b"<html>"), "m1")
    assert str(raised.value).startswith("the server does not accept the token: set uplink.token to")


def test_server_that_does_not_answer_or_answers_nonsense_is_a_failure() -> None:
    with pytest.raises(UplinkFailed, match="reply cannot be read"):
        read_reply(HttpReply(200, {}, b"<html>"), "m1")
    with recording_collector() as collector:
        pass
    with pytest.raises(UplinkFailed, match="the server cannot be reached: Connect"):
        send(collector, token="brim_x")


def test_machine_id_is_random_and_created_once(tmp_path: Path) -> None:
    id = load_or_create_machine_id(tmp_path)
    assert load_or_create_machine_id(tmp_path) == id
    assert len(id) == 32
    (tmp_path / "machine").write_bytes(b"\xff broken")
    other = load_or_create_machine_id(tmp_path)
    assert other not in (id, "")
    assert load_or_create_machine_id(tmp_path) == other


def test_every_field_of_a_reply_is_read() -> None:
    """Also those that a later version adds: a reply is decoded in parts."""
    sent = UplinkReply(
        [UplinkMessage("i", "s", "text", "Ada")],
        [UplinkDocument("d", "s", "text", "Ada")],
        ["c"],
        {"s": "too long"},
        "m1",
        7,
    )
    assert read_reply(HttpReply(200, {}, msgspec.json.encode(sent)), "m1") == sent
    set_fields = {name for name in sent.__struct_fields__ if getattr(sent, name)}
    assert set_fields == {*sent.__struct_fields__} - {"dropped"}  # the machine sets that one
