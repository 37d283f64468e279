"""The reply to a hook: a handoff document after a compaction, and pending messages."""

from collections.abc import Callable, Sequence

import msgspec

from brimline.events import MAIN
from brimline.inbox import (
    MAX_CONTEXT_CHARS,
    SEPARATOR,
    Message,
    Moment,
    deliverable,
    join_texts,
    take_that_fit,
    utf16_length,
)
from brimline.monitor.handoffs import HandoffRecovery
from brimline.monitor.monitored_session import MonitoredSession
from brimline.monitor.rules import Rules
from brimline.monitor.signal_writes import SignalWriter
from brimline.observations import EMPTY_REPLY, Observation, Reply
from brimline.policy.signals import Signal
from brimline.store.base import MarkMessage, Store, Write

SENT_AGAIN = "(Sent again: the first copy may not have reached you.)"

MOMENTS: dict[str, Moment] = {"prompt": "turn", "stopped": "stop", "tool": "tool"}


class HookReplies:
    """Answers the hooks of sessions, with no more at a time than a client takes.

    `passed_on` are messages that an agent has, and that the store could not mark so yet.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float], rules: Rules, recovery: HandoffRecovery
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._recovery = recovery
        self.delivered: set[str] = set()

    async def reply_to(self, observation: Observation, session: MonitoredSession) -> Reply:
        """Return the reply to an observation of a session."""
        if observation.kind == "compacted" and observation.thread == MAIN:
            return await self._handoff_reply(session)
        moment = MOMENTS.get(observation.kind)
        if moment is None or (observation.kind == "stopped" and observation.is_continuation):
            return EMPTY_REPLY
        if observation.kind == "stopped":
            mine = await self._hand_out(session, moment, observation.thread)
            return (
                Reply(stop_feedback=join_texts(mine), message_ids=_ids(mine))
                if mine
                else EMPTY_REPLY
            )
        owes = (
            session.handoff_pending and observation.thread == MAIN and not session.state.compacting
        )
        document = await self._handoff_reply(session) if owes else EMPTY_REPLY
        taken = utf16_length(document.context + SEPARATOR) if document.context else 0
        mine = await self._hand_out(session, moment, observation.thread, MAX_CONTEXT_CHARS - taken)
        return _with_messages(document, mine) if mine else document

    async def _handoff_reply(self, session: MonitoredSession) -> Reply:
        """Return the document for after a compaction; a draft under way comes with a later hook."""
        since = session.signals.compacted_at or self._clock()
        reply = await self._recovery.handoff_reply(session.state, since)
        session.handoff_pending = session.handoff_pending and reply != EMPTY_REPLY
        return reply or EMPTY_REPLY

    async def _hand_out(
        self, session: MonitoredSession, moment: Moment, thread: str, room: int = MAX_CONTEXT_CHARS
    ) -> list[Message]:
        """Mark the messages that are due as handed out, and return those that no other hook got."""
        state = session.state
        found, now = await self._store.pending_messages(state.id), self._clock()
        waiting = [message for message in found if message.id not in self.delivered]
        mine = deliverable(waiting, moment, now, state.compacting, thread)
        batch = take_that_fit(
            [_marked_if_repeated(self.refresh_message(session, m)) for m in mine], room
        )
        marks: list[Write] = [
            MarkMessage(m.id, "handed", (m.state,), now, m.handed_at) for m in batch
        ]
        won = await self._store.write(marks) if marks else []
        return [m for m, got in zip(batch, won, strict=True) if got]

    def refresh_message(self, session: MonitoredSession, message: Message) -> Message:
        """Return a message as it is handed out: a level message has the figures of this moment."""
        thread, last = message.thread or MAIN, session.state.last_readings
        if message.level is None or thread not in last or last[thread].sent is None:
            return message
        said = Signal("level", last[thread].cycle, message.level)
        text = SignalWriter.for_session(
            session, self._rules, thread, said, self._clock()
        ).level_text()
        return msgspec.structs.replace(message, text=text)


def _marked_if_repeated(message: Message) -> Message:
    """Add a note to a message that was handed out before without an acknowledgement."""
    if message.state != "handed":
        return message
    return msgspec.structs.replace(message, text=f"{SENT_AGAIN}\n{message.text}")


def _ids(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(message.id for message in messages)


def _with_messages(document: Reply, messages: Sequence[Message]) -> Reply:
    """Return a reply with a document, if there is one, and messages behind it."""
    texts = [text for text in (document.context, join_texts(messages)) if text]
    context = SEPARATOR.join(texts)
    return msgspec.structs.replace(document, context=context, message_ids=_ids(messages))
