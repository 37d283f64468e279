"""Messages that no hook will bring: typed into panes, or sent on to what a session became."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby

from brimline.inbox import Message, Moment, deliverable, join_texts, take_that_fit
from brimline.monitor.clear_handover import forward_messages
from brimline.observations import Pane
from brimline.store.base import MarkMessage, Store, Write
from brimline.store.rows import SessionRow
from brimline.tmux.typing import Tmux

EVERY = 2.0
"""So many seconds between two rounds."""


class Mail:
    """Goes round the messages that wait, and types or sends on those that no hook will bring.

    `hooked` says whether a session has hooks and `pane` finds its pane: both may take their time.
    `compacting` says whether it is; `of_now` gives a message as it is by then.
    """

    def __init__(
        self,
        store: Store,
        tmux: Tmux,
        clock: Callable[[], float],
        hooked: Callable[[SessionRow], bool],
        pane: Callable[[SessionRow], Pane | None],
        compacting: Callable[[str], bool],
        of_now: Callable[[Message], Message],
    ) -> None:
        self._store, self._tmux, self._clock = store, tmux, clock
        self._hooked, self._pane, self._compacting = hooked, pane, compacting
        self._of_now = of_now
        self._typed: set[str] = set()

    async def run(self) -> None:
        """Go round until it is cancelled."""
        while True:
            await self.deliver()
            await asyncio.sleep(EVERY)

    async def deliver(self) -> int:
        """One round; how many messages were delivered."""
        await self._mark()
        waiting = sorted(await self._store.pending_messages(), key=lambda message: message.session)
        groups = groupby(waiting, key=lambda message: message.session)
        return sum([await self._to(session, list(messages)) for session, messages in groups])

    async def _to(self, session: str, messages: Sequence[Message]) -> int:
        row = await self._store.session(session)
        if row is not None and row.continued_as is not None:
            await forward_messages(self._store, session, row.continued_as, self._clock())
            return 0
        if row is None or self._compacting(session):
            return 0
        if await asyncio.to_thread(self._hooked, row):
            return 0
        pane = await asyncio.to_thread(self._pane, row)
        if pane is None:
            return 0
        state = (await self._tmux.look(pane, row.agent)).composer.state
        if state not in ("empty", "busy"):
            return 0
        moment: Moment = "turn" if state == "empty" else "tool"
        waiting = [message for message in messages if message.id not in self._typed]
        batch = take_that_fit(deliverable(waiting, moment, self._clock()))
        return await self._type(row, pane, await self._taken(batch)) if batch else 0

    async def _taken(self, batch: Sequence[Message]) -> list[Message]:
        """Those of a batch that nobody else hands out meanwhile."""
        now = self._clock()
        marks: list[Write] = [
            MarkMessage(m.id, "handed", (m.state,), now, m.handed_at) for m in batch
        ]
        won = await self._store.write(marks)
        return [self._of_now(message) for message, got in zip(batch, won, strict=True) if got]

    async def _type(self, row: SessionRow, pane: Pane, batch: Sequence[Message]) -> int:
        if not batch:
            return 0
        typed = await self._tmux.tell(
            pane,
            row.agent,
            join_texts(batch),
            urgent=all(message.urgency == "urgent" for message in batch),
            compacting=lambda: self._compacting(row.id),
        )
        ids = [message.id for message in batch]
        # What was typed and is still in the composer is the user's to send: once is enough.
        if typed.done or typed.left:
            self._typed.update(ids)
            await self._mark()
        else:
            now = self._clock()
            await self._store.write([MarkMessage(id, "queued", ("handed",), now) for id in ids])
        return len(batch) if typed.done else 0

    async def _mark(self) -> None:
        """Have it kept what was typed; where that fails, it is not typed again all the same."""
        if ids := list(self._typed):
            now = self._clock()
            await self._store.write([MarkMessage(id, "delivered", ("handed",), now) for id in ids])
            self._typed.difference_update(ids)
