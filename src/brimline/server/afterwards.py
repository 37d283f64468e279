"""Hooks that were answered before what they brought was taken in: that is done a moment later."""

import asyncio
import logging

import msgspec

from brimline.monitor.heard import Heard
from brimline.monitor.monitor import Monitor

LOGGER = logging.getLogger("brimline.server")

LATER = 0.2
"""So many seconds: what a session's hooks bring meanwhile is taken in together."""


class Afterwards:
    """What a monitor has still to hear, the last of each session: its transcript tells the rest."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._heard: dict[str, Heard] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def hear(self, heard: Heard) -> None:
        """Hear later what a hook brought."""
        self._heard[heard.session] = heard
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATER, self._begin)

    async def close(self) -> None:
        """Hear it all now."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await self._task
        await self._all()

    def _begin(self) -> None:
        self._timer = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._all())

    async def _all(self) -> None:
        while self._heard:
            _, heard = self._heard.popitem()
            try:
                await self._monitor.hear(msgspec.structs.replace(heard, what="wrote"))
            except Exception:  # a fault of ours, or of the disk: the next hook brings it again
                LOGGER.exception("what a hook of %s brought was not kept", heard.agent)
