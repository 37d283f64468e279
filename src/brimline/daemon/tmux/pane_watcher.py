"""Poll the pane of a session that is to be cleared until its state is certain."""

import asyncio
from collections.abc import Callable

import msgspec

from brimline.daemon.tmux.clear_requests import ClearRequest
from brimline.daemon.tmux.composers import has_queued
from brimline.daemon.tmux.screen import is_cleared
from brimline.daemon.tmux.typist import PaneView, Typist


class ClearTimings(msgspec.Struct, frozen=True):
    poll_s: float = 0.2
    idle_s: float = 30.0  # for the screen to show that the turn ended
    cleared_s: float = 15.0  # for the hook and the screen to confirm the clear
    interrupted_s: float = 10.0  # a pane idle for this long without a Stop hook was interrupted
    watch_s: float = 3600.0  # how long a pane is watched for an interruption

    @property
    def settle_s(self) -> float:
        """How long a client has to draw its next turn, and its hook to report it."""
        return self.poll_s * 5


class PaneWatcher:
    """Reads panes of clear requests; it reports what they show, not what hooks report."""

    def __init__(self, typist: Typist, clock: Callable[[], float], timings: ClearTimings) -> None:
        self._typist, self._clock, self._timings = typist, clock, timings

    async def view(self, request: ClearRequest) -> PaneView:
        return await self._typist.view(request.pane, request.agent)

    async def wait_until_idle(self, request: ClearRequest) -> PaneView:
        """Return the pane once its composer is empty, or its last view when that took too long."""
        end = self._clock() + self._timings.idle_s
        while (view := await self.view(request)).composer.state != "empty":
            if self._clock() > end or view.is_gone:
                return view
            await asyncio.sleep(self._timings.poll_s)
        return view

    async def wait_until_cleared(self, request: ClearRequest) -> bool:
        """Whether the former conversation disappears from the pane in time."""
        end = self._clock() + self._timings.cleared_s
        while not is_cleared(request.rows, (await self.view(request)).screen):
            if self._clock() > end:
                return False
            await asyncio.sleep(self._timings.poll_s)
        return True

    async def has_queued(self, request: ClearRequest) -> bool:
        """Whether a prompt of the user waits in the pane to be read by the agent."""
        screen = (await self.view(request)).screen
        return screen is not None and has_queued(request.agent, screen)

    async def may_be_in_turn(self, request: ClearRequest) -> bool:
        """Whether a turn may be running: False if the pane is idle three times in a row."""
        for delay_s in (0.0, self._timings.settle_s, self._timings.settle_s):
            await asyncio.sleep(delay_s)
            if (await self.view(request)).composer.state != "empty":
                return True
        return False

    async def was_interrupted(self, request: ClearRequest) -> bool:
        """Whether the pane becomes and stays idle while it is watched, without a Stop hook."""
        end = self._clock() + self._timings.watch_s
        idle_s = 0.0
        while idle_s < self._timings.interrupted_s and self._clock() < end:
            await asyncio.sleep(2 * self._timings.settle_s)
            is_empty = (await self.view(request)).composer.state == "empty"
            idle_s = idle_s + 2 * self._timings.settle_s if is_empty else 0.0
        return idle_s >= self._timings.interrupted_s
