"""The monitor: observation -> fold -> decide -> store -> messages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from brimline.agents.observations import DUPLICATE, EMPTY_REPLY, WITHOUT_REPLY, Observation, Reply
from brimline.context.events import MAIN, Call, Spent
from brimline.context.forecast import CallsLeft
from brimline.context.inbox import (
    BRIMLINE,
    DELIVERY_LEASE_S,
    MESSAGE_LIFETIME_S,
    PENDING_STATES,
    Message,
    MessageState,
    Urgency,
    is_pending,
    sign_text,
)
from brimline.context.policy.levels import Fullness, figure_of
from brimline.context.policy.signals import Signal
from brimline.context.tracker import Reading, context_threads
from brimline.context.window import ClientSettings
from brimline.handoff import MAX_FRAME_CHARS, Document
from brimline.monitor.handoffs import HandoffMoment, HandoffRecovery, record_continuation
from brimline.monitor.hook_reply import MOMENTS, HookReplies
from brimline.monitor.machine_environment import MonitorEnvironment, Reachability
from brimline.monitor.restore import replay_lost_calls
from brimline.monitor.session_state import SessionState, calls_left_of
from brimline.monitor.session_table import MAX_ATTEMPTS, MonitoredSession, SessionTable, contended
from brimline.monitor.signal_finder import SignalFinder
from brimline.monitor.user_rules import Rules
from brimline.store.base import (
    CancelMessages,
    ClaimSession,
    EventKeys,
    ForgetSessions,
    MarkMessage,
    QueueMessage,
    RecordSignal,
    Store,
    UseHandoff,
    Write,
    hash_id,
)
from brimline.store.rows import HandoffRow, SessionRow

# The last calls of a thread in memory; the store has all. A forecast needs 101. Copies of a call
# are recognised among these: in 35 sessions of Claude Code all 3,014 copies were neighbours.
MAX_CALLS_IN_MEMORY = 128

MAX_TOGETHER = 500  # calls that are stored together: others wait for 20 ms

LOCAL_MACHINE = "local"  # claims a session whose transcript is on this machine from telemetry

Outcome: TypeAlias = Literal["stored", "duplicate", "conflict"]


class Monitor:
    """Processes observations, one at a time for each session; all state is in the store.

    If it is `shared`, other monitors write to the same sessions: what it holds of a session is
    restored when another one has changed it.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        rules: Rules | None = None,
        environment: MonitorEnvironment | None = None,
        kept_calls: int = MAX_CALLS_IN_MEMORY,
        shared: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules or Rules()
        self._environment = environment or MonitorEnvironment()
        self._sessions = SessionTable(store, self._rules, shared)
        self._signals = SignalFinder(self._rules, self._environment, clock())
        self._reachability = Reachability(store, self._environment)
        self._kept_calls = kept_calls
        draft_chars = self._rules.draft_chars - MAX_FRAME_CHARS
        self._handoffs = HandoffRecovery(store, clock, draft_chars, self._environment)
        self._replies = HookReplies(store, clock, self._rules, self._handoffs, self._environment)

    async def observe(self, observation: Observation) -> Reply:
        """Process an observation, once, and return the reply."""
        return (await self._observe_together([observation]))[0]

    async def observe_all(self, observations: Sequence[Observation]) -> list[Reply]:
        """Process observations of one session in order, each once, and return the replies.

        Calls that a program reports one after the other are stored together. Their levels are
        decided by the last of them, as for the calls that a transcript has grown by.
        """
        replies: list[Reply] = []
        for has_only_usage, run in groupby(observations, _has_only_usage):
            left = list(run)
            while left:
                size = MAX_TOGETHER if has_only_usage else 1
                replies += await self._observe_together(left[:size])
                del left[:size]
        return replies

    async def _observe_together(self, observations: Sequence[Observation]) -> list[Reply]:
        session = observations[0].session
        async with self._sessions.lock(session):
            for _ in range(MAX_ATTEMPTS):
                replies = await self._try_observe(observations)
                if replies is not None:
                    return replies
            raise contended(session)

    async def _try_observe(self, observations: Sequence[Observation]) -> list[Reply] | None:
        """Process observations; None if another monitor has changed their session meanwhile."""
        first = observations[0]
        session = await self._sessions.load(first.session, first.agent)
        # After the session was loaded: its revision shows what another monitor stores from now on.
        new = await self._find_new(observations)
        if not new:
            return [DUPLICATE] * len(observations)
        has_better_source = (
            # A machine's daemon reports the same calls.
            (first.kind == "pushed" and session.state.machine is not None)
            # The files contain the same calls.
            or (first.is_telemetry and session.state.files.has_files)
        )
        reply = EMPTY_REPLY
        if not has_better_source:
            outcome = await self._apply_or_drop(list(new.values()), session)
            if outcome == "conflict":
                return None
            if outcome == "duplicate":
                return [DUPLICATE]
            reply = await self._reply_to(observations[-1], session)
        return [reply if new.pop(each.id, None) else DUPLICATE for each in observations]

    async def _find_new(self, observations: Sequence[Observation]) -> dict[str, Observation]:
        """Return the observations that were not processed before, each once, by their ids."""
        # Only these may come twice: from the spool, or from a program.
        ids = [each.id for each in observations if each.is_late or each.kind == "pushed"]
        known = await self._store.known_events(ids) if ids else set[str]()
        new: dict[str, Observation] = {}
        for each in observations:
            if each.id not in known:
                new.setdefault(each.id, each)
        return new

    async def _apply_or_drop(
        self, observations: Sequence[Observation], session: MonitoredSession
    ) -> Outcome:
        """Apply observations; drop the state in memory if it contains what was not stored."""
        try:
            outcome = await self._apply(observations, session)
        except BaseException:
            self._sessions.drop(session.state.id)
            raise
        # A hook that comes twice changes nothing, but a call that another monitor has stored does.
        if outcome == "conflict" or (outcome == "duplicate" and self._sessions.shared):
            self._sessions.drop(session.state.id)
        return outcome

    async def _apply(
        self, observations: Sequence[Observation], session: MonitoredSession
    ) -> Outcome:
        """Apply observations, and store them together."""
        state, session.is_clean = session.state, False
        await self._refresh(state)
        known: Mapping[str, Reading] = {}
        if not state.is_new:
            known = state.last_readings or self._readings_of(state)
        state.cleared = False
        for observation in observations:
            await state.apply(observation)
            if state.has_lost_calls:
                await self._recover_calls(session, observation)
        await self._refresh(state)
        is_first_write = state.is_new and observations[-1].kind == "wrote"
        if is_first_write and not context_threads(state.folded) and not state.problem:
            return "stored"  # a transcript without a call is no session yet, as in `status`
        outcome = await self._save(observations, session, known)
        if outcome == "stored":
            state.is_new = False
        return outcome

    async def _recover_calls(self, session: MonitoredSession, observation: Observation) -> None:
        """Fold the stored calls that a file has lost, then the file again."""
        lost = await replay_lost_calls(self._store, session.state)
        if lost:
            session.state.files.restore_calls(lost)
            session.stored.mark_restored(session.state)
            await session.state.files.catch_up(observation.file)

    async def _reply_to(self, observation: Observation, session: MonitoredSession) -> Reply:
        state = session.state
        if transcript := _transcript_path(observation, state):
            self._handoffs.follow(observation, state, transcript)
        if (
            observation.is_late
            or observation.kind in WITHOUT_REPLY
            or self._environment.is_muted(observation.session)
        ):
            return EMPTY_REPLY
        return await self._replies.reply_to(observation, session)

    def now(self) -> float:
        return self._clock()

    def state_of(self, session: str) -> SessionState | None:
        """Return the state of a session; None if it is not in memory.

        None also if the monitor is shared: its copy may be older than what is stored.
        """
        known = None if self._sessions.shared else self._sessions.get(session)
        return known.state if known else None

    def is_behind(self, session: str) -> bool:
        """Return whether a session's files took too long to read and must be read again."""
        known = self._sessions.get(session)
        return known is not None and known.state.files.is_behind

    def reading(self, session: str) -> Reading:
        """Return the present reading of the main thread of a session in memory."""
        return self._readings_of(self._sessions[session].state)[MAIN]

    def fullness(self, session: str) -> Fullness | None:
        """Return how full the main thread of a session in memory is, by the user's levels."""
        state = self._sessions[session].state
        model = state.model_of(MAIN)
        return self._rules.fullness_of(self.reading(session), state.id, state.agent, model)

    def calls_left(self, session: str) -> CallsLeft | None:
        """Return how many calls the main thread has left until its limit, at its present pace."""
        state = self.state_of(session)
        return calls_left_of(state, MAIN, self.reading(session)) if state else None

    async def forget(self, before: float) -> None:
        """Delete every session that was last seen before a time."""
        await self._store.write([ForgetSessions(before)])
        self._forget_handoffs(self._sessions.drop_older(before))

    def release_idle(self) -> None:
        """Release sessions and subagents that were idle for long from memory."""
        self._forget_handoffs(self._sessions.release_idle(self._clock(), self._handoffs.is_busy))

    def _forget_handoffs(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            self._handoffs.forget(session)

    async def mark_delivered(self, reply: Reply) -> None:
        """Mark the messages and the document of a reply as delivered.

        A receipt may come late: the messages may be queued or handed out again by then.
        """
        now = self._clock()
        # Also if its cycle has ended meanwhile: the agent has it.
        since: tuple[MessageState, ...] = (*PENDING_STATES, "cancelled")
        writes: list[Write] = [MarkMessage(id, "delivered", since, now) for id in reply.message_ids]
        self._replies.delivered.update(reply.message_ids)
        if reply.handoff_id is not None:
            writes.append(UseHandoff(reply.handoff_id, now))
        if writes:
            await self._store.write(writes)
        self._replies.delivered.difference_update(reply.message_ids)
        if known := self._sessions.get(reply.session):
            known.handoff_pending = known.handoff_pending and reply.handoff_id is None
            known.pins_pending = known.pins_pending and not reply.has_pins

    async def requeue(self, reply: Reply) -> None:
        """Queue the messages of a reply again that did not reach the agent."""
        now = self._clock()
        marks = [MarkMessage(id, "queued", ("handed",), now) for id in reply.message_ids]
        if marks:
            await self._store.write(marks)

    async def requeue_unanswered(self, observation: Observation) -> None:
        """Queue the messages again that were handed to a hook, because its client has spooled it.

        A client spools a hook only if it got no whole answer, and so has printed nothing.
        """
        if observation.kind not in MOMENTS:
            return
        pending, now = await self._store.pending_messages(observation.session), self._clock()
        times = observation.at, observation.at - DELIVERY_LEASE_S
        handed = [message for message in pending if message.handed_at in times]
        marks = [MarkMessage(m.id, "queued", ("handed",), now, m.handed_at) for m in handed]
        if marks:
            await self._store.write(marks)

    async def end_lease(self, reply: Reply, hook_at: float) -> None:
        """Let the next hook get the messages of a reply again, marked as sent again.

        They were handed to the hook of that time. Its client has gone, and may have printed them.
        """
        at = hook_at - DELIVERY_LEASE_S
        marks = [MarkMessage(id, "handed", ("handed",), at, hook_at) for id in reply.message_ids]
        if marks:
            await self._store.write(marks)

    async def send(
        self,
        session: str,
        text: str,
        urgency: Urgency = "sequential",
        sender: str = "user",
        blocks_stop: bool = False,
        id: str | None = None,
    ) -> str:
        """Queue a message for a session, which reads who sent it; return its id."""
        now = self._clock()
        id = id or hash_id("message", session, text, sender, repr(now))
        sender = "user" if sender == BRIMLINE else sender  # no one poses as Brimline
        message = Message(
            id,
            session,
            sign_text(text, sender),
            now,
            urgency=urgency,
            sender=sender,
            expires=now + MESSAGE_LIFETIME_S,
            blocks_stop=blocks_stop,
        )
        await self._store.write([QueueMessage(message)])
        return id

    async def delivery_problem(self, session: str, is_document: bool = False) -> str | None:
        """Return why nothing will deliver a message or a document, and how to change that.

        None if something will, or if the session is unknown or another machine's.
        """
        row = await self._store.session(session)
        if row is None or row.machine not in (None, LOCAL_MACHINE):
            return None
        if row.continued_as is not None:
            return await self.delivery_problem(row.continued_as, is_document)
        known = self._sessions.get(session)
        state = known.state if known else SessionState(row.agent, session)
        return await self._reachability.find_problem(row, state, is_document)

    async def take_messages(self, session: str) -> list[Message]:
        """Hand out the messages that are due to a program that asks for them.

        They are due again after DELIVERY_LEASE_S, unless `mark_delivered` comes first.
        """
        async with self._sessions.lock(session):
            row = await self._store.session(session)
            if row is None or self._environment.is_muted(session):
                return []
            for _ in range(MAX_ATTEMPTS):
                known = await self._sessions.load_stored(session, row.agent)
                known.state.takes_messages = True
                self._readings_of(known.state)  # a level message has the present figures
                messages = await self._replies.hand_out(known, "turn")
                if messages is not None:
                    return messages
            raise contended(session)

    async def record_clear(self, session: str, other: str, at: float) -> None:
        """Record that a cleared session continues as another, which gets its pending messages."""
        await record_continuation(self._store, session, other, at, self._clock())
        await self._environment.continue_pins(session, other)

    def refresh_message(self, message: Message) -> Message:
        """Return a message with present figures, for a delivery without a hook."""
        session = self._sessions.get(message.session)
        return self._replies.refresh_message(session, message) if session else message

    async def cancel(self, message: Message) -> bool:
        """Cancel a message; return False if it was delivered already."""
        now = self._clock()
        if not is_pending(message, now):
            return False
        mark = MarkMessage(message.id, "cancelled", (message.state,), now, message.handed_at)
        return (await self._store.write([mark]))[0]

    async def hand_over(self, session: str, document: Document, author: str) -> HandoffRow:
        """Save a session's handoff document, cancel requests for one, and re-arm the levels."""
        async with self._sessions.lock(session):
            row, now = await self._store.session(session), self._clock()
            if row is None:
                return await self._handoffs.save(session, HandoffMoment(now), document, author)
            known = await self._sessions.load_stored(session, row.agent)
            # The main thread as it is stored: its files may not have been read yet.
            stored = [each for each in await self._store.threads(session) if each.thread == MAIN]
            when = HandoffMoment.of_session(known.state, stored, now)
            saved = await self._handoffs.save(session, when, document, author)
            await self._store.write([CancelMessages(session, MAIN, saved.cycle)])
            if self._sessions.shared:
                await self._sessions.invalidate(session)
                return saved
            known.signals.rearm(saved)
            of = self._rules.measure_of(session, row.agent, known.state.model_of(MAIN))
            for thread in stored:
                if not thread.pending:  # else a level that fired early would fire again
                    figure = figure_of(thread, of)
                    known.signals.note_figure(thread.cycle, figure, thread.calls_left)
            return saved

    async def draft_handoff(self, row: SessionRow, transcript: str) -> HandoffRow | None:
        """Draft a handoff document of a session; None if its transcript has no content yet."""
        async with self._sessions.lock(row.id):
            state = (await self._sessions.load_stored(row.id, row.agent)).state
            stored = [each for each in await self._store.threads(row.id) if each.thread == MAIN]
            when = HandoffMoment.of_session(state, stored, self._clock())
        # Without the lock: a hook must not wait for it.
        return await self._handoffs.draft(state, transcript, when)

    async def _refresh(self, state: SessionState) -> None:
        await self._environment.refresh(state.agent, state.project, state.env)

    def _settings(self, state: SessionState) -> ClientSettings:
        return self._environment.settings(state.agent, state.project, state.env)

    def _readings_of(self, state: SessionState) -> Mapping[str, Reading]:
        return state.readings(self._rules.overrides, self._settings(state))

    async def _save(
        self,
        observations: Sequence[Observation],
        session: MonitoredSession,
        known: Mapping[str, Reading],
    ) -> Outcome:
        """Store what is new in one transaction."""
        observation = observations[-1]
        state, settings = session.state, self._settings(session.state)
        snapshot = state.snapshot(settings)
        if session.is_unchanged(observation, snapshot):
            session.mark_saved(snapshot)
            return "stored"
        readings = state.readings(self._rules.overrides, settings)
        if state.replaces_telemetry:
            session.forget_stored()
        await session.stored.find_copies(self._store, state)
        new_signals = self._signals.find(session, known, observation.at)
        if any(each.kind == "level" for signals in new_signals.values() for each in signals):
            session.is_reachable = await self._reachability.is_reachable(
                state, state.source, state.project
            )
        writes = self._new_writes(observation, session, new_signals)
        if not writes and observation.kind != "pushed":
            session.mark_saved(snapshot)
            return "stored"  # without an effect, a duplicate does no harm
        keys = EventKeys(tuple(each.id for each in observations), observation.at)
        once = [] if observation.kind == "wrote" else [keys]
        won = await session.write(self._store, [*once, *writes])
        if won is None:
            return "conflict"
        if once and not won[0]:
            return "duplicate" if len(observations) == 1 else "conflict"
        session.stored.mark_stored(state, readings)
        state.replaces_telemetry = False
        for name, each in new_signals.items():
            session.signals.record(name, each, observation.at)
        if any(each.kind == "compacted" for each in new_signals[MAIN]):
            self._mark_handoff_pending(observation, session)
        for write, new in zip(writes, won[len(once) :], strict=True):
            if new and isinstance(write, RecordSignal):
                self._environment.on_signal(write.signal, state)
        state.files.drop_stored_calls(self._kept_calls)
        session.mark_saved(state.snapshot(settings))
        return "stored"

    def _new_writes(
        self,
        observation: Observation,
        session: MonitoredSession,
        new_signals: Mapping[str, Sequence[Signal]],
    ) -> list[Write]:
        """Return the writes for what is new since the session was last saved."""
        state, readings = session.state, session.state.last_readings
        writes = session.stored.pending_writes(observation, state, readings)
        if state.replaces_telemetry:
            writes.insert(0, ClaimSession(state.id, LOCAL_MACHINE))
        writes += self._signals.writes(session, new_signals, observation.at)
        thread = observation.thread
        if observation.kind == "ended" and thread in readings and thread != MAIN:
            # A subagent that has ended cannot get messages.
            writes.append(CancelMessages(state.id, thread, readings[thread].cycle))
        if state.ended_at == observation.at:
            writes += self._signals.ended_writes(session, observation.at)
        return writes

    def _mark_handoff_pending(self, observation: Observation, session: MonitoredSession) -> None:
        """Note that a compacted session is to get its document, and draft one if needed."""
        session.handoff_pending = True
        if transcript := _transcript_path(observation, session.state):
            self._handoffs.draft_after_compaction(session.state, transcript, observation.at)


def _has_only_usage(observation: Observation) -> bool:
    """Return whether a program reports the usage of calls, and nothing that ends a cycle."""
    is_usage = all(isinstance(event, Call | Spent) for event in observation.events)
    return observation.kind == "pushed" and is_usage


def _transcript_path(observation: Observation, state: SessionState) -> str | None:
    """Return the path of a session's transcript, which may be a database with others."""
    return state.files.transcript or (observation.file.path if observation.file else None)
