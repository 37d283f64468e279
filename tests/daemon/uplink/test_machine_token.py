"""The token that a machine makes from its team's: what it sends to have the server store it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from brimline.daemon.uplink.failure import UplinkFailed
from brimline.daemon.uplink.protocol import UplinkBatch
from brimline.daemon.uplink.sender import UplinkSender
from brimline.daemon.uplink.token_text import ENROLMENT_PREFIX, create_text, hash_token
from brimline.settings import UplinkSettings
from server.otlp_collector import RecordingCollector, recording_collector

STORED = b'{"machine": "m1", "expires_at": 1}'  # a reply to the enrolment and to the batch
REFUSED = b"""{"error": "this machine has a valid token of another enrolment",
"hint": "Ask whoever runs the server."}"""


def send(collector: RecordingCollector, state: Path, enrolment_token: str) -> None:
    """Send a batch, as a daemon does that was started just now."""

    async def sent() -> None:
        settings = UplinkSettings(token=enrolment_token)
        sender = UplinkSender(settings, collector.address, state)
        try:
            await sender.send(UplinkBatch("m1"))
        finally:
            sender.close()

    asyncio.run(sent())


def enrolments(collector: RecordingCollector) -> list[dict[str, Any]]:
    return [each.document for each in collector.received if each.path == "/v1/enrol"]


def test_new_enrolment_token_comes_with_the_token_that_is_replaced(tmp_path: Path) -> None:
    """That of which the server is known to have the hash: it shows that it is the same machine."""
    tokens = [create_text(ENROLMENT_PREFIX) for _ in range(3)]
    with recording_collector(reply=STORED) as collector:
        send(collector, tmp_path, tokens[0])
        send(collector, tmp_path, tokens[0])
        collector.reply = b"{}"
        with pytest.raises(UplinkFailed, match="not that of a fleet's server"):
            send(collector, tmp_path, tokens[1])
        collector.reply = STORED
        send(collector, tmp_path, tokens[2])
    first, lost, second = enrolments(collector)
    assert "earlier" not in first
    assert lost["earlier"] == second["earlier"] == first["hash"]
    own = json.loads((tmp_path / "uplink-token").read_bytes())
    assert second["hash"] == hash_token(own["text"])
    used = [each.headers["authorization"] for each in collector.received]
    assert used[-1] == f"Bearer {own['text']}"


def test_refusal_of_an_enrolment_says_what_to_do(tmp_path: Path) -> None:
    token = create_text(ENROLMENT_PREFIX)
    with (
        recording_collector(403, reply=REFUSED) as collector,
        pytest.raises(UplinkFailed) as raised,
    ):
        send(collector, tmp_path, token)
    assert str(raised.value) == (
        "the server does not enrol this machine: this machine has a valid token of another "
        "enrolment. Ask whoever runs the server"
    )
