"""Handoff documents of sessions: kept, drafted where there is none, brought back."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from brimline.bounded_reads import ReadThreads
from brimline.errors import UnknownAgent, UnreadableTranscript
from brimline.events import MAIN
from brimline.handoff import (
    Document,
    compute_freshness,
    draft_handoff,
    files_changed_since,
    iter_records,
    render_handoff,
)
from brimline.inbox import BRIMLINE
from brimline.monitor.session_state import SessionState
from brimline.monitor.signal_writes import key
from brimline.observations import EMPTY_REPLY, Reply
from brimline.store.base import PutHandoff, Store
from brimline.store.rows import HandoffRow

LOGGER = logging.getLogger("brimline.monitor")

PATIENCE = 0.05
"""So many seconds a hook waits for what is not ready yet: its client gives up after 0.12."""

DRAFT_THREADS = 2
DRAFT_WAIT_S = 60.0
"""A draft that takes longer is given up: its transcript hangs."""


class When(NamedTuple):
    """Where a session was when a document was written; its calls are None where nobody counted."""

    at: float
    cycle: int = 0
    calls: int | None = None


class Preparing(NamedTuple):
    """What is being made ready, or was; the cycle and the calls of the session by then."""

    cycle: int
    calls: int
    task: "asyncio.Task[None]"

    def is_for(self, cycle: int, calls: int) -> bool:
        """Whether it does for a compaction: one that was called off is followed by more work.

        The last call before a compaction may be in no file yet when that is announced.
        """
        return self.cycle == cycle and calls - self.calls <= 1


class HandoffRecovery:
    """What a session goes on with after a compaction."""

    def __init__(
        self, store: Store, clock: Callable[[], float], threads: ReadThreads | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        # Threads of their own, and few: the C library keeps memory for each thread that ever needed
        # much. With six of them a daemon grew by 15 MB in four minutes.
        self._threads = threads or ReadThreads(DRAFT_THREADS, hung_after_s=DRAFT_WAIT_S)
        self._preparing: dict[str, Preparing] = {}
        self._changed: dict[str, tuple[str, int]] = {}

    async def keep(
        self, session: str, when: When, document: Document, author: str, draft: bool = False
    ) -> HandoffRow:
        """Keep a document of a session."""
        row = HandoffRow(
            id=key("handoff", session, document.sha256, repr(when.at)),
            session=session,
            at=when.at,
            path=document.path,
            sha256=document.sha256,
            text=document.text,
            author=author,
            cycle=when.cycle,
            calls=when.calls,
            draft=draft,
        )
        await self._store.write([PutHandoff(row)])
        return row

    def prepare(self, watched: SessionState, transcript: str, at: float) -> None:
        """Make ready what a compaction that is about to begin will need, beside everything else.

        That is a draft, or how many files changed since the agent's own document.
        """
        self._begin(watched, transcript, at, watched.cycle, watched.calls)

    def make_up(self, watched: SessionState, transcript: str, at: float) -> None:
        """Make the same ready for a compaction that nobody told of before it was over."""
        ended, calls = watched.cycle - 1, _calls_before(watched)
        before = self._preparing.get(watched.id)
        if before is None or not before.is_for(ended, calls):
            self._begin(watched, transcript, at, ended, calls)

    def is_busy(self, session: str) -> bool:
        """Whether something is being made ready for a session."""
        preparing = self._preparing.get(session)
        return preparing is not None and not preparing.task.done()

    def forget(self, session: str) -> None:
        """Know nothing of a session any more; what is being written is not waited for."""
        self._preparing.pop(session, None)
        self._changed.pop(session, None)

    def _begin(
        self, watched: SessionState, transcript: str, at: float, cycle: int, calls: int
    ) -> None:
        before = self._preparing.get(watched.id)
        if before is not None:
            before.task.cancel()
        self._changed.pop(watched.id, None)
        work = self._prepare(watched, transcript, When(at, cycle, calls))
        task = asyncio.create_task(work)
        task.add_done_callback(_tell)
        self._preparing[watched.id] = Preparing(cycle, calls, task)

    async def bring_back(self, watched: SessionState, compacted_at: float) -> Reply | None:
        """The last document from before the compaction, else what was drafted, else nothing.

        It is from before by its cycle, whatever the clock said; or by its time, where no cycle was
        known to end. None while a draft is being written: it is there soon.
        """
        preparing = self._preparing.get(watched.id)
        if preparing is not None:
            await asyncio.wait([preparing.task], timeout=PATIENCE)
        # Asked before it is looked what there is.
        ready = preparing is None or preparing.task.done()
        rows = await self._store.handoffs(watched.id)
        row = _best([row for row in rows if row.cycle < watched.cycle or row.at <= compacted_at])
        if ready:
            self._preparing.pop(watched.id, None)
        elif row is None or row.draft:
            return None
        return EMPTY_REPLY if row is None else self._reply(row, watched)

    def _reply(self, row: HandoffRow, watched: SessionState) -> Reply:
        of, changed = self._changed.get(watched.id, (None, None))
        text = render_handoff(
            Document.of(row.text, row.path, row.at),
            author=row.author,
            at=row.at,
            now=self._clock(),
            calls_before=compute_freshness(row.calls, _calls_before(watched)).calls,
            files_changed=changed if of == row.id else None,
            draft=row.draft,
        )
        return Reply(context=text, handoff=row.id, session=watched.id)

    async def _prepare(self, watched: SessionState, transcript: str, when: When) -> None:
        row = _best(await self._store.handoffs(watched.id))
        if row is not None and not row.draft:
            read = partial(_changed, watched, transcript, row.at)
            changed = await self._threads.run(read, DRAFT_WAIT_S)
            if changed is not None:
                self._changed[watched.id] = row.id, changed
            return
        text = await self._threads.run(partial(_drafted, watched, transcript), DRAFT_WAIT_S)
        if text:
            document = Document.of(text, transcript, when.at)
            await self.keep(watched.id, when, document, BRIMLINE, draft=True)


def _tell(task: "asyncio.Task[None]") -> None:
    """Say why nothing could be made ready; a session then goes on without it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.warning("nothing was made ready for after a compaction: %s", error)


def _best(rows: Sequence[HandoffRow]) -> HandoffRow | None:
    """The last document that was handed over, else the last draft."""
    return next((row for row in rows if not row.draft), rows[0] if rows else None)


def _calls_before(watched: SessionState) -> int:
    """The calls until the last compaction; where no file tells of it yet, none came after it."""
    main = watched.folded.threads.get(MAIN)
    made = main.compactions[-1] if main and main.compactions else None
    return made.calls if made and made.cycle == watched.cycle - 1 else watched.calls


def _drafted(watched: SessionState, transcript: str) -> str:
    try:
        return draft_handoff(iter_records(transcript, watched.id), watched.agent, where=transcript)
    except (OSError, UnreadableTranscript, UnknownAgent):
        return ""


def _changed(watched: SessionState, transcript: str, since: float) -> int | None:
    """How many files an agent's tools changed since a time; None where nobody can tell."""
    try:
        return len(files_changed_since(iter_records(transcript, watched.id), watched.agent, since))
    except (OSError, UnreadableTranscript, UnknownAgent):
        return None
