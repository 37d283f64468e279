"""Deliver messages that no hook will: type them into panes, or forward them after a clear."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from brimline.agents import agent_names
from brimline.agents.observations import Pane
from brimline.agents.transcripts.source import Places
from brimline.context.inbox import (
    Message,
    Moment,
    deliverable,
    join_texts,
    may_come_mid_turn,
    take_that_fit,
)
from brimline.daemon.local_environment import hooks_installed_at
from brimline.daemon.tmux.pane import find_pane
from brimline.daemon.tmux.typist import SubmitResult, Typist
from brimline.monitor.handoffs import forward_messages
from brimline.monitor.monitor import Monitor
from brimline.store.base import MarkMessage, Store, Write
from brimline.store.rows import SessionRow

DELIVERY_INTERVAL_S = 2.0

NOT_RUNNING = "the agent is not running"
NO_PANE = "its tmux pane is unknown"


class MessageDelivery:
    """Periodically delivers pending messages of sessions without hooks; wakes idle agents.

    `has_hooks` and `find_pane` may block. `refresh` updates the figures in a message.
    """

    def __init__(
        self,
        store: Store,
        typist: Typist,
        clock: Callable[[], float],
        has_hooks: Callable[[SessionRow], bool],
        find_pane: Callable[[SessionRow], Pane | None],
        is_compacting: Callable[[str], bool],
        refresh: Callable[[Message], Message],
    ) -> None:
        self._store, self._typist, self._clock = store, typist, clock
        self._has_hooks, self._find_pane = has_hooks, find_pane
        self._is_compacting, self._refresh = is_compacting, refresh
        self._typed: set[str] = set()  # ids that are not yet stored as delivered

    async def run(self) -> None:
        while True:
            await self.deliver_pending()
            await asyncio.sleep(DELIVERY_INTERVAL_S)

    async def deliver_pending(self) -> int:
        """Deliver what can be delivered now; return the number of messages."""
        await self._store_delivered()
        pending = sorted(await self._store.pending_messages(), key=lambda message: message.session)
        groups = groupby(pending, key=lambda message: message.session)
        return sum([await self._deliver_to(session, list(group)) for session, group in groups])

    async def wake(self, session: str, message_id: str) -> str | None:
        """Type a message for an idle agent now; return None if it was typed, else why not.

        A message that was not typed stays queued.
        """
        row = await self._store.session(session)
        if row is None or row.has_ended or row.continued_as is not None:
            return NOT_RUNNING
        pane = await asyncio.to_thread(self._find_pane, row)
        if pane is None:
            return NO_PANE
        queued = [m for m in await self._store.pending_messages(session) if m.id == message_id]
        # Claimed first: the hook of the typed prompt must not deliver it a second time.
        batch = await self._claim(queued)
        result = await self._type(row, pane, batch) if batch else None
        return None if result is None or result.submitted else result.reason

    async def _deliver_to(self, session: str, messages: Sequence[Message]) -> int:
        row = await self._store.session(session)
        if row is not None and row.continued_as is not None:
            await forward_messages(self._store, session, row.continued_as, self._clock())
            return 0
        if row is None or self._is_compacting(session):
            return 0
        if await asyncio.to_thread(self._has_hooks, row):
            return 0
        pane = await asyncio.to_thread(self._find_pane, row)
        if pane is None:
            return 0
        state = (await self._typist.view(pane, row.agent)).composer.state
        if state not in ("empty", "busy"):
            return 0
        moment: Moment = "turn" if state == "empty" else "tool"
        untyped = [message for message in messages if message.id not in self._typed]
        batch = take_that_fit(deliverable(untyped, moment, self._clock()))
        claimed = await self._claim(batch)
        if not claimed:
            return 0
        while_busy = all(may_come_mid_turn(message) for message in claimed)
        result = await self._type(row, pane, claimed, while_busy)
        return len(claimed) if result.submitted else 0

    async def _claim(self, batch: Sequence[Message]) -> list[Message]:
        """Mark messages as handed out; return those that nothing else claimed first."""
        if not batch:
            return []
        now, refreshed = self._clock(), [self._refresh(message) for message in batch]
        marks: list[Write] = [
            MarkMessage(m.id, "handed", (m.state,), now, m.handed_at, m.text) for m in refreshed
        ]
        claimed = await self._store.write(marks)
        return [message for message, ok in zip(refreshed, claimed, strict=True) if ok]

    async def _type(
        self, row: SessionRow, pane: Pane, batch: Sequence[Message], while_busy: bool = False
    ) -> SubmitResult:
        result = await self._typist.submit(
            pane,
            row.agent,
            join_texts(batch),
            while_busy=while_busy,
            is_compacting=lambda: self._is_compacting(row.id),
        )
        ids = [message.id for message in batch]
        # A text that remains in the composer is the user's to submit: it is not typed again.
        if result.submitted or result.text_remains:
            self._typed.update(ids)
            await self._store_delivered()
        else:
            now = self._clock()
            await self._store.write([MarkMessage(id, "queued", ("handed",), now) for id in ids])
        return result

    async def _store_delivered(self) -> None:
        """Mark typed messages as delivered; if the store fails, they are not typed again."""
        if ids := list(self._typed):
            now = self._clock()
            await self._store.write([MarkMessage(id, "delivered", ("handed",), now) for id in ids])
            self._typed.difference_update(ids)


def create_delivery(
    store: Store, monitor: Monitor, typist: Typist, places: Places, state: Path
) -> MessageDelivery:
    """Return the delivery of messages to agents of this machine."""

    def has_hooks(row: SessionRow) -> bool:
        if row.agent not in agent_names():
            return True  # a program's own agent, whose screen is unknown
        return hooks_installed_at(state, row.agent, row.project) is not None

    def is_compacting(session: str) -> bool:
        session_state = monitor.state_of(session)
        return session_state is not None and session_state.compacting

    def pane_of(row: SessionRow) -> Pane | None:
        session_state = monitor.state_of(row.id)
        if session_state is not None and session_state.pane is not None:
            return session_state.pane  # as its hooks report it
        return find_pane(row.agent, row.project, places.env, os.getuid())

    return MessageDelivery(
        store, typist, time.time, has_hooks, pane_of, is_compacting, monitor.refresh_message
    )
