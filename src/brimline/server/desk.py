"""Where hooks and status lines are answered: a request as it came, a reply as its client reads."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from brimline.channels.clearing import Clearing
from brimline.errors import BrimlineError
from brimline.hooks import agents
from brimline.hooks.frame import Request
from brimline.monitor.heard import NOTHING, Heard, Reply
from brimline.monitor.monitor import Monitor
from brimline.server.lines import Lines
from brimline.server.spawned import pane_of, spawner

LOGGER = logging.getLogger("brimline.server")


class Answer(NamedTuple):
    """What goes to the hook's standard output, and what is done when it got there."""

    text: bytes
    reply: Reply

    @property
    def matters(self) -> bool:
        """Whether it has to be known that the client passed it on."""
        return bool(self.reply.handed) or self.reply.handoff is not None


SILENCE = Answer(b"", NOTHING)

GOES_BY = frozenset(
    {
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "DISABLE_AUTO_COMPACT",
        "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    }
)
"""Variables of an agent that tell where its client compacts; the daemon has others, or none."""

Parent = Callable[[str | None], str | None]
"""The session that is named as the parent of a project's sessions."""


class Desk:
    """Takes requests of the hook client; what cannot be read is counted and gets no answer."""

    def __init__(self, monitor: Monitor, lines: Lines, clearing: Clearing, parent: Parent) -> None:
        self._monitor = monitor
        self._lines = lines
        self._clearing = clearing
        self._parent = parent
        self._spawners: dict[str, str | None] = {}
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
        except Exception:  # a fault of ours must not end the daemon, nor hold up an agent
            LOGGER.exception("a %s of %s was not answered", request.kind, request.agent)
            self.malformed += 1
            return SILENCE

    async def done(self, answer: Answer, passed_on: bool) -> None:
        """Whether the client got the answer to where it belongs."""
        told = self._monitor.passed_on if passed_on else self._monitor.lost
        await told(answer.reply)

    async def _hook(self, request: Request, late: bool) -> Answer:
        heard = agents.heard(request, request.at, late)
        if heard is None:
            return SILENCE
        placed = await self._placed(heard, request)
        reply = await self._monitor.hear(placed)
        await self._clearing.hear(placed)
        return Answer(agents.answer(request, reply), reply)

    async def _status(self, request: Request, late: bool) -> Answer:
        heard, told = agents.heard_status(request, request.at, late)
        await self._monitor.hear(await self._placed(heard, request))
        if late:
            return SILENCE
        return Answer(await self._lines.drawn(request, told, heard.project), NOTHING)

    async def _placed(self, heard: Heard, request: Request) -> Heard:
        """The same with where it runs, and whose it is: as its environment says, as its project's
        settings name it, or the session that spawned it."""
        parent = heard.parent or self._parent(heard.project) or await self._spawner(heard, request)
        pane = pane_of(request.env)
        env = tuple(pair for pair in request.env.items() if pair[0] in GOES_BY)
        if parent is None and pane is None and not env:
            return heard
        return msgspec.structs.replace(heard, parent=parent, pane=pane, env=env)

    async def _spawner(self, heard: Heard, request: Request) -> str | None:
        """Asked once for each session: a hook of a process that lives can tell."""
        if heard.session not in self._spawners and not heard.late and request.pid:
            found = await asyncio.to_thread(spawner, request.pid, heard.session)
            self._spawners[heard.session] = found
        return self._spawners.get(heard.session)
