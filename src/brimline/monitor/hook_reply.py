"""What an agent gets: in a reply to a hook a handoff document and messages; a program, messages."""

from collections.abc import Callable

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.observations import EMPTY_REPLY, Observation, Reply
from brimline.context.events import MAIN
from brimline.context.inbox import (
    MAX_CONTEXT_CHARS,
    SEPARATOR,
    Message,
    Moment,
    before_handed_out,
    deliverable,
    join_texts,
    take_that_fit,
    utf16_length,
)
from brimline.context.policy.signals import Signal
from brimline.context.window import (
    ModelSwitch,
    ResolveContext,
    limit_of,
    warn_of_switch,
    window_of,
)
from brimline.handoff.pins import find_pin_lines, render_pins
from brimline.monitor.handoffs import HandoffRecovery
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.session_state import SessionState
from brimline.monitor.session_table import MonitoredSession
from brimline.monitor.signal_writes import SignalWriter
from brimline.monitor.user_rules import Rules, find_command
from brimline.store.base import MarkMessage, QueueMessage, Store

SENT_AGAIN = "(Sent again: the first copy may not have reached you.)"

RECALL_HINT = "[brimline] `{command}` finds what was said, run and read before the compaction."

NOT_PINNED = "[brimline] A line `PIN:` of this prompt was not pinned, tell the user: {reason}."

MOMENTS: dict[str, Moment] = {"prompt": "turn", "stopped": "stop", "tool": "tool"}


