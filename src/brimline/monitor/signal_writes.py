"""The writes for a signal: its row, and the messages to the agent and its parent."""

import msgspec

from brimline.agents import capabilities_of
from brimline.context.events import MAIN
from brimline.context.inbox import MESSAGE_LIFETIME_S, Message
from brimline.context.need import NeedFacts
from brimline.context.policy.levels import figure_of
from brimline.context.policy.signals import (
    THRASH_WINDOW_S,
    Signal,
    SignalKind,
    expect_next_call,
    is_thrashing,
)
from brimline.context.tracker import Reading, find_loop
from brimline.context.usage import percent_raw
from brimline.monitor.handoffs import end_message_id, status_of_handoff
from brimline.monitor.session_state import SessionState, calls_left_of
from brimline.monitor.session_table import MonitoredSession
from brimline.monitor.user_rules import Rules, TemplateValues, describe_pending
from brimline.settings import Text
from brimline.store.base import (
    CancelMessages,
    MarkMessage,
    QueueMessage,
    RecordSignal,
    Write,
    hash_id,
)
from brimline.store.rows import SignalRow


class SignalWriter(msgspec.Struct, frozen=True):
    """Builds the writes for a signal of a session's thread; to be used before it is recorded."""

    session: MonitoredSession
    rules: Rules
    thread: str
    signal: Signal
    at: float

    @property
    def _state(self) -> SessionState:
        return self.session.state

    @property
    def _reading(self) -> Reading:
        return self._state.last_readings[self.thread]

    @property
    def _rearm_count(self) -> int:
        return self.session.signals.rearm_count(self.thread, self.signal.cycle)

    @property
    def _levels(self) -> tuple[float, ...]:
        state = self._state
        whose = state.id, state.agent, state.model_of(self.thread)
        return self.rules.levels_with(self.signal.level, *whose)

    @property
    def _is_early(self) -> bool:
        """Whether a level fires before the call that reaches it."""
        state = self._state
        of = self.rules.measure_of(state.id, state.agent, state.model_of(self.thread))
        figure = figure_of(self._reading, of)
        return self.signal.kind == "level" and figure is not None and figure < self.signal.level

    def writes(self) -> list[Write]:
        signal = self.signal
        row = SignalRow(
            session=self._state.id,
            thread=self.thread,
            cycle=signal.cycle,
            kind=signal.kind,
            at=self.at,
            level=signal.level,
            arm=self._rearm_count if signal.kind == "level" else 0,
            text=describe_pending(self._reading) if self._is_early else "",
            sent=self._reading.sent,
            percent=self._reading.percent,
        )
        cancel = CancelMessages(row.session, row.thread, row.cycle)
        match signal.kind:
            case "level":
                # A lower level's message that is still pending is out of date.
                return [cancel, RecordSignal(row, self._level_messages(row))]
            case "compacted" if self.thread == MAIN:
                return [
                    cancel,
                    *self._cancel_parent_messages(),
                    RecordSignal(row, self._running_message("compacted", row)),
                    *self._thrash_writes(row),
                ]
            case "compacted" | "cleared":
                return [cancel, *self._cancel_parent_messages(), RecordSignal(row)]
            case _:
                return [RecordSignal(row)]

    def level_text(self) -> str:
        return self.rules.texts.level_text(self._values(), self._levels, self.thread).strip()

    def _text(self, name: Text) -> str:
        return self.rules.texts.text(name, self._values()).strip()

    def _values(self) -> TemplateValues:
        since = self.at - THRASH_WINDOW_S
        return TemplateValues(
            session=self._state.id,
            project=self._state.project,
            reading=self._reading,
            agent=self._state.agent,
            level=self.signal.level,
            calls_left=calls_left_of(
                self._state, self.thread, expect_next_call(self._reading, 1.0)
            ),
            compactions=1 + sum(1 for at in self.session.signals.compactions if at >= since),
            facts=self._facts() if self.thread == MAIN else None,
            at=self.at,
        )

    def _facts(self) -> NeedFacts:
        """Return what a need of the session is made of, as far as its agent is told."""
        state, main = self._state, self._state.folded.threads.get(MAIN)
        loop, limit = find_loop(main) if main else None, self._reading.limit
        handoff = status_of_handoff(self.session.signals.handoff, state.calls)
        quotas = state.client_report.quotas
        return NeedFacts(
            name=state.id,
            called_at=self._reading.at,
            handoff=handoff.state,
            calls_since_handoff=handoff.calls_since,
            quotas=quotas and quotas.current(self.at),
            loop=loop and loop.compactions,
            kept_percent=percent_raw(loop and loop.kept, limit and limit.tokens),
        )

    def ended_writes(self) -> list[Write]:
        """Cancel the messages to the parent about this cycle: the agent is not running any more."""
        if self._state.parent is None:
            return []
        compacted = self._parent_message_id(self._state.parent, "compacted", 0.0, 0)
        return [
            *self._cancel_parent_messages(),
            MarkMessage(compacted, "cancelled", ("queued",), self.at),
        ]

    def end_messages(self) -> list[Write]:
        """Return the message to the parent that the agent has ended."""
        parent = self._state.parent
        if parent is None:
            return []
        id = end_message_id(parent, self._state.id, self.at)
        return [QueueMessage(each) for each in self._message_to(parent, id, self._text("ended"))]

    def _cancel_parent_messages(self) -> list[Write]:
        """Cancel the messages to the parent about levels of the cycle that has ended."""
        parent = self._state.parent
        if parent is None or self.thread != MAIN:
            return []
        fired = self.session.signals.fired_levels(self.thread, self.signal.cycle)
        ids = [self._parent_message_id(parent, "level", level, arm) for level, arm in fired]
        return [MarkMessage(id, "cancelled", ("queued",), self.at) for id in ids]

    def _thrash_writes(self, compacted: SignalRow) -> list[Write]:
        """Return the writes when thrashing begins; none while it goes on."""
        before = self.session.signals.compactions
        if is_thrashing(before, self.at) or not is_thrashing([*before, self.at], self.at):
            return []
        text = self._text("thrash")
        row = msgspec.structs.replace(compacted, kind="thrash", text=text)
        return [RecordSignal(row, self._parent_message(text, row))]

    def _level_messages(self, row: SignalRow) -> tuple[Message, ...]:
        own = self.level_message() if self.session.is_reachable else ()
        # Of calls left too: the last other level is near, and one message to the parent is enough.
        if self.thread != MAIN or not self._is_last_level or row.level < 0:
            return own
        return (*own, *self._running_message("parent", row))

    @property
    def _is_last_level(self) -> bool:
        return self.signal.level in self._levels[-1:]

    def level_message(self) -> tuple[Message, ...]:
        """Return the message of a level to its thread, by an id of its own; none without a text."""
        session, is_main = self._state.id, self.thread == MAIN
        if not is_main and not capabilities_of(self._state.agent).answers_subagent_hooks:
            return ()
        cycle, level = self.signal.cycle, self.signal.level
        message = Message(
            id=hash_id(
                session, self.thread, str(cycle), f"{level:g}", *_id_part(self._rearm_count)
            ),
            session=session,
            text=self.level_text(),
            at=self.at,
            urgency="urgent" if self._is_last_level or not is_main else "sequential",
            thread=self.thread,
            cycle=cycle,
            level=level,
            expires=self.at + MESSAGE_LIFETIME_S,
            blocks_stop=self._is_last_level and is_main and self.rules.stop.last_level,
        )
        return (message,) if message.text else ()

    def _running_message(self, name: Text, row: SignalRow) -> tuple[Message, ...]:
        """Return a message to the parent that says that the agent is running; none if it ended."""
        ended = self._state.ended_at is not None
        return () if ended else self._parent_message(self._text(name), row)

    def _parent_message(self, text: str, row: SignalRow) -> tuple[Message, ...]:
        parent = self._state.parent
        if parent is None:
            return ()
        id = self._parent_message_id(parent, row.kind, row.level, row.arm)
        return self._message_to(parent, id, text)

    def _message_to(self, parent: str, id: str, text: str) -> tuple[Message, ...]:
        """Return an urgent message: a parent that waits for its child runs tools all the time."""
        child = self._state.id
        if parent == child or not text:
            return ()
        expires = self.at + MESSAGE_LIFETIME_S
        return (
            Message(id, parent, text, self.at, urgency="urgent", sender=child, expires=expires),
        )

    def _parent_message_id(self, parent: str, kind: SignalKind, level: float, arm: int) -> str:
        """Return the id of a message to the parent, so that it gets each one once."""
        cycle = str(self.signal.cycle)
        return hash_id(parent, self._state.id, kind, cycle, str(level), *_id_part(arm))


def _id_part(rearm_count: int) -> tuple[str, ...]:
    return (str(rearm_count),) if rearm_count else ()
