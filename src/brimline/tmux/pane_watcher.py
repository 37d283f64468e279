"""The pane of a session that is to be cleared, looked at until it is sure what goes on there."""

import asyncio
from collections.abc import Callable

import msgspec

from brimline.tmux.clear_requests import Intent
from brimline.tmux.composers import has_queued
from brimline.tmux.screen import is_cleared
from brimline.tmux.typing import Looked, Tmux


class Pace(msgspec.Struct, frozen=True):
    """How many seconds: between two looks, for a turn to end on the screen, for a clear.

    A pane that is idle for `over` has no turn on; it is looked at for `watched` altogether.
    """

    every: float = 0.2
    idle: float = 30.0
    cleared: float = 15.0
    over: float = 10.0
    watched: float = 3600.0

    @property
    def pause(self) -> float:
        """So long a client has to draw the next turn, and its hook to tell of it."""
        return self.every * 5


class Watch:
    """Looks at panes; what it says of one is said of what it shows, whatever the hooks tell."""

    def __init__(self, tmux: Tmux, clock: Callable[[], float], pace: Pace) -> None:
        self._tmux, self._clock, self._pace = tmux, clock, pace

    async def look(self, intent: Intent) -> Looked:
        """The pane as it is now."""
        return await self._tmux.look(intent.pane, intent.agent)

    async def idle(self, intent: Intent) -> Looked:
        """The pane once it is idle with nothing typed, or as it is when that took too long."""
        end = self._clock() + self._pace.idle
        while (now := await self.look(intent)).composer.state != "empty":
            if self._clock() > end or now.is_gone:
                return now
            await asyncio.sleep(self._pace.every)
        return now

    async def changed(self, intent: Intent) -> bool:
        """Whether what stood there before is gone, by now or soon."""
        end = self._clock() + self._pace.cleared
        while not is_cleared(intent.rows, (await self.look(intent)).screen):
            if self._clock() > end:
                return False
            await asyncio.sleep(self._pace.every)
        return True

    async def has_queued(self, intent: Intent) -> bool:
        """Whether words of the user wait there, for the agent to read them in this turn."""
        screen = (await self.look(intent)).screen
        return screen is not None and has_queued(intent.agent, screen)

    async def at_work(self, intent: Intent) -> bool:
        """Whether a turn may be on: a pane that is idle at once, and twice again, has none."""
        for pause in (0.0, self._pace.pause, self._pace.pause):
            await asyncio.sleep(pause)
            if (await self.look(intent)).composer.state != "empty":
                return True
        return False

    async def is_over(self, intent: Intent) -> bool:
        """Whether the turn ended while it was watched; an end that a hook tells comes first."""
        end = self._clock() + self._pace.watched
        idle = 0.0
        while idle < self._pace.over and self._clock() < end:
            await asyncio.sleep(2 * self._pace.pause)
            empty = (await self.look(intent)).composer.state == "empty"
            idle = idle + 2 * self._pace.pause if empty else 0.0
        return idle >= self._pace.over
