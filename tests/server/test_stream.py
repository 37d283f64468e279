"""The stream of changes: where it begins, and from where it goes on."""

import asyncio
import time

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from brimline.monitor.monitor import Monitor
from brimline.monitor.rules import Rules
from brimline.server.stream import Stream
from brimline.server.views import Views
from brimline.settings import Settings
from brimline.store.base import PutSession
from brimline.store.memory import MemoryStore
from brimline.store.rows import SessionRow

ALL = ["one", "two", "three"]


class Told(msgspec.Struct):
    """The part of what is streamed by which a session is known."""

    session: SessionRow


def request(last: str | None) -> Request:
    """What a browser asks with, which had an event of this id last."""
    headers = [] if last is None else [(b"last-event-id", last.encode())]

    async def receive() -> dict[str, str]:
        await asyncio.sleep(60)
        raise AssertionError

    return Request({"type": "http", "method": "GET", "headers": headers}, receive)


async def streamed(last: str | None) -> list[str]:
    """The sessions that are told of until nothing more changes."""
    store = MemoryStore()
    await store.write([PutSession(SessionRow(id, "claude", time.time())) for id in ALL])
    rules = Rules.of_settings(Settings())
    views = Views(store, Monitor(store, time.time, rules), rules)
    looks = iter([False, True])
    answer = await Stream(store, views, lambda: next(looks)).stream(request(last))
    assert isinstance(answer, StreamingResponse)
    pieces = [bytes(piece) async for piece in answer.body_iterator if isinstance(piece, bytes)]
    data = [piece.partition(b"data: ")[2] for piece in pieces if b"event: session" in piece]
    return [msgspec.json.decode(each, type=Told).session.id for each in data]


@pytest.mark.parametrize(("last", "told"), [("1", ALL[1:]), ("2", ALL[2:]), ("3", [])])
def test_goes_on(last: str, told: list[str]) -> None:
    """Who had a mark of this store is told of what came after it."""
    assert asyncio.run(streamed(last)) == told


@pytest.mark.parametrize("last", [None, "", "0", "-1", "x", "²", "9" * 5_000, str(2**63), "9" * 18])
def test_from_the_start(last: str | None) -> None:
    """Who has no mark, or one that no store gives, is told of all."""
    assert asyncio.run(streamed(last)) == ALL


def test_mark_of_another_store() -> None:
    """A mark beyond the newest is that of a store that was put aside: all of this one is told."""
    assert asyncio.run(streamed("4")) == ALL
    assert asyncio.run(streamed("305")) == ALL
