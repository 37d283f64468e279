"""What goes over to a session that continues another: its handoff document, and its messages.

Documents are saved, drafted if there is none, and re-injected.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec

from brimline.agents.observations import EMPTY_REPLY, Observation, Reply
from brimline.context.events import MAIN
from brimline.context.inbox import BRIMLINE, MAX_CONTEXT_CHARS, is_pending
from brimline.context.need import HandoffState
from brimline.errors import UnknownAgent, UnreadableTranscript
from brimline.files.bounded_reads import ReadThreads
from brimline.handoff import (
    MAX_DRAFT_CHARS,
    Document,
    GrowingDigest,
    compute_freshness,
    files_changed_since,
    render_handoff,
)
from brimline.handoff.pins import render_pins, room_beside
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.session_state import SessionState
from brimline.store.base import (
    MarkMessage,
    MoveMessage,
    PutHandoff,
    PutSession,
    Store,
    Write,
    hash_id,
)
from brimline.store.rows import HandoffRow, SessionRow, ThreadRow

LOGGER = logging.getLogger("brimline.monitor")

READY_WAIT_S = 0.1  # a hook waits this long for a draft; its client gives up after 0.2 s

DRAFT_THREADS = 2  # each keeps the memory of its largest draft: six grew by 15 MB in four minutes
DRAFT_WAIT_S = 60.0  # a draft that takes longer is given up: its transcript hangs

# The transcripts of sessions that have reached this much of their limit are read as they grow, in
# steps, so that the draft before a compaction has to read the end alone. 1 MiB takes 25 ms.
GROWTH_PERCENT = 50.0
GROWTH_BYTES = 1 << 20
MAX_GROWING = 16  # a digest of a long session holds about a megabyte


class HandoffStatus(msgspec.Struct, frozen=True):
    """The state of a session's last handoff; `calls_since` is None if unknown."""

    state: HandoffState
    at: float | None = None
    path: str | None = None
    calls_since: int | None = None


NO_HANDOFF = HandoffStatus("none")


def status_of_handoff(row: HandoffRow | None, calls: int | None) -> HandoffStatus:
    """Return the state of a document; `calls` is how many its session has made."""
    if row is None:
        return NO_HANDOFF
    fresh = compute_freshness(row.calls, calls)
    state: HandoffState = "draft" if row.draft else "old" if fresh.is_old else "fresh"
    return HandoffStatus(state, row.at, row.path or None, fresh.calls)


class HandoffMoment(NamedTuple):
    """Where a session was when a document was written; `calls` is None if unknown."""

    at: float
    cycle: int = 0
    calls: int | None = None

    @classmethod
    def of_session(
        cls, state: SessionState, stored: Sequence[ThreadRow], at: float
    ) -> "HandoffMoment":
        """Return where a session is; its files may hold fewer calls than are stored."""
        return cls(at, state.cycle, max([state.calls, *(thread.calls for thread in stored)]))


class Preparation(NamedTuple):
    """A draft that is prepared, or was, with the cycle and the calls of the session."""

    cycle: int
    calls: int
    task: "asyncio.Task[None]"

    def is_for(self, cycle: int, calls: int) -> bool:
        """Return whether it fits a compaction: after one that was called off, more calls follow.

        The last call before a compaction may be in no file yet when that is announced.
        """
        return self.cycle == cycle and calls - self.calls <= 1


