"""Work for several sessions: order within a session, none between two."""

import asyncio

import pytest

from brimline.server.api.session_order import handle_by_session

ITEMS = [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def session_of(item: tuple[str, int]) -> str:
    return item[0]


def test_sessions_do_not_wait_for_each_other_but_keep_their_order() -> None:
    async def run() -> None:
        started: list[tuple[str, int]] = []
        b_is_done = asyncio.Event()

        async def handle(item: tuple[str, int]) -> tuple[str, int]:
            started.append(item)
            if item == ("a", 1):
                await b_is_done.wait()
            elif item == ("b", 2):
                b_is_done.set()
            return item

        results = await asyncio.wait_for(handle_by_session(ITEMS, session_of, handle), 5)
        assert results == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        assert started == [("a", 1), ("b", 1), ("b", 2), ("a", 2)]

    asyncio.run(run())


def test_failed_item_stops_its_session_alone_and_is_raised() -> None:
    async def run() -> None:
        handled: list[tuple[str, int]] = []

        async def handle(item: tuple[str, int]) -> None:
            if item == ("a", 1):
                raise OSError("full")
            await asyncio.sleep(0)
            handled.append(item)

        with pytest.raises(OSError, match="full"):
            await handle_by_session(ITEMS, session_of, handle)
        assert handled == [("b", 1), ("b", 2)]

    asyncio.run(run())
