"""The monitor: what is heard -> fold -> decide -> store -> messages. Nothing else is wired."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakValueDictionary

from brimline.events import MAIN
from brimline.handoff import Document
from brimline.inbox import MESSAGE_LIFETIME_S, Message, Urgency, is_pending
from brimline.monitor.clear_handover import record_continuation
from brimline.monitor.environment import MonitorEnvironment
from brimline.monitor.handoffs import HandoffRecovery, When
from brimline.monitor.hook_reply import HookReplies
from brimline.monitor.monitored_session import MonitoredSession
from brimline.monitor.restore import restored
from brimline.monitor.rules import Rules
from brimline.monitor.session_state import SessionState
from brimline.monitor.signal_writes import SignalWriter, key, left_for
from brimline.observations import DUPLICATE, EMPTY_REPLY, UNPROMPTED, Observation, Reply
from brimline.policy.signals import Signal, decide, figure_of
from brimline.policy.sources import unheard
from brimline.store.base import (
    CancelMessages,
    EventKey,
    ForgetSessions,
    MarkMessage,
    QueueMessage,
    RecordSignal,
    Store,
    UseHandoff,
    Write,
)
from brimline.store.rows import HandoffRow, ThreadRow
from brimline.tracker import Reading
from brimline.windows import ClientSettings

KEPT_CALLS = 128
"""So many last calls of a thread are held in memory: the store has them all.

