"""Dispatches hook and status-line requests to the monitor, and encodes the replies."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from brimline.agents import get_agent, is_hook_of_another_client
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.observations import (
    DUPLICATE,
    EMPTY_REPLY,
    EnvironmentVariables,
    Observation,
    Reply,
)
from brimline.daemon.hook_requests.contacts import SessionContacts
from brimline.daemon.hook_requests.status_line_reply import StatusLines
from brimline.daemon.local_environment import CLIENT_ENV_VARS
from brimline.daemon.parent_session import ParentSessions, find_spawner
from brimline.daemon.retry import is_transient
from brimline.daemon.tmux.clear import SessionClearer
from brimline.daemon.tmux.pane import pane_from_environment
from brimline.errors import BrimlineError, StoreFailed
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.hooks.protocol import decode_receipt
from brimline.monitor.monitor import Monitor

LOGGER = logging.getLogger("brimline.server")

CLIENT_GAVE_UP_S = 3.0  # no client waits for an answer this long after its start
SUBAGENT_FILE_WAIT_S = 0.1  # a hook waits this long for its subagent's file
MAX_SPAWNERS = 4_096  # sessions whose spawner is remembered; others are looked up again


class Answer(NamedTuple):
    """What goes to the hook's standard output; with `wants_ack`, its delivery is acknowledged.

    `hook_at` is the time of the hook.
    """

    text: bytes
    reply: Reply = EMPTY_REPLY
    wants_ack: bool = False
    hook_at: float = 0.0


NO_ANSWER = Answer(b"")


AnswerHere: TypeAlias = Callable[[HookRequest], Awaitable[bytes]]


async def _answer_nothing(request: HookRequest) -> bytes:
    return b""


async def _do_nothing(observation: Observation) -> None:
    pass


class HookDispatcher:
    """Handles requests of hook clients; what cannot be decoded is counted, and gets no answer.

    `last_contact` is when each agent last sent a request. `answer_here` answers requests of kind
    `here`, which no agent sends. `after_hook` gets each observation that was processed.
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
        self.contacts = SessionContacts()
        self.answer_here: AnswerHere = _answer_nothing
        self.after_hook: Callable[[Observation], Awaitable[None]] = _do_nothing
        self.request_count = 0
        self.malformed = 0
        self.last_contact: dict[str, float] = {}

    async def handle(self, request: HookRequest, late: bool = False) -> Answer:
        """Return the answer to a request; a late one is from the spool, and has none.

        A request whose client must have given up is late too, as after the daemon was stopped.
        Raises StoreFailed if it was not stored and must be sent again.
        """
        if request.kind == "delivered":
            return await self._handle_receipt(request)
        if request.kind == "here":
            return NO_ANSWER if late else Answer(await self.answer_here(request))
        self.request_count += 1
        late = late or self._monitor.now() - request.at > CLIENT_GAVE_UP_S
        try:
            if request.kind == "statusline":
                return await self._handle_status_line(request, late)
            return await self._handle_hook(request, late)
        except StoreFailed as error:
            if not late or is_transient(error):
                self.request_count -= 1
                raise
            LOGGER.warning("cannot store a %s of %s: %s", request.kind, request.agent, error)
        except BrimlineError:
            pass
        except TimeoutError as error:
            LOGGER.warning("dropped a %s of %s: %s", request.kind, request.agent, error)
        except Exception:  # a fault of ours must not end the daemon, nor hold up an agent
            LOGGER.exception("cannot answer a %s of %s", request.kind, request.agent)
        self.malformed += 1
        return NO_ANSWER

    async def acknowledge(self, answer: Answer, passed_on: bool | None) -> None:
        """Record whether the client passed the answer on, None if unknown; raises StoreFailed."""
        if passed_on is None:
            await self._monitor.end_lease(answer.reply, answer.hook_at)
            return
        record = self._monitor.mark_delivered if passed_on else self._monitor.requeue
        await record(answer.reply)

    async def _handle_receipt(self, request: HookRequest) -> Answer:
        """Mark as delivered what a receipt from the spool names; raises StoreFailed."""
        try:
            await self._monitor.mark_delivered(decode_receipt(request.body))
        except BrimlineError as error:
            if isinstance(error, StoreFailed) and is_transient(error):
                raise
            self.malformed += 1
        return NO_ANSWER

    async def _handle_hook(self, request: HookRequest, late: bool) -> Answer:
        observation = await self._decode_hook(request, late)
        if observation is None:
            return NO_ANSWER
        self._record_contact(observation)
        if observation.session not in self._spawners:
            await self._find_spawner(observation, request)
        if (before := self.contacts.predecessor(request.pid, observation)) is not None:
            await self._monitor.record_clear(before, observation.session, observation.at)
        self.contacts.record(request.pid, observation, pane_from_environment(request.env))
        await self._parents.refresh(observation.project)
        placed_observation = self._with_context(observation, request)
        reply = await self._monitor.observe(placed_observation)
        if late:
            await self._monitor.requeue_unanswered(placed_observation)
        if self._clearing.has_requests:
            await self._clearing.observe(placed_observation)
        await self.after_hook(placed_observation)
        if reply in (EMPTY_REPLY, DUPLICATE):
            return NO_ANSWER
        wants_ack = bool(reply.message_ids) or reply.handoff_id is not None or reply.has_pins
        hooks = get_agent(request.agent).hooks
        text = hooks.encode_reply(observation.hook_event, reply)
        return Answer(text, reply, wants_ack, observation.at)

    async def _handle_status_line(self, request: HookRequest, late: bool) -> Answer:
        observation, report = get_agent(request.agent).status_line(request, request.at, late)
        self._record_contact(observation)
        if observation.session not in self._spawners:
            await self._find_spawner(observation, request)
        await self._parents.refresh(observation.project)
        await self._monitor.observe(self._with_context(observation, request))
        if late:
            return NO_ANSWER
        return Answer(await self._lines.draw(request, report, observation.project))

    async def _decode_hook(self, request: HookRequest, late: bool) -> Observation | None:
        """Decode a hook; TimeoutError if it needs a look at a file that hangs."""
        if is_hook_of_another_client(request.agent, request.env):
            return None
        hooks = get_agent(request.agent).hooks
        decode = partial(hooks.observe, request, request.at, late)
        if hooks.may_read_files(request):
            return await self._threads.run(decode, SUBAGENT_FILE_WAIT_S)
        return decode()

    def _record_contact(self, observation: Observation) -> None:
        """Record when an agent last sent a request; not of late ones."""
        if not observation.is_late:
            self.last_contact[observation.agent] = observation.at

    def _with_context(self, observation: Observation, request: HookRequest) -> Observation:
        """Add the pane and the parent: of the environment, the settings or the spawner."""
        spawned_by = self._spawners.get(observation.session)
        parent = observation.parent or self._parents.get(observation.project) or spawned_by
        pane = pane_from_environment(request.env)
        env = _client_env(request)
        if parent is None and pane is None and env is None:
            return observation
        return msgspec.structs.replace(observation, parent=parent, pane=pane, env=env)

    async def _find_spawner(self, observation: Observation, request: HookRequest) -> None:
        """Look up once which session spawned this one; only a live process can tell."""
        if not observation.is_late and request.pid:
            spawner = await asyncio.to_thread(find_spawner, request.pid, observation.session)
            self._spawners[observation.session] = spawner
            if len(self._spawners) > self._max_spawners:
                del self._spawners[next(iter(self._spawners))]


def _client_env(request: HookRequest) -> EnvironmentVariables | None:
    """Return the variables of the client's settings; None for HTTP hooks, which have no process."""
    if not request.pid:
        return None
    return tuple([pair for pair in request.env.items() if pair[0] in CLIENT_ENV_VARS])
