"""What a hook is answered: the document that its session is owed, and the messages that wait."""

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

SENT_AGAIN = "(Sent again: it is not known whether the first one reached you.)"

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
        self.passed_on: set[str] = set()

    async def answer(self, heard: Observation, session: MonitoredSession) -> Reply:
        """The answer to what was heard of a session."""
        if heard.what == "compacted" and heard.thread == MAIN:
            return await self._document(session)
        moment = MOMENTS.get(heard.what)
        if moment is None or (heard.what == "stopped" and heard.going_on):
            return EMPTY_REPLY
        if heard.what == "stopped":
            mine = await self._handed(session, moment, heard.thread)
            return Reply(go_on=join_texts(mine), handed=_ids(mine)) if mine else EMPTY_REPLY
        owes = session.handoff_pending and heard.thread == MAIN and not session.state.compacting
        document = await self._document(session) if owes else EMPTY_REPLY
        taken = utf16_length(document.context + SEPARATOR) if document.context else 0
        mine = await self._handed(session, moment, heard.thread, MAX_CONTEXT_CHARS - taken)
        return _with_messages(document, mine) if mine else document

    async def _document(self, session: MonitoredSession) -> Reply:
        """What a session goes on with after its compaction; where there is nothing, none is owed.

        A draft that is being written is owed still, and brought by a later hook.
        """
        since = session.signals.compacted_at or self._clock()
        reply = await self._recovery.bring_back(session.state, since)
        session.handoff_pending = session.handoff_pending and reply is not EMPTY_REPLY
        return reply or EMPTY_REPLY

    async def _handed(
        self, session: MonitoredSession, moment: Moment, thread: str, room: int = MAX_CONTEXT_CHARS
    ) -> list[Message]:
        """The messages whose turn it is, and that nobody else hands out meanwhile."""
        watched = session.state
        found, now = await self._store.pending_messages(watched.id), self._clock()
        waiting = [message for message in found if message.id not in self.passed_on]
        mine = deliverable(waiting, moment, now, watched.compacting, thread)
        batch = take_that_fit([_marked_if_repeated(self.of_now(session, m)) for m in mine], room)
        marks: list[Write] = [
            MarkMessage(m.id, "handed", (m.state,), now, m.handed_at) for m in batch
        ]
        won = await self._store.write(marks) if marks else []
        return [m for m, got in zip(batch, won, strict=True) if got]

    def of_now(self, session: MonitoredSession, message: Message) -> Message:
        """A message as it is handed out: a level's tells how full the context is by then."""
        thread, last = message.thread or MAIN, session.state.last
        if message.level is None or thread not in last or last[thread].sent is None:
            return message
        said = Signal("level", last[thread].cycle, message.level)
        text = SignalWriter.of(session, self._rules, thread, said, self._clock()).level_text()
        return msgspec.structs.replace(message, text=text)


def _marked_if_repeated(message: Message) -> Message:
    """A message with a note if it was handed out before and nobody said what came of that."""
    if message.state != "handed":
        return message
    return msgspec.structs.replace(message, text=f"{SENT_AGAIN}\n{message.text}")


def _ids(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(message.id for message in messages)


def _with_messages(document: Reply, messages: Sequence[Message]) -> Reply:
    """A document that no hook brought back when its compaction ended, before the messages."""
    texts = [text for text in (document.context, join_texts(messages)) if text]
    return msgspec.structs.replace(document, context=SEPARATOR.join(texts), handed=_ids(messages))