A forecast needs 101 of them. A call that is told again is known among these; copies in real
transcripts are neighbours (3,014 of 3,014 in 35 sessions of Claude Code).
"""

IDLE_SESSION_S = 24 * 3_600.0
"""After so many seconds a session is in the store alone: by then no page shows its trend."""

IDLE_SUBAGENT_S = 3_600.0
"""After so many seconds without a call a subagent is in the store alone."""


class Monitor:
    """Every session that is heard of, its state in a store; one at a time for each session."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        rules: Rules | None = None,
        around: MonitorEnvironment | None = None,
        kept_calls: int = KEPT_CALLS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules or Rules()
        self._around = around or MonitorEnvironment()
        self._sessions: dict[str, MonitoredSession] = {}
        self._kept_calls = kept_calls
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._recovery = HandoffRecovery(store, clock)
        self._answering = HookReplies(store, clock, self._rules, self._recovery)

    async def observe(self, heard: Observation) -> Reply:
        """Take in one thing, once, and answer it."""
        async with self._lock(heard.session):
            if _may_be_known(heard) and await self._store.has_event(heard.id):
                return DUPLICATE
            session = await self._session(heard.session, heard.agent)
            try:
                kept = await self._take(heard, session)
            except BaseException:
                # What was heard is not kept: told again, it must be as new as it was.
                self._sessions.pop(heard.session, None)
                raise
            return await self._answer(heard, session) if kept else DUPLICATE

    async def _take(self, heard: Observation, session: MonitoredSession) -> bool:
        """Take in one thing; False where it was heard before."""
        watched, session.is_clean = session.state, False
        await self._refresh(watched)
        known: Mapping[str, Reading] = {}
        if not watched.is_new:
            known = watched.last or self._read(watched)
        await watched.hear(heard)
        await self._refresh(watched)
        if not await self._keep(heard, session, known):
            return False
        watched.is_new = False
        return True

    async def _answer(self, heard: Observation, session: MonitoredSession) -> Reply:
        watched = session.state
        begins = heard.what == "compacting" and watched.compacting
        if begins and (transcript := _transcript(heard, watched)):
            self._recovery.prepare(watched, transcript, heard.at)
        if heard.late or heard.what in UNPROMPTED or self._around.silent(heard.session):
            return EMPTY_REPLY
        return await self._answering.answer(heard, session)

    def now(self) -> float:
        """The monitor's time."""
        return self._clock()

    def watched(self, session: str) -> SessionState | None:
        """A session that was heard of."""
        known = self._sessions.get(session)
        return known.state if known else None

    def is_behind(self, session: str) -> bool:
        """Whether a session's files took too long to read, and should be heard of again."""
        known = self._sessions.get(session)
        return known is not None and known.state.files.is_behind

    def reading(self, session: str) -> Reading:
        """The present reading of the main thread of a session that was heard of."""
        return self._read(self._sessions[session].state)[MAIN]

    def calls_left(self, session: str) -> int | None:
        """How many calls the main thread has until its limit, at its present pace."""
        watched = self.watched(session)
        return left_for(watched, MAIN, self.reading(session)) if watched else None

    async def forget(self, before: float) -> None:
        """Forget every session that was last seen before a time: told again, all of it is new."""
        await self._store.write([ForgetSessions(before)])
        old = [id for id, known in self._sessions.items() if known.stored.seen_before(before)]
        self._drop_sessions(old)

    def release_idle(self) -> None:
        """Hold nothing in memory of sessions and subagents that were idle for long.

        What is heard of them later is heard as after a restart: the store and the files tell what
        was before.
        """
        now = self._clock()
        free = {
            id: known
            for id, known in self._sessions.items()
            if id not in self._locks and not self._recovery.is_busy(id)
        }
        idle = [id for id, known in free.items() if known.is_idle(now - IDLE_SESSION_S)]
        self._drop_sessions(idle)
        for known in free.values():
            known.release_idle_threads(now - IDLE_SUBAGENT_S)

    def _drop_sessions(self, ids: Sequence[str]) -> None:
        for id in ids:
            del self._sessions[id]
            self._recovery.forget(id)

    async def mark_delivered(self, reply: Reply) -> None:
        """The hook says that it gave the answer to the agent: its messages are delivered.

        That may be said late, by a receipt: they may be queued again by then, or handed out again.
        """
        now = self._clock()
        writes: list[Write] = [
            MarkMessage(id, "delivered", ("queued", "handed"), now) for id in reply.handed
        ]
        self._answering.passed_on.update(reply.handed)
        if reply.handoff is not None:
            writes.append(UseHandoff(reply.handoff, now))
        if writes:
            await self._store.write(writes)
        self._answering.passed_on.difference_update(reply.handed)
        if reply.handoff is not None and (known := self._sessions.get(reply.session)):
            known.handoff_pending = False

    async def requeue(self, reply: Reply) -> None:
        """The hook died before it could: its messages wait again."""
        now = self._clock()
        if reply.handed:
            await self._store.write(
                [MarkMessage(id, "queued", ("handed",), now) for id in reply.handed]
            )

    async def send(
        self, session: str, text: str, urgency: Urgency = "sequential", sender: str = "user"
    ) -> str:
        """Queue a message for a session; its id."""
        now = self._clock()
        id = key("message", session, text, sender, repr(now))
        message = Message(id, session, text, now, urgency=urgency, sender=sender,
                          expires=now + MESSAGE_LIFETIME_S)  # fmt: skip
        await self._store.write([QueueMessage(message)])
        return id

    async def record_clear(self, session: str, other: str, at: float) -> None:
        """A session was cleared: it goes on as another, whose is what waits for it, or will."""
        await record_continuation(self._store, session, other, at, self._clock())

    def refresh_message(self, message: Message) -> Message:
        """A message as it is to be given by another way than a hook's answer."""
        session = self._sessions.get(message.session)
        return self._answering.of_now(session, message) if session else message

    async def cancel(self, message: Message) -> bool:
        """Cancel a message; whether it still waited, and so is not given to anyone."""
        now = self._clock()
        if not is_pending(message, now):
            return False
        mark = MarkMessage(message.id, "cancelled", (message.state,), now, message.handed_at)
        return (await self._store.write([mark]))[0]

    async def hand_over(self, session: str, document: Document, author: str) -> HandoffRow:
        """Keep a session's handoff document; the last one counts, and the levels are armed anew.

        Whoever has written it is not asked for it any more.
        """
        async with self._lock(session):
            row, now = await self._store.session(session), self._clock()
            if row is None:
                return await self._recovery.keep(session, When(now), document, author)
            known = await self._session(session, row.agent)
            stored = await self._stored(session)
            calls = max([known.state.calls, *(thread.calls for thread in stored)])
            when = When(now, known.state.cycle, calls)
            kept = await self._recovery.keep(session, when, document, author)
            await self._store.write([CancelMessages(session, MAIN, kept.cycle)])
            known.signals.arm_anew(kept.cycle)
            for thread in stored:
                known.signals.seen(thread.cycle, figure_of(thread, self._rules.of))
            return kept

    def _lock(self, session: str) -> asyncio.Lock:
        """The lock of a session, which is there as long as somebody holds it or waits for it."""
        return self._locks.setdefault(session, asyncio.Lock())

    async def _session(self, session: str, agent: str) -> MonitoredSession:
        """A session as it was known, also to a monitor before this one."""
        known = self._sessions.get(session)
        if known is None:
            past = await restored(self._store, agent, session, self._rules.of)
            known = self._sessions[session] = MonitoredSession(*past)
        return known

    async def _stored(self, session: str) -> list[ThreadRow]:
        """The main thread as it was kept last; its files may not have been read again yet."""
        return [row for row in await self._store.threads(session) if row.thread == MAIN]

    async def _refresh(self, watched: SessionState) -> None:
        await self._around.refresh(watched.agent, watched.project, watched.env)

    def _settings(self, watched: SessionState) -> ClientSettings:
        return self._around.settings(watched.agent, watched.project, watched.env)

    def _read(self, watched: SessionState) -> Mapping[str, Reading]:
        return watched.readings(self._rules.overrides, self._settings(watched))

    async def _keep(
        self, heard: Observation, session: MonitoredSession, known: Mapping[str, Reading]
    ) -> bool:
        """Store what is new, in one transaction; False where it was heard before."""
        watched, settings = session.state, self._settings(session.state)
        snapshot = watched.snapshot(settings)
        if session.is_unchanged(heard, snapshot):
            session.mark_saved(snapshot)
            return True
        readings = watched.readings(self._rules.overrides, settings)
        writes = session.stored.pending_writes(heard, watched, readings)
        said = {name: self._said(session, name, known, heard) for name in readings}
        for name, each in said.items():
            writes += self._telling(session, name, heard.at, each)
        if heard.what == "ended" and heard.thread in readings and heard.thread != MAIN:
            # A subagent that is gone cannot be told anything any more.
            writes.append(CancelMessages(watched.id, heard.thread, readings[heard.thread].cycle))
        if not writes and heard.what != "pushed":
            session.mark_saved(snapshot)
            return True  # heard again, it would change nothing again
        once = [] if heard.what == "wrote" else [EventKey(heard.id, heard.at)]
        won = await self._store.write([*once, *writes])
        if once and not won[0]:
            return False
        session.stored.mark_stored(watched, readings)
        for name, each in said.items():
            session.signals.take(name, each, heard.at)
        if any(each.kind == "compacted" for each in said[MAIN]):
            self._owe(heard, session)
        for write, new in zip(writes, won[len(once) :], strict=True):
            if new and isinstance(write, RecordSignal):
                self._around.signalled(write.signal, watched)
        watched.files.drop_stored_calls(self._kept_calls)
        session.mark_saved(watched.snapshot(settings))
        return True

    def _owe(self, heard: Observation, session: MonitoredSession) -> None:
        """A session was compacted: it is owed its document, which may have to be drafted yet."""
        session.handoff_pending = True
        if transcript := _transcript(heard, session.state):
            self._recovery.make_up(session.state, transcript, heard.at)

    def _fired(self, session: MonitoredSession, thread: str, reading: Reading) -> frozenset[float]:
        figure = figure_of(reading, self._rules.of)
        return session.signals.fired(thread, reading.cycle, figure)

    def _levels(self, watched: SessionState, thread: str) -> tuple[float, ...]:
        return self._rules.levels_of(watched.id, watched.agent, watched.model_of(thread))

    def _said(
        self,
        session: MonitoredSession,
        thread: str,
        known: Mapping[str, Reading],
        heard: Observation,
    ) -> list[Signal]:
        watched, before = session.state, session.signals
        reading = watched.last[thread]
        fired = self._fired(session, thread, reading)
        said = decide(
            known.get(thread), reading, self._levels(watched, thread), fired, self._rules.of,
            cleared=thread == MAIN and watched.cleared,
        )  # fmt: skip
        if thread == MAIN:
            said += self._doubts(watched, reading, heard)
        return before.new(thread, said)

    def _doubts(self, watched: SessionState, reading: Reading, heard: Observation) -> list[Signal]:
        """Sources that do not agree, and hooks that tell nothing."""
        said: list[Signal] = []
        if watched.claim.comparison.lasting(heard.at):
            said.append(Signal("disagree", reading.cycle))
        if watched.unheard:
            since = self._around.hooked_since(watched.agent, watched.project)
            if unheard(watched.unheard, watched.begun, since):
                said.append(Signal("no data", reading.cycle))
        return said

    def _telling(
        self, session: MonitoredSession, thread: str, at: float, said: Sequence[Signal]
    ) -> list[Write]:
        tellings = [SignalWriter.of(session, self._rules, thread, each, at) for each in said]
        return [write for telling in tellings for write in telling.writes()]


def _transcript(heard: Observation, watched: SessionState) -> str | None:
    """Where a session is told: in its own file, or in a database with others."""
    return watched.files.own or (heard.file.path if heard.file else None)


def _may_be_known(heard: Observation) -> bool:
    """Whether something may come a second time: out of the spool, or from a program that asks."""
    return heard.late or heard.what == "pushed"
