"""Work for several sessions: order within a session, none between two."""

import asyncio

import pytest

from brimline.api.request_limits import MAX_TOGETHER, handle_by_session

ITEMS = [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def session_of(item: tuple[str, int]) -> str:
    return item[0]


def test_sessions_do_not_wait_for_each_other_but_keep_their_order() -> None:
    async def run() -> None:
        b_is_done = asyncio.Event()

        async def handle(items: list[tuple[str, int]]) -> list[tuple[str, int]]:
            if items[0] == ("a", 1):
                await b_is_done.wait()
            else:
                b_is_done.set()
            return items

        results = await asyncio.wait_for(handle_by_session(ITEMS, session_of, handle), 5)
        assert results == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]

    asyncio.run(run())


def test_failed_session_is_raised_after_the_others_were_handled() -> None:
    async def run() -> None:
        handled: list[tuple[str, int]] = []

        async def handle(items: list[tuple[str, int]]) -> list[None]:
            if items[0] == ("a", 1):
                raise OSError("full")
            await asyncio.sleep(0)
            handled.extend(items)
            return [None] * len(items)

        with pytest.raises(OSError, match="full"):
            await handle_by_session(ITEMS, session_of, handle)
        assert handled == [("b", 1), ("b", 2)]

    asyncio.run(run())


def test_only_some_of_many_sessions_are_handled_at_a_time() -> None:
    async def run() -> None:
        running, most = 0, 0

        async def handle(items: list[tuple[str, int]]) -> list[tuple[str, int]]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return items

        items = [(str(number), 1) for number in range(3 * MAX_TOGETHER + 1)]
        assert await handle_by_session(items, session_of, handle) == items
        assert most == MAX_TOGETHER

    asyncio.run(run())
