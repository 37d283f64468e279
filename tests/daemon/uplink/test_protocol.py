"""Daemons and servers of neighbouring versions understand each other."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.api.uplink import UplinkRoutes
from brimline.daemon.uplink.protocol import UplinkBatch, UplinkReply
from brimline.store.sqlite import MemoryStore

PAYLOADS = Path(__file__).parent / "payloads"


def read_batch(name: str) -> UplinkBatch:
    return msgspec.json.decode((PAYLOADS / name).read_bytes(), type=UplinkBatch)


def stored(name: str) -> MemoryStore:
    """Return a server's store after a recorded batch."""
    store = MemoryStore()
    batch = read_batch(name)
    reply = asyncio.run(UplinkRoutes(store, lambda: 2_000.0).take(batch))
    assert reply == UplinkReply(machine=batch.machine, stamp=0)
    return store


def test_batch_without_optional_fields_is_taken() -> None:
    """As the first version could send it: each field that has a default is missing."""
    store = stored("batch-least.json")

    async def look() -> None:
        (session,) = await store.sessions()
        assert (session.id, session.machine, session.user) == ("s", "m1", None)
        assert [row.call for row in await store.calls("s")] == ["c1"]
        assert [row.sent for row in await store.threads("s")] == [None]
        assert [row.kind for row in await store.signals("s")] == ["level"]
        assert [row.text for row in await store.handoffs("s")] == [""]

    asyncio.run(look())


def test_batch_with_unknown_fields_and_kinds_is_taken_without_them() -> None:
    """As a later version may send it."""
    store = stored("batch-later.json")

    async def look() -> None:
        (session,) = await store.sessions()
        assert (session.id, session.team) == ("s", "web")
        assert [row.output for row in await store.calls("s")] == [4]
        assert [row.kind for row in await store.signals("s")] == ["compacted"]

    asyncio.run(look())


def test_reply_of_a_later_server_is_understood() -> None:
    reply = msgspec.json.decode((PAYLOADS / "reply-later.json").read_bytes(), type=UplinkReply)
    assert [each.text for each in reply.messages] == ["[message from boss] stop"]
    assert reply.messages[0].urgency == "whenever"
    assert msgspec.json.decode(b"{}", type=UplinkReply) == UplinkReply()


@pytest.mark.parametrize("field", ["sessions", "delivered", "held", "documents"])
def test_batch_has_a_limited_number_of_items(field: str) -> None:
    item = {"id": "s", "agent": "claude", "seen_at": 1.0} if field == "sessions" else "m"
    for count, is_valid in ((10_000, True), (10_001, False)):
        body = msgspec.json.encode({"machine": "m1", field: [item] * count})
        with nullcontext() if is_valid else pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=UplinkBatch)


@pytest.mark.parametrize("field", ["project", "model", "version", "title", "parent", "became"])
def test_name_of_a_session_has_a_limited_length(field: str) -> None:
    session = {"id": "s", "agent": "claude", "seen_at": 1.0, field: "x" * 4_001}
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert({"machine": "m1", "sessions": [session]}, UplinkBatch)


SIGNAL = {"thread": "main", "cycle": 0, "kind": "level"}
HANDOFF = {"id": "h", "author": "agent", "sha256": "0"}
THREAD = {"session": "s", "thread": "main", "cycle": 0, "seq": 0, "source": "x", "state": "x"}


@pytest.mark.parametrize(
    "fields",
    [
        {"signals": [{**SIGNAL, "at": 1e300}]},
        {"handoffs": [{**HANDOFF, "at": 1e300}]},
        {"handoffs": [{**HANDOFF, "at": 1.0, "used_at": -1.0}]},
        {"threads": [{**THREAD, "at": 1e300}]},
        {"ended_at": 1e300},
        {"became_at": 1e300},
    ],
    ids=str,
)
def test_time_that_no_program_can_show_is_refused(fields: dict[str, Any]) -> None:
    """The export of signals would stop at one of the year 10^292."""
    session = {"id": "s", "agent": "claude", "seen_at": 1.0, **fields}
    with pytest.raises(msgspec.ValidationError, match="at `"):
        msgspec.convert({"machine": "m1", "sessions": [session]}, UplinkBatch)
