"""Where hooks and status lines are answered: a request as it came, a reply as its client reads."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from brimline.errors import BrimlineError
from brimline.hooks import claude
from brimline.hooks.frame import Request
from brimline.hooks.statusline import line
from brimline.monitor.heard import NOTHING, Reply
from brimline.monitor.monitor import Monitor
from brimline.server.ownline import OwnLine


class Answer(NamedTuple):
    """What goes to the hook's standard output, and what is done when it got there."""

    text: bytes
    reply: Reply


SILENCE = Answer(b"", NOTHING)


class Desk:
    """Takes requests of the hook client; what cannot be read is counted and gets no answer."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], own: OwnLine) -> None:
        self._monitor = monitor
        self._clock = clock
        self._own = own
        self.heard = 0
        self.malformed = 0

    async def take(self, request: Request, late: bool = False) -> Answer:
        """The answer to a request; `late` ones are out of the spool, nobody waits for it."""
        self.heard += 1
        try:
            if request.kind == "statusline":
                return await self._status(request, late)
            return await self._hook(request, late)
        except (msgspec.DecodeError, BrimlineError):
            self.malformed += 1
            return SILENCE

    async def done(self, answer: Answer, passed_on: bool) -> None:
        """Whether the client got the answer to where it belongs."""
        told = self._monitor.passed_on if passed_on else self._monitor.lost
        await told(answer.reply)

    async def _hook(self, request: Request, late: bool) -> Answer:
        heard = claude.heard_hook(request, self._clock(), late)
        if heard is None:
            return SILENCE
        reply = await self._monitor.hear(heard)
        return Answer(claude.answer(request, reply), reply)

    async def _status(self, request: Request, late: bool) -> Answer:
        heard, told = claude.heard_status(request, self._clock(), late)
        await self._monitor.hear(heard)
        if late:
            return SILENCE
        colour = not request.env.get("NO_COLOR") and request.env.get("TERM") != "dumb"
        columns = request.env.get("COLUMNS", "")
        width = int(columns) if columns.isdigit() else None
        ours = line(self._monitor.reading(heard.session), told, colour, width)
        shown = await self._own.beside(ours, heard.session, heard.project, request.body)
        return Answer(shown.encode() + b"\n", NOTHING)