class HookReplies:
    """Answers the hooks of sessions, with no more at a time than a client takes.

    `delivered` are messages that an agent has, and that the store has not marked so yet.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        rules: Rules,
        recovery: HandoffRecovery,
        environment: MonitorEnvironment,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._recovery = recovery
        self._environment = environment
        self.delivered: set[str] = set()

    async def reply_to(self, observation: Observation, session: MonitoredSession) -> Reply:
        """Return what a hook's agent gets, and pin what its prompt says is to be pinned."""
        reply = await self._find_reply(observation, session)
        return await self._with_pinned_lines(reply, observation)

    async def _find_reply(self, observation: Observation, session: MonitoredSession) -> Reply:
        if observation.kind == "switching":
            return self._switch_reply(observation.switch, session.state)
        if observation.kind == "cleared":
            session.pins_pending = True
        if observation.kind == "compacted" and observation.thread == MAIN:
            return await self._handoff_reply(session)
        moment = MOMENTS.get(observation.kind)
        if moment is None or (observation.kind == "stopped" and observation.is_continuation):
            return EMPTY_REPLY
        reply = EMPTY_REPLY
        may_get_document = observation.kind != "stopped" and observation.thread == MAIN
        if may_get_document and session.handoff_pending and not session.state.compacting:
            reply = await self._handoff_reply(session)
        elif may_get_document and session.pins_pending and not session.state.compacting:
            reply = await self._pins_reply(session)
        taken = utf16_length(reply.context + SEPARATOR) if reply.context else 0
        messages = await self.hand_out(
            session, moment, observation.thread, MAX_CONTEXT_CHARS - taken, observation.at
        )
        if not messages:
            return reply
        text, ids = join_texts(messages), tuple(message.id for message in messages)
        if observation.kind == "stopped":
            version = session.state.client_version
            return Reply(stop_feedback=text, message_ids=ids, client_version=version)
        context = SEPARATOR.join(part for part in (reply.context, text) if part)
        return msgspec.structs.replace(reply, context=context, message_ids=ids)

    def _switch_reply(self, switch: ModelSwitch | None, state: SessionState) -> Reply:
        """Return a warning of a model that the context does not fit.

        A user at the client may then go back; a headless run would be refused the model.
        """
        if switch is None:
            return EMPTY_REPLY
        known = ResolveContext(
            agent=state.agent,
            model=switch.model,
            version=state.client_version,
            settings=self._environment.settings(state.agent, state.project, state.env),
        )
        overrides = self._rules.overrides
        window = window_of(known, overrides)
        warning = warn_of_switch(switch, window, limit_of(known, window, overrides))
        if warning is None:
            return EMPTY_REPLY
        asks = warning.overflows and state.is_interactive is True
        return Reply(switch_warning=warning, asks_user=asks)

    async def _handoff_reply(self, session: MonitoredSession) -> Reply:
        """Return pins and document for after a compaction, with how to find what was before it.

        A draft under way comes with a later hook. Without a document the pins come alone.
        """
        since = session.signals.compacted_at or self._clock()
        pins, hint = await self._pins_text(session), recall_hint(session.state)
        room = MAX_CONTEXT_CHARS - utf16_length(SEPARATOR.join([pins, hint, ""]))
        reply = await self._recovery.handoff_reply(session.state, since, room)
        if reply is None:
            return EMPTY_REPLY
        if reply.context is None:
            session.handoff_pending = False
            if not pins:
                return EMPTY_REPLY
        session.pins_pending = session.pins_pending or bool(pins)
        context = SEPARATOR.join(filter(None, (pins, reply.context, hint)))
        return msgspec.structs.replace(
            reply, context=context, has_pins=bool(pins), session=session.state.id
        )

    async def _pins_reply(self, session: MonitoredSession) -> Reply:
        """Return the pins for a context that does not have them."""
        pins = await self._pins_text(session)
        if not pins:
            return EMPTY_REPLY
        return Reply(context=pins, has_pins=True, session=session.state.id)

    async def _pins_text(self, session: MonitoredSession) -> str:
        """Return the pins as they are injected; if they cannot be read now, the next hook asks."""
        pins = await self._environment.pins_of(session.state.id, session.state.project)
        session.pins_pending = bool(pins) if pins is not None else True
        return render_pins(pins or ())

    async def _with_pinned_lines(self, reply: Reply, observation: Observation) -> Reply:
        """Pin what a prompt says is to be pinned; the reply then says what could not be.

        A prompt that has the text of a message was typed by Brimline: another agent may have
        written it.
        """
        is_prompt = observation.kind == "prompt" and observation.thread == MAIN
        if not (is_prompt and self._rules.pins_from_prompts):
            return reply
        lines, prompt = find_pin_lines(observation.prompt), " ".join(observation.prompt.split())
        messages = await self._store.messages(observation.session) if lines else []
        if not lines or any(" ".join(each.text.split()) in prompt for each in messages):
            return reply
        at = self._clock()
        problems = await self._environment.add_pins(observation.session, lines, at)
        notes = [NOT_PINNED.format(reason=reason) for reason in problems]
        context = SEPARATOR.join(part for part in (reply.context, *notes) if part)
        return msgspec.structs.replace(reply, context=context or None)

    async def hand_out(
        self,
        session: MonitoredSession,
        moment: Moment,
        thread: str = MAIN,
        room: int = MAX_CONTEXT_CHARS,
        hook_at: float | None = None,
    ) -> list[Message] | None:
        """Mark the messages that are due as handed out, and return those that no one else got.

        `hook_at` is the time of the hook that gets them, by which they are found if it got none.
        Returns None if another monitor has changed the session.
        """
        state = session.state
        if not await self._queue_withheld_level(session, thread):
            return None
        pending, now = await self._store.pending_messages(state.id), self._clock()
        if session.revision is not None:
            pending = before_handed_out(pending, now, thread)
        undelivered = [message for message in pending if message.id not in self.delivered]
        due = deliverable(undelivered, moment, now, state.compacting, thread)
        if moment == "stop":
            due = [message for message in due if self._may_block_stop(message, session)]
        texts = [_marked_if_repeated(m, self.refresh_message(session, m).text) for m in due]
        batch = take_that_fit(texts, room)
        # The time of the hook: if its client got no answer, its spooled event finds them by that.
        at = now if hook_at is None else hook_at
        marks = [MarkMessage(m.id, "handed", (m.state,), at, m.handed_at, m.text) for m in batch]
        won = await session.write(self._store, marks) if marks else []
        if won is None:
            return None
        return [m for m, is_ours in zip(batch, won, strict=True) if is_ours]

    async def _queue_withheld_level(self, session: MonitoredSession, thread: str) -> bool:
        """Queue the message of the present level if none was, as nothing could deliver it then.

        One that was queued before stays as it is: its id is the same. Returns False if another
        monitor has changed the session.
        """
        if thread in session.served_threads:
            return True
        session.served_threads.add(thread)
        reading, history = session.state.last_readings.get(thread), session.signals
        if reading is None:
            return True
        arm = history.rearm_count(thread, reading.cycle)
        fired = [level for level, of in history.fired_levels(thread, reading.cycle) if of == arm]
        signal = Signal("level", reading.cycle, max(fired, default=0.0))
        writer = SignalWriter(session, self._rules, thread, signal, self._clock())
        writes = [QueueMessage(message) for message in writer.level_message()] if fired else []
        return not writes or await session.write(self._store, writes) is not None

    def _may_block_stop(self, message: Message, session: MonitoredSession) -> bool:
        """Return whether a message may keep this session's turn from ending.

        A headless run, or a session that may be one, would take another turn, and its result would
        be the answer to the message.
        """
        is_allowed_headless = self._rules.stop.headless and message.level is None
        return session.state.is_interactive is True or is_allowed_headless

    def refresh_message(self, session: MonitoredSession, message: Message) -> Message:
        """Return a message as it is handed out: a level message has the figures of this moment."""
        thread = message.thread or MAIN
        reading = session.state.last_readings.get(thread)
        if message.level is None or reading is None or reading.sent is None:
            return message
        signal = Signal("level", reading.cycle, message.level)
        writer = SignalWriter(session, self._rules, thread, signal, self._clock())
        return msgspec.structs.replace(message, text=writer.level_text())


def recall_hint(state: SessionState) -> str:
    """Return how the agent finds what a compaction took out of its context."""
    has_variable = capabilities_of(state.agent).session_id_variables
    whose = "" if has_variable else f" --session {state.id}"
    return RECALL_HINT.format(command=f"{find_command()} recall WORDS --before-compaction{whose}")


def _marked_if_repeated(message: Message, text: str) -> Message:
    """Return a message with a text, and a note if an earlier copy may have reached the agent.

    The stored text has the note if the copy before the last one may have.
    """
    note = f"{SENT_AGAIN}\n"
    is_repeated = message.state == "handed" or message.text.startswith(note)
    text = text.removeprefix(note)
    return msgspec.structs.replace(message, text=note + text if is_repeated else text)
