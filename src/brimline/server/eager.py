"""Work that is begun at once, and becomes a task only where it has to wait.

A task costs more than most hooks need to be answered. What is begun so may not ask which task it is
in before it first waits.
"""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Work until it first waits; the task that does the rest, None where nothing is left."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    return asyncio.get_running_loop().create_task(_rest(work, waits_for))


async def _rest(work: Coroutine[Any, Any, None], waits_for: object) -> None:
    await _go_on(work, waits_for)


@coroutine
def _go_on(work: Coroutine[Any, Any, None], waits_for: object) -> Generator[object, Any, None]:
    """Hand on what the work waits for, and give it what comes of that, until it ends."""
    try:
        while True:
            try:
                came = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - it goes where it belongs
                waits_for = work.throw(thrown)
            else:
                waits_for = work.send(came)
    except StopIteration:
        return