class HandoffRecovery:
    """Saves handoff documents, drafts missing ones, and re-injects them after a compaction."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        draft_chars: int = MAX_DRAFT_CHARS,
        environment: MonitorEnvironment | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._environment = environment or MonitorEnvironment()
        self._draft_chars = draft_chars
        # Threads of their own, and few: the C library keeps memory for each thread that ever needed
        # much. With six of them a daemon grew by 15 MB in four minutes.
        self._threads = ReadThreads(DRAFT_THREADS, hung_after_s=DRAFT_WAIT_S)
        self._preparing: dict[str, Preparation] = {}
        self._changed: dict[str, tuple[str, int]] = {}
        self._growing: dict[str, GrowingDigest] = {}
        self._reading_on: dict[str, asyncio.Task[None]] = {}

    async def save(
        self,
        session: str,
        when: HandoffMoment,
        document: Document,
        author: str,
        draft: bool = False,
    ) -> HandoffRow:
        row = _handoff_row(session, when, document, author, draft)
        await self._store.write([PutHandoff(row)])
        return row

    async def draft(
        self, state: SessionState, transcript: str, when: HandoffMoment
    ) -> HandoffRow | None:
        """Draft a document, and save it unless the agent wrote one; None if there is no content.

        It leaves room for the pins, which are injected with it.
        """
        pins = await self._environment.pins_of(state.id, state.project)
        digest = self._digest_of(state, transcript)
        room = room_beside(render_pins(pins or ()), self._draft_chars)
        read = partial(_draft_text, digest, state.last_prompt, room)
        text = await self._threads.run(read, DRAFT_WAIT_S)
        if not text:
            return None
        return await self.save_draft(state.id, when, Document.of(text, transcript, when.at))

    async def save_draft(self, session: str, when: HandoffMoment, document: Document) -> HandoffRow:
        """Return a draft as a row, which is saved unless the agent wrote a document."""
        if any(not row.draft for row in await self._store.handoffs(session)):
            return _handoff_row(session, when, document, BRIMLINE, draft=True)
        return await self.save(session, when, document, BRIMLINE, draft=True)

    def follow(self, observation: Observation, state: SessionState, transcript: str) -> None:
        """Prepare for a compaction that is about to begin, or read on for one that will."""
        if observation.kind == "compacting" and state.compacting:
            self._draft_before_compaction(state, transcript, observation.at)
        else:
            self._follow_growth(state, transcript)

    def _follow_growth(self, state: SessionState, transcript: str) -> None:
        """Start to read the transcript on, if it has grown by a step and a compaction is near."""
        main = state.last_readings.get(MAIN)
        if main is None or (main.percent_of_limit or 0.0) < GROWTH_PERCENT:
            return
        size = state.files.read_bytes
        known = self._growing.get(state.id)
        if size - (known.offset if known else 0) < GROWTH_BYTES or state.id in self._reading_on:
            return
        if known is not None or len(self._growing) < MAX_GROWING:
            digest = self._digest_of(state, transcript)
            if digest is not None:
                self._growing[state.id] = digest
                self._reading_on[state.id] = asyncio.create_task(self._read_on(state.id, digest))

    async def _read_on(self, session: str, digest: GrowingDigest) -> None:
        try:
            with suppress(TimeoutError, OSError, UnreadableTranscript):  # drafting it reports them
                await self._threads.run(digest.read_on, DRAFT_WAIT_S)
        finally:
            del self._reading_on[session]

    def _digest_of(self, state: SessionState, transcript: str) -> GrowingDigest | None:
        """Return the digest of a session's transcript; None if its agent has no reader."""
        known = self._growing.get(state.id)
        if known is not None and known.path == transcript:
            return known
        with suppress(UnknownAgent):
            return GrowingDigest(transcript, state.id, state.agent)
        return None

    def _draft_before_compaction(self, state: SessionState, transcript: str, at: float) -> None:
        """Start to prepare for a compaction that is about to begin.

        Without a document of the agent it is drafted; else the files changed since are counted.
        """
        self._start_preparation(state, transcript, at, state.cycle, state.calls)

    def draft_after_compaction(self, state: SessionState, transcript: str, at: float) -> None:
        """Prepare the same after a compaction that no hook announced."""
        ended, calls = state.cycle - 1, _calls_before(state)
        before = self._preparing.get(state.id)
        if before is None or not before.is_for(ended, calls):
            self._start_preparation(state, transcript, at, ended, calls)

    def is_busy(self, session: str) -> bool:
        preparing = self._preparing.get(session)
        return preparing is not None and not preparing.task.done()

    def forget(self, session: str) -> None:
        """Drop what is known of a session; a draft under way is not waited for."""
        self._preparing.pop(session, None)
        self._changed.pop(session, None)
        self._growing.pop(session, None)

    def _start_preparation(
        self, state: SessionState, transcript: str, at: float, cycle: int, calls: int
    ) -> None:
        if state.id in self._preparing:
            self._preparing[state.id].task.cancel()
        self._changed.pop(state.id, None)
        when = HandoffMoment(at, cycle, calls)
        task = asyncio.create_task(self._prepare(state, transcript, when))
        task.add_done_callback(_log_failure)
        self._preparing[state.id] = Preparation(cycle, calls, task)

    async def handoff_reply(
        self, state: SessionState, compacted_at: float, room: int = MAX_CONTEXT_CHARS
    ) -> Reply | None:
        """Return the last document from before the compaction, else the draft, else no reply.

        A document is from before by its cycle, or by its time if the cycle was unknown. None while
        a draft is being written.
        """
        preparing = self._preparing.get(state.id)
        if preparing is not None:
            await asyncio.wait([preparing.task], timeout=READY_WAIT_S)
        # Before the documents are read: a draft may be finished in between.
        ready = preparing is None or preparing.task.done()
        rows = await self._store.handoffs(state.id)
        before = [row for row in rows if row.cycle < state.cycle or row.at <= compacted_at]
        row = _preferred_row(before)
        if ready:
            self._preparing.pop(state.id, None)
        elif row is None or row.draft:
            return None
        return EMPTY_REPLY if row is None else self._reply(row, state, room)

    def _reply(self, row: HandoffRow, state: SessionState, room: int) -> Reply:
        counted_for, changed = self._changed.get(state.id, (None, None))
        text = render_handoff(
            Document.of(row.text, row.path, row.at),
            author=row.author,
            at=row.at,
            now=self._clock(),
            calls_before=compute_freshness(row.calls, _calls_before(state)).calls,
            files_changed=changed if counted_for == row.id else None,
            draft=row.draft,
            room=room,
        )
        return Reply(context=text, handoff_id=row.id, session=state.id)

    async def _prepare(self, state: SessionState, transcript: str, when: HandoffMoment) -> None:
        try:
            await self._draft_or_count(state, transcript, when)
        finally:
            self._growing.pop(state.id, None)  # it begins again when the next compaction is near

    async def _draft_or_count(
        self, state: SessionState, transcript: str, when: HandoffMoment
    ) -> None:
        row = _preferred_row(await self._store.handoffs(state.id))
        if row is not None and not row.draft:
            digest = self._digest_of(state, transcript)
            read = partial(_count_changed_files, digest, row.at)
            changed = await self._threads.run(read, DRAFT_WAIT_S)
            if changed is not None:
                self._changed[state.id] = row.id, changed
            return
        await self.draft(state, transcript, when)


