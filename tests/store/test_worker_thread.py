"""The thread that work is handed to."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from brimline.store.sqlite.worker_thread import Desk


def test_answers_in_a_thread_of_its_own() -> None:
    """What is asked is answered in one other thread, which also ends what it began."""
    threads: list[str] = []

    def answer(asks: Sequence[int]) -> list[int]:
        threads.append(threading.current_thread().name)
        return [ask * 2 for ask in asks]

    async def use() -> list[int]:
        desk = Desk[int, int](
            "mine", answer, lambda: threads.append(threading.current_thread().name), most=2
        )
        answers = await asyncio.gather(*map(desk.ask, range(5)))
        await desk.close()
        return answers

    assert asyncio.run(use()) == [0, 2, 4, 6, 8]
    assert set(threads) == {"mine"}


def test_exception_is_raised_where_it_is_waited_for() -> None:
    """An answer that fails unexpectedly is raised for all that waited, and the next is given."""

    def answer(asks: Sequence[int]) -> list[float]:
        return [1 / ask for ask in asks]

    async def use() -> float:
        desk = Desk[int, float]("mine", answer, lambda: None)
        with pytest.raises(ZeroDivisionError):
            await desk.ask(0)
        answered = await desk.ask(4)
        await desk.close()
        return answered

    assert asyncio.run(use()) == 0.25
