"""The usage of sessions that only the store has.

Programs and telemetry report them, or their transcripts were removed since.
"""

from collections.abc import Set

import msgspec

from brimline.agents.transcripts.source import Transcript
from brimline.api.fair_share import TimeSlice
from brimline.context.tracker import Session, fold
from brimline.monitor.restore import replay_rows
from brimline.sessions.report import TranscriptSummary
from brimline.sessions.summary import summarise
from brimline.store.base import Store
from brimline.store.rows import SessionRow


class StoredSummaries:
    """Totals by session; they are computed again only after their session changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, TranscriptSummary]] = {}

    async def read(self, recorded: Set[str]) -> list[TranscriptSummary]:
        """Return the totals of all sessions but those that have a transcript."""
        marks = {id: mark for mark, id in await self._store.changes() if id not in recorded}
        known = {id: each for id, each in self._known.items() if marks.get(id) == each[0]}
        time_slice = TimeSlice()
        for id in marks.keys() - known.keys():
            row = await self._store.session(id)
            if row is not None:
                known[id] = marks[id], await self._summarise(row)
            await time_slice.pause_if_over()
        self._known = known
        return [summary for _, summary in known.values() if summary.summary.rows]

    async def _summarise(self, row: SessionRow) -> TranscriptSummary:
        calls = await self._store.calls(row.id)
        compactions = await self._store.compactions(row.id)
        threads = await self._store.threads(row.id)
        session = Session(
            agent=row.agent, id=row.id, project=row.project, version=row.version, title=row.title
        )
        folded = fold(session, replay_rows(calls, compactions, threads))
        copies = [row.call for row in calls if not row.counted and row.cost is None]
        summary = summarise(folded, frozenset(copies))
        return TranscriptSummary(
            Transcript(row.agent, "", row.seen_at, 0, session=row.id),
            msgspec.structs.replace(summary, ids=b"", shared=b""),
        )
