"""Handoff documents of sessions: kept, drafted where there is none, brought back."""

import asyncio
from collections.abc import Callable

from brimline.errors import UnreadableTranscript
from brimline.handoff import Document, draft, freshness, records, rendered
from brimline.inbox import OURS
from brimline.monitor.heard import NOTHING, Reply
from brimline.monitor.telling import key
from brimline.monitor.watched import Watched
from brimline.store.base import PutHandoff, Store
from brimline.store.rows import HandoffRow

PATIENCE = 0.1
"""So many seconds a hook waits for a draft that is not ready yet."""


class Recovery:
    """What a session goes on with after a compaction."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._drafting: dict[str, asyncio.Task[None]] = {}

    async def keep(
        self,
        session: str,
        watched: Watched | None,
        document: Document,
        author: str,
        draft: bool = False,
    ) -> HandoffRow:
        """Keep a document of a session."""
        now = self._clock()
        row = HandoffRow(
            id=key("handoff", session, document.sha256, repr(now)),
            session=session,
            at=now,
            path=document.path,
            sha256=document.sha256,
            text=document.text,
            author=author,
            cycle=watched.cycle if watched else 0,
            calls=watched.calls if watched else 0,
            draft=draft,
        )
        await self._store.write([PutHandoff(row)])
        return row

    def begin_draft(self, watched: Watched, transcript: str) -> None:
        """Write one from the transcript, beside everything else, where the agent wrote none."""
        self._drafting[watched.id] = asyncio.create_task(self._draft(watched, transcript))

    async def bring_back(self, watched: Watched) -> Reply:
        """The last document that was handed over, else what was drafted, else nothing."""
        drafting = self._drafting.pop(watched.id, None)
        if drafting is not None:
            await asyncio.wait([drafting], timeout=PATIENCE)
        found = await self._store.handoffs(watched.id)
        if not found:
            return NOTHING
        row = next((row for row in found if not row.draft), found[0])
        text = rendered(
            Document.of(row.text, row.path, row.at),
            author=row.author,
            at=row.at,
            now=self._clock(),
            calls_before=freshness(row.calls, watched.calls).calls,
            draft=row.draft,
        )
        return Reply(context=text, handoff=row.id, session=watched.id)

    async def _draft(self, watched: Watched, transcript: str) -> None:
        if any(not row.draft for row in await self._store.handoffs(watched.id)):
            return
        text = await asyncio.to_thread(_drafted, watched.agent, transcript)
        if text:
            document = Document.of(text, transcript, self._clock())
            await self.keep(watched.id, watched, document, OURS, draft=True)


def _drafted(agent: str, transcript: str) -> str:
    try:
        return draft(records(transcript), agent, where=transcript)
    except (OSError, UnreadableTranscript):
        return ""
