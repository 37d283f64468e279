"""Hooks that were answered before what they brought was taken in: that is done a moment later."""

import asyncio

import msgspec

from brimline.monitor.monitor import Monitor
from brimline.observations import Observation
from brimline.server.retry import RateLimitedLog, is_transient

LATER = 0.2
"""So many seconds: what a session's hooks bring meanwhile is taken in together."""

AGAIN = 5.0
"""So many seconds until it is tried again to keep what the store could not."""


class Afterwards:
    """What a monitor has still to hear, the last of each session: its transcript tells the rest."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._heard: dict[str, Observation] = {}
        self._troubles = RateLimitedLog()
        self._timer: asyncio.TimerHandle | None = None
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def hear(self, heard: Observation) -> None:
        """Hear later what a hook brought."""
        self._heard[heard.session] = heard
        if self._timer is None or self._again:
            self._wait(LATER)

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
        """Hear what there is; what the store could not keep is heard again after a while."""
        failed: dict[str, Observation] = {}
        while self._heard:
            session, heard = self._heard.popitem()
            try:
                await self._monitor.observe(msgspec.structs.replace(heard, what="wrote"))
            except Exception as error:  # noqa: BLE001 - a fault of ours, or of the disk
                self._troubles.warn(f"what a hook of {heard.agent} brought was not kept", error)
                if is_transient(error):
                    failed[session] = heard
            else:
                failed.pop(session, None)
        if failed:
            self._heard = failed
            if self._timer is None:
                self._wait(AGAIN, again=True)

    def _wait(self, seconds: float, again: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._again = again
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)