def _handoff_row(
    session: str, when: HandoffMoment, document: Document, author: str, draft: bool
) -> HandoffRow:
    return HandoffRow(
        id=hash_id("handoff", session, document.sha256, repr(when.at)),
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


def _log_failure(task: "asyncio.Task[None]") -> None:
    """Log why a preparation failed; the session goes on without it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.warning("cannot draft a handoff: %s", error)


def _preferred_row(rows: Sequence[HandoffRow]) -> HandoffRow | None:
    """Return the agent's last document, else the last draft."""
    return next((row for row in rows if not row.draft), rows[0] if rows else None)


def _calls_before(state: SessionState) -> int:
    """Return the calls before the last compaction; all, if no file contains it yet."""
    main = state.folded.threads.get(MAIN)
    last = main.compactions[-1] if main and main.compactions else None
    return last.calls if last and last.cycle == state.cycle - 1 else state.calls


def _draft_text(digest: GrowingDigest | None, prompt: str, most_chars: int) -> str | None:
    with suppress(OSError, UnreadableTranscript):
        return digest and digest.draft(prompt, most_chars)
    return None


def _count_changed_files(digest: GrowingDigest | None, since: float) -> int | None:
    """Return how many files the agent's tools changed since a time; None if unknown."""
    with suppress(OSError, UnreadableTranscript):
        return digest and len(files_changed_since(digest.changed_files(), since))
    return None


async def record_continuation(
    store: Store, session: str, other: str, at: float, now: float
) -> None:
    """Record that a session continues as another since a time, and forward its messages.

    A clear that is reported again has no effect if the session was resumed since.
    """
    if session == other:  # some clients keep the session when they clear
        return
    row = await store.session(session)
    if row is not None and row.became != other:
        at = max(at, row.seen_at)
        cleared = SessionRow(row.id, row.agent, row.seen_at, became=other, became_at=at)
        await store.write([PutSession(cleared), *_cancel_end_message(row, now)])
    elif row is not None and row.continued_as is None:
        return
    await forward_messages(store, session, other, now)


def _cancel_end_message(row: SessionRow, now: float) -> list[Write]:
    """Cancel the message to a parent that a session has ended, as clients report of a clear."""
    if row.parent is None or row.ended_at is None:
        return []
    id = end_message_id(row.parent, row.id, row.ended_at)
    return [MarkMessage(id, "cancelled", ("queued",), now)]


async def forward_messages(store: Store, session: str, to: str, now: float) -> None:
    """Move pending messages to another session, except those about a cycle of the old one.

    A message that was handed to a hook is moved when its delivery was not acknowledged in time.
    """
    writes: list[Write] = []
    for each in await store.pending_messages(session):
        if each.cycle is None and is_pending(each, now):
            if each.state == "handed":
                writes.append(MarkMessage(each.id, "queued", ("handed",), now, each.handed_at))
            writes.append(MoveMessage(each.id, to))
    if writes:
        await store.write(writes)


def end_message_id(parent: str, session: str, ended_at: float) -> str:
    """Return the id of the message to a parent that a session has ended."""
    return hash_id(parent, session, "ended", repr(ended_at))
