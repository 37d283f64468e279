"""The monitor: what is heard -> fold -> decide -> store -> messages. Nothing else is wired."""

import asyncio
from collections.abc import Callable, Sequence

from brimline.events import MAIN
from brimline.handoff import Document
from brimline.inbox import LIFETIME, Message, Moment, Urgency, due, together
from brimline.monitor.heard import NOTHING, Heard, Reply
from brimline.monitor.recovery import Recovery
from brimline.monitor.rows import call_rows, session_row, thread_row
from brimline.monitor.rules import Rules
from brimline.monitor.telling import Telling, key
from brimline.monitor.watched import Watched
from brimline.policy.signals import Said, decide
from brimline.store.base import (
    HandoffRow,
    Mark,
    Once,
    PutCall,
    PutSession,
    PutThread,
    Queue,
    Store,
    UseHandoff,
    Write,
)
from brimline.tracker import Reading
from brimline.windows import UNTOLD, ClientSettings

MOMENTS: dict[str, Moment] = {"prompt": "turn", "stopped": "stop", "tool": "tool"}


class Monitor:
    """Every session that is heard of, its state in a store; one at a time for each session."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        rules: Rules | None = None,
        client_settings: Callable[[str, str | None], ClientSettings] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules or Rules()
        self._client_settings = client_settings or _untold
        self._watched: dict[str, Watched] = {}
        self._fired: dict[str, set[tuple[int, float]]] = {}
        self._compactions: dict[str, list[float]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._recovery = Recovery(store, clock)

    async def hear(self, heard: Heard) -> Reply:
        """Take in one thing, once, and answer it."""
        lock = self._locks.setdefault(heard.session, asyncio.Lock())
        async with lock:
            watched = await self._session(heard)
            before = watched.last or self._read(watched)
            watched.hear(heard)
            after = watched.last = self._read(watched)
            levels = self._rules.levels_of(watched)
            said = decide(before, after, levels, self._armed(watched), self._rules.of)
            if not await self._keep(heard, watched, (before, after), said):
                return NOTHING
            if heard.what == "compacting" and heard.transcript is not None:
                self._recovery.begin_draft(watched, heard.transcript)
            return NOTHING if heard.late else await self._answer(heard, watched)

    def now(self) -> float:
        """The monitor's time."""
        return self._clock()

    def reading(self, session: str) -> Reading:
        """The present reading of a session that was heard of."""
        watched = self._watched[session]
        return watched.last or self._read(watched)

    async def passed_on(self, reply: Reply) -> None:
        """The hook says that it gave the answer to the agent: its messages are delivered."""
        now = self._clock()
        writes: list[Write] = [Mark(id, "delivered", ("handed",), now) for id in reply.handed]
        if reply.handoff is not None:
            writes.append(UseHandoff(reply.handoff, now))
        if writes:
            await self._store.write(writes)

    async def lost(self, reply: Reply) -> None:
        """The hook died before it could: its messages wait again."""
        now = self._clock()
        if reply.handed:
            await self._store.write([Mark(id, "queued", ("handed",), now) for id in reply.handed])

    async def send(
        self, session: str, text: str, urgency: Urgency = "sequential", sender: str = "user"
    ) -> str:
        """Queue a message for a session; its id."""
        now = self._clock()
        id = key("message", session, text, sender, repr(now))
        message = Message(id, session, text, now, urgency=urgency, sender=sender,
                          expires=now + LIFETIME)  # fmt: skip
        await self._store.write([Queue(message)])
        return id

    async def hand_over(self, session: str, document: Document, author: str) -> HandoffRow:
        """Keep a session's handoff document; the last one counts."""
        watched = self._watched.get(session)
        return await self._recovery.keep(session, watched, document, author)

    async def _session(self, heard: Heard) -> Watched:
        """A session as it was known, also to a monitor before this one."""
        known = self._watched.get(heard.session)
        if known is not None:
            return known
        rows = [r for r in await self._store.threads(heard.session) if r.thread == MAIN]
        signals = await self._store.signals(heard.session)
        self._fired[heard.session] = {(s.cycle, s.level) for s in signals if s.kind == "level"}
        self._compactions[heard.session] = [s.at for s in signals if s.kind == "compacted"]
        cycle, seq = max(((row.cycle, row.seq) for row in rows), default=(0, 0))
        made = Watched(heard.agent, heard.session, cycle, seq)
        self._watched[heard.session] = made
        return made

    def _read(self, watched: Watched) -> Reading:
        told = self._client_settings(watched.agent, watched.project)
        return watched.reading(self._rules.overrides, told)

    def _armed(self, watched: Watched) -> set[float]:
        """The levels that were told in the present cycle."""
        return {level for cycle, level in self._fired[watched.id] if cycle == watched.cycle}

    async def _keep(
        self,
        heard: Heard,
        watched: Watched,
        readings: tuple[Reading, Reading],
        said: Sequence[Said],
    ) -> bool:
        """Store what is new, in one transaction; False where it was heard before."""
        before, reading = readings
        writes: list[Write] = [
            Once(heard.id, heard.at),
            PutSession(session_row(heard, watched)),
            *([] if reading == before else [PutThread(thread_row(watched, reading))]),
            *(PutCall(row) for row in call_rows(watched)),
        ]
        compactions = self._compactions[watched.id]
        telling = Telling(watched, reading, self._rules, heard.at, compactions)
        for each in said:
            writes += telling.writes(each)
        won = await self._store.write(writes)
        if won[0]:
            watched.stored_calls = watched.calls
            self._remember(watched, said, heard.at)
        return won[0]

    def _remember(self, watched: Watched, said: Sequence[Said], at: float) -> None:
        for each in said:
            if each.kind == "level":
                self._fired[watched.id].add((each.cycle, each.level))
            elif each.kind == "compacted":
                self._compactions[watched.id].append(at)

    async def _answer(self, heard: Heard, watched: Watched) -> Reply:
        if heard.what == "compacted":
            return await self._recovery.bring_back(watched)
        moment = MOMENTS.get(heard.what)
        if moment is None or (heard.what == "stopped" and heard.going_on):
            return NOTHING
        waiting = await self._store.messages(watched.id)
        batch = due(waiting, moment, self._clock(), watched.compacting)
        if not batch:
            return NOTHING
        now = self._clock()
        marks: list[Write] = [Mark(m.id, "handed", (m.state,), now, m.handed_at) for m in batch]
        won = await self._store.write(marks)
        mine = [message for message, got in zip(batch, won, strict=True) if got]
        if not mine:
            return NOTHING
        text, ids = together(mine), tuple(message.id for message in mine)
        if heard.what == "stopped":
            return Reply(go_on=text, handed=ids)
        return Reply(context=text, handed=ids)


def _untold(agent: str, project: str | None) -> ClientSettings:
    return UNTOLD
