"""The functions that a tracker calls when a level is reached, synchronous or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from brimline.context.tracker import Reading
from brimline.sdk.stream import LOGGER

if TYPE_CHECKING:
    from asyncio import Task


class LevelReached(msgspec.Struct, frozen=True):
    """A level that a thread has reached, for the first time in its cycle."""

    level: float
    thread: str
    reading: Reading


OnLevel: TypeAlias = Callable[[LevelReached], object]

_running: set[Task[Any]] = set()  # an event loop itself keeps no task alive


def call_listeners(listeners: Sequence[OnLevel], reached: Iterable[LevelReached]) -> None:
    """Call every listener for every level, then raise the first error of one of them."""
    errors: list[Exception] = []
    for level in reached:
        for listener in listeners:
            try:
                _run(listener(level))
            except Exception as error:  # noqa: BLE001  a listener may raise anything
                errors.append(error)
    if errors:
        raise errors[0]


def _run(returned: object) -> None:
    """Run what an `async def` listener returned: in the running loop, else to its end."""
    if not isawaitable(returned):
        return
    import asyncio  # takes 30 ms, and most listeners are functions

    awaited = _wait_for(cast("Awaitable[object]", returned))
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(awaited)
        return
    task = loop.create_task(awaited)
    _running.add(task)
    task.add_done_callback(_finish)


async def _wait_for(returned: Awaitable[object]) -> None:
    await returned


def _finish(task: Task[Any]) -> None:
    _running.discard(task)
    error = None if task.cancelled() else task.exception()
    if error is not None:
        LOGGER.error("a listener of a level failed", exc_info=error)
