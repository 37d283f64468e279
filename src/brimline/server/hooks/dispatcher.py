"""Where hooks and status lines are answered: a request as it came, a reply as its client reads."""

import asyncio
import logging
from functools import partial
from typing import NamedTuple

import msgspec

from brimline.agents import get_agent
from brimline.agents.hook_adapter import HookRequest
from brimline.bounded_reads import SHARED_READS, ReadThreads
from brimline.errors import BrimlineError
from brimline.hooks.receipt import decode_receipt
from brimline.monitor.monitor import Monitor
from brimline.observations import EMPTY_REPLY, EnvironmentVariables, Observation, Reply
from brimline.server.hooks.clear_detection import ClearDetection
from brimline.server.hooks.process_context import pane_of, spawner
from brimline.server.hooks.status_line import StatusLines
from brimline.server.local_environment import CLIENT_ENV_VARS, ParentSessions
from brimline.server.retry import is_transient
from brimline.store.failures import StoreFailed
from brimline.tmux.clear import SessionClearer

LOGGER = logging.getLogger("brimline.server")


class Answer(NamedTuple):
    """What goes to the hook's standard output, and what is done when it got there.

    It `matters` where it has to be known that the client passed it on.
    """

    text: bytes
    reply: Reply = EMPTY_REPLY
    matters: bool = False


SILENCE = Answer(b"")

WAITED = 3.0
"""So many seconds after it was run no client waits for an answer: it went on alone long before."""

MAX_SPAWNERS = 4_096
"""So many sessions, at most, are held with what spawned them; of others it is asked again."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BrimlineError)
"""What a request ends with that is no hook's, nor a status line's: text that is no UTF-8, or JSON
that is nested without an end, among others."""

SUBAGENT_FILE_WAIT_S = 0.1
"""A hook that needs a look at its subagent's file waits this long for it."""


class HookDispatcher:
    """Takes requests of the hook client; what cannot be read is counted and gets no answer.

    `hooks` is when each agent was last heard.
    """

    def __init__(
        self,
        monitor: Monitor,
        lines: StatusLines,
        clearing: SessionClearer,
        parents: ParentSessions,
        threads: ReadThreads = SHARED_READS,
        max_spawners: int = MAX_SPAWNERS,
    ) -> None:
        self._monitor = monitor
        self._threads = threads
        self._lines = lines
        self._clearing = clearing
        self._parents = parents
        self._spawners: dict[str, str | None] = {}
        self._max_spawners = max_spawners
        self._cleared = ClearDetection()
        self.heard = 0
        self.malformed = 0
        self.hooks: dict[str, float] = {}

    async def handle(self, request: HookRequest, late: bool = False) -> Answer:
        """The answer to a request; `late` ones are out of the spool, nobody waits for it.

        Nor does anyone for one that was not heard for a while, as when the daemon was stopped.
        StoreFailed where it could not be kept, and is to be told again.
        """
        if request.kind == "delivered":
            return await self._take_receipt(request)
        self.heard += 1
        late = late or self._monitor.now() - request.at > WAITED
        try:
            if request.kind == "statusline":
                return await self._status(request, late)
            return await self._hook(request, late)
        except StoreFailed as error:
            if not late or is_transient(error):
                self.heard -= 1
                raise
            LOGGER.warning("a %s of %s cannot be kept: %s", request.kind, request.agent, error)
        except UNREADABLE:
            pass
        except TimeoutError as error:
            LOGGER.warning("a %s of %s is dropped: %s", request.kind, request.agent, error)
        except Exception:  # a fault of ours must not end the daemon, nor hold up an agent
            LOGGER.exception("a %s of %s was not answered", request.kind, request.agent)
        self.malformed += 1
        return SILENCE

    async def done(self, answer: Answer, passed_on: bool) -> None:
        """Whether the client got the answer to where it belongs; StoreFailed: not kept yet."""
        told = self._monitor.mark_delivered if passed_on else self._monitor.requeue
        await told(answer.reply)

    async def _take_receipt(self, request: HookRequest) -> Answer:
        """Mark as delivered what a client printed and got no confirmation of; StoreFailed."""
        try:
            await self._monitor.mark_delivered(decode_receipt(request.body))
        except UNREADABLE as error:
            if isinstance(error, StoreFailed) and is_transient(error):
                raise
            self.malformed += 1
        return SILENCE

    async def _hook(self, request: HookRequest, late: bool) -> Answer:
        heard = await self._heard(request, late)
        if heard is None:
            return SILENCE
        self._hears(heard)
        if heard.session not in self._spawners:
            await self._find_spawner(heard, request)
        if (before := self._cleared.before(request.pid, heard)) is not None:
            await self._monitor.record_clear(before, heard.session, heard.at)
        self._cleared.hear(request.pid, heard)
        await self._parents.refresh(heard.project)
        placed = self._placed(heard, request)
        reply = await self._monitor.observe(placed)
        if self._clearing.has_requests:
            await self._clearing.observe(placed)
        if reply is EMPTY_REPLY:
            return SILENCE
        matters = bool(reply.handed) or reply.handoff is not None
        return Answer(get_agent(request.agent).hooks.encode_reply(request, reply), reply, matters)

    async def _status(self, request: HookRequest, late: bool) -> Answer:
        heard, told = get_agent(request.agent).status_line(request, request.at, late)
        self._hears(heard)
        if heard.session not in self._spawners:
            await self._find_spawner(heard, request)
        await self._parents.refresh(heard.project)
        await self._monitor.observe(self._placed(heard, request))
        if late:
            return SILENCE
        return Answer(await self._lines.drawn(request, told, heard.project))

    async def _heard(self, request: HookRequest, late: bool) -> Observation | None:
        """Decode a hook; TimeoutError if it needs a look at a file that hangs."""
        hooks = get_agent(request.agent).hooks
        decode = partial(hooks.observe, request, request.at, late)
        if hooks.may_read_files(request):
            return await self._threads.run(decode, SUBAGENT_FILE_WAIT_S)
        return decode()

    def _hears(self, heard: Observation) -> None:
        """Remember when an agent was last heard; the spool tells of a time before that."""
        if not heard.late:
            self.hooks[heard.agent] = heard.at

    def _placed(self, heard: Observation, request: HookRequest) -> Observation:
        """The same with where it runs, and whose it is: as its environment says, as its project's
        settings name it, or the session that spawned it."""
        spawned_by = self._spawners.get(heard.session)
        parent = heard.parent or self._parents.get(heard.project) or spawned_by
        pane = pane_of(request.env)
        env = _goes_by(request)
        if parent is None and pane is None and env is None:
            return heard
        return msgspec.structs.replace(heard, parent=parent, pane=pane, env=env)

    async def _find_spawner(self, heard: Observation, request: HookRequest) -> None:
        """Asked once for each session: a hook of a process that lives can tell."""
        if not heard.late and request.pid:
            found = await asyncio.to_thread(spawner, request.pid, heard.session)
            self._spawners[heard.session] = found
            if len(self._spawners) > self._max_spawners:
                del self._spawners[next(iter(self._spawners))]


def _goes_by(request: HookRequest) -> EnvironmentVariables | None:
    """What its client goes by; of one that posts its hooks, and runs no process, it is unknown."""
    if not request.pid:
        return None
    return tuple([pair for pair in request.env.items() if pair[0] in CLIENT_ENV_VARS])
