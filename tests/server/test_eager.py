"""Work that is begun at once: done where it can be, a task where it has to wait."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from brimline.server.eager import begin

Work = Callable[[list[str]], Coroutine[None, None, None]]


async def waits(said: list[str]) -> None:
    """Work that waits twice, in all the ways there are."""
    said.append("begun")
    await asyncio.sleep(0)
    said.append("went on")
    said.append(await asyncio.to_thread(lambda: "from a thread"))


def test_at_once() -> None:
    """What need not wait is done when it is begun, and there is no task."""

    async def work(said: list[str]) -> None:
        async with asyncio.Lock():
            said.append("done")

    async def run() -> None:
        said: list[str] = []
        assert begin(work(said)) is None
        assert said == ["done"]

    asyncio.run(run())


def test_the_rest() -> None:
    """What has to wait goes on in a task, with what it waited for."""

    async def run() -> None:
        said: list[str] = []
        task = begin(waits(said))
        assert said == ["begun"]
        assert task is not None
        await task
        assert said == ["begun", "went on", "from a thread"]

    asyncio.run(run())


def test_what_fails() -> None:
    """What is waited for may fail: the work gets that, and so does who waits for the work."""

    async def work(said: list[str]) -> None:
        failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(failing.set_exception, ValueError("no"))
        try:
            await failing
        except ValueError as error:
            said.append(str(error))
        raise KeyError("later")

    async def run() -> None:
        said: list[str] = []
        task = begin(work(said))
        assert task is not None
        with pytest.raises(KeyError):
            await task
        assert said == ["no"]

    asyncio.run(run())


def test_at_once_fails() -> None:
    """What fails at once fails there."""

    async def work(said: list[str]) -> None:
        raise KeyError("now")

    async def run() -> None:
        with pytest.raises(KeyError):
            begin(work([]))

    asyncio.run(run())


def test_cancelled() -> None:
    """A task that is cancelled cancels the work, which may still tidy up, and wait for that."""

    async def work(said: list[str]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            said.append("tidied")

    async def run() -> None:
        said: list[str] = []
        task = begin(work(said))
        assert task is not None
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert said == ["tidied"]

    asyncio.run(run())


def test_timeouts() -> None:
    """Once it has waited it may be timed."""

    async def work(said: list[str]) -> None:
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            said.append("in time")

    async def run() -> None:
        said: list[str] = []
        task = begin(work(said))
        assert task is not None
        await task
        assert said == ["in time"]

    asyncio.run(run())
