"""Incremental readers of transcripts: only what was appended is read."""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

import msgspec

from brimline.agents import source
from brimline.agents.transcripts.source import START, Cursor, Tally, Transcript
from brimline.context.events import MAIN, AnyEvent, Call, Cleared, Compacted
from brimline.context.tracker import (
    Session,
    drop_stored_calls,
    fold,
    merge_sessions,
    refers_to_dropped_call,
)
from brimline.errors import UnreadableTranscript
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.sessions.files import with_title
from brimline.sessions.format_drift import (
    DriftedFile,
    describe_damage,
    describe_drift,
    find_drift,
)

TRANSCRIPT_WAIT_S = 5.0  # a read that takes longer goes on, and is used when it is done


class Progress(msgspec.Struct, frozen=True):
    """How far a transcript was read, and the session that was folded of it.

    `seen` is the file's size and what identifies it, None before the first read. `cleared_after`
    are the ids of the main thread's calls after which a clear was reported: no file records it.
    """

    session: Session
    cursor: Cursor = START
    seen: tuple[int, float] | None = None
    tally: Tally = msgspec.field(default_factory=Tally)
    cleared_after: frozenset[str] = frozenset()


ReadOn: TypeAlias = Callable[[Transcript, Progress], Progress | None]


def read_on_from(transcript: Transcript, before: Progress) -> Progress | None:
    """Read what was appended; None if nothing was, or it cannot be read."""
    try:
        seen = _file_identity(transcript)
        return None if seen == before.seen else _read_on(transcript, before, seen)
    except (OSError, UnreadableTranscript):
        return None


def _read_on(transcript: Transcript, before: Progress, seen: tuple[int, float]) -> Progress:
    """Read on; from the start if the file is another one, or refers to dropped calls."""
    size, stamp = seen
    nothing_read = Progress(Session(agent=transcript.agent), cleared_after=before.cleared_after)
    if size and before.seen and (size < before.cursor.offset or stamp != before.seen[1]):
        before = nothing_read
    reader = source(transcript.agent).read(transcript, before.cursor, how="quick")
    events: Iterable[AnyEvent] = reader
    if any(thread.dropped.count for thread in before.session.threads.values()):
        events = list(reader)
        if refers_to_dropped_call(before.session, events):
            return _read_on(transcript, nothing_read, seen)
    if before.seen is None:  # later clears are folded when they are reported
        events = _add_clears(events, before.cleared_after)
    session = with_title(fold(before.session, events), transcript, before.cursor.offset)
    reader.tally.continue_from(before.tally)
    return Progress(session, reader.cursor, seen, reader.tally, before.cleared_after)


def _add_clears(events: Iterable[AnyEvent], cleared_after: frozenset[str]) -> Iterator[AnyEvent]:
    """Yield the events of a whole file, with a clear after each of these calls and its copies.

    A recorded compaction after such a call, before the next one, was the same end of a cycle.
    """
    last = ""
    for event in events:
        if isinstance(event, Call) and event.thread == MAIN and event.id != last:
            if last in cleared_after:
                cleared_after -= {last}
                yield Cleared()
            last = event.id
        elif isinstance(event, Compacted) and event.thread == MAIN:
            cleared_after -= {last}
        yield event
    if last in cleared_after:
        yield Cleared()


class TranscriptFollower:
    """One transcript and the session folded from it so far; it is read in a thread."""

    def __init__(
        self,
        transcript: Transcript,
        read_on: ReadOn = read_on_from,
        wait_s: float = TRANSCRIPT_WAIT_S,
        threads: ReadThreads = SHARED_READS,
        cleared_after: frozenset[str] = frozenset(),
    ) -> None:
        self._transcript = transcript
        self._read_on = read_on
        self._wait_s = wait_s
        self._threads = threads
        self._progress = Progress(Session(agent=transcript.agent), cleared_after=cleared_after)
        self._pending: asyncio.Future[Progress | None] | None = None
        self._pending_since = 0.0

    @property
    def session(self) -> Session:
        return self._progress.session

    @property
    def drift(self) -> DriftedFile | None:
        """The file, if it is not understood."""
        return find_drift(self._transcript, self.session, self._progress.tally)

    @property
    def damage(self) -> str | None:
        """The file and its malformed records, if it has any."""
        return describe_damage(self._transcript, self.session, self._progress.tally)

    @property
    def was_read(self) -> bool:
        return self._progress.seen is not None

    @property
    def offset(self) -> int:
        """How far the file was read."""
        return self._progress.cursor.offset

    @property
    def is_behind(self) -> bool:
        """Whether a read took too long and is still pending."""
        return self._pending is not None

    async def catch_up(self, transcript: Transcript | None = None) -> bool:
        """Read what was appended; return whether anything was.

        A file that cannot be read, or not in time, changes nothing; a read that hangs is waited for
        once, and goes on. A file that was replaced, or is shorter, is read from its beginning.
        """
        if transcript is not None:
            self._transcript = transcript
        late = self._pending is not None
        if not await self._wait_for_read():
            return False
        changed = self._take_result()
        if late:  # that read began before this call
            changed = (await self._wait_for_read() and self._take_result()) or changed
        return changed

    async def _wait_for_read(self) -> bool:
        """Start a read, if none is under way, and wait for it as long as it may take."""
        if self._pending is None:
            try:
                self._pending = self._threads.start(
                    partial(self._read_on, self._transcript, self._progress)
                )
            except TimeoutError:
                return False
            self._pending_since = time.monotonic()
        left = self._pending_since + self._wait_s - time.monotonic()
        if left > 0 and not self._pending.done():
            await asyncio.wait([self._pending], timeout=left)
        return self._pending.done()

    def _take_result(self) -> bool:
        assert self._pending is not None
        done, self._pending = self._pending, None
        progress = done.result()
        if progress is None or progress.cleared_after != self._progress.cleared_after:
            return False  # nothing is new, or a clear was reported meanwhile: it is read again
        self._progress = progress
        return True

    def add_clear(self, call: str) -> None:
        """Fold a clear of the main thread after this call, its last; also if it is read again."""
        before = self._progress
        self._progress = msgspec.structs.replace(
            before,
            session=fold(before.session, [Cleared()]),
            cleared_after=before.cleared_after | {call},
        )

    def restart_from(self, session: Session) -> None:
        """Read the whole file again, after what a session has."""
        self._progress = Progress(session, cleared_after=self._progress.cleared_after)

    def is_idle(self, before: float) -> bool:
        """Return whether it is a subagent's file that was last written before a time."""
        written_at = self._transcript.modified
        return 0.0 < written_at < before and MAIN not in self.session.threads

    def drop_stored_calls(self, stored: Session, keep: int) -> bool:
        """Drop old calls of each thread that is stored; return whether there were any."""
        session = drop_stored_calls(self.session, stored, keep)
        if session is self.session:
            return False
        self._progress = msgspec.structs.replace(self._progress, session=session)
        return True


def _file_identity(transcript: Transcript) -> tuple[int, float]:
    """Return a transcript's size and what identifies it: the inode, or in a database its time."""
    if not transcript.size and transcript.modified:
        return 0, transcript.modified
    try:
        status = os.stat(transcript.path)
    except ValueError as error:  # a NUL in it
        raise UnreadableTranscript(transcript.path, "no path") from error
    if not stat.S_ISREG(status.st_mode):  # a device or a pipe would never end
        raise UnreadableTranscript(transcript.path, "not a file")
    return status.st_size, float(status.st_ino)


class FollowedFiles:
    """The transcripts of one session, and the events that a program pushed."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._followers: dict[tuple[str, str], TranscriptFollower] = {}
        self._pushed = Session(agent=agent)
        self._session: Session | None = None
        self._cleared_after: frozenset[str] = frozenset()
        self.transcript: str | None = None

    def restore_clears(self, calls: Iterable[str]) -> None:
        """Set the calls after which clears were reported; to be used before a file is followed."""
        self._cleared_after = frozenset(calls)

    def add_clear(self) -> None:
        """Fold a clear of the main thread after its last call: no file records it."""
        main, own = self.session.threads[MAIN], self._main_follower
        if own is None:
            self.add_events([Cleared()])
        elif main.calls.last is not None:
            self._cleared_after |= {main.calls.last.id}
            own.add_clear(main.calls.last.id)
            self._session = None

    @property
    def _main_follower(self) -> TranscriptFollower | None:
        """The file that has the main thread; None if its events were pushed."""
        main = self.session.threads.get(MAIN)
        followers = self._followers.values()
        return next((f for f in followers if main and f.session.threads.get(MAIN) is main), None)

    @property
    def first_call(self) -> str | None:
        """The id of the first call in the file of the main thread, if that was just read."""
        own = self._main_follower
        calls = own.session.threads[MAIN].calls.values() if own else ()
        return next((call.id for call in calls), None)

    def restore_calls(self, events: Iterable[AnyEvent]) -> None:
        """Fold events before those of the main thread's file, which has lost them."""
        own = self._main_follower or self._followers.get((self.transcript or "", ""))
        if own is None:
            self.add_events(events)
            return
        own.restart_from(fold(Session(agent=self._agent), events))
        self._session = None

    def set_transcript(self, path: str) -> None:
        """Set the path of the session's own transcript; a previous one is no longer followed."""
        if path == self.transcript:
            return
        if self.transcript is not None:
            self._followers.pop((self.transcript, ""), None)
        self.transcript, self._session = path, None
        self._follow((path, ""), Transcript(self._agent, path, 0.0, 0))

    @property
    def is_behind(self) -> bool:
        """Whether a file took too long to read; its content comes with the next observation."""
        return any(follower.is_behind for follower in self._followers.values())

    @property
    def read_bytes(self) -> int:
        """How far the session's own file was read; 0 of a database."""
        own = self._followers.get((self.transcript or "", ""))
        return own.offset if own else 0

    @property
    def has_files(self) -> bool:
        """Whether any file of the session is known; else all its events were pushed."""
        return bool(self._followers)

    def describe_problem(self, version: str | None) -> str | None:
        """Return why figures may be missing: files that are not understood, or damaged.

        It is empty if there are none, None if no file was read yet. `version` is the client's, for
        files that do not name it.
        """
        read = [follower for follower in self._followers.values() if follower.was_read]
        drifted = [drift for follower in read if (drift := follower.drift)]
        if drifted:
            return describe_drift(self._agent, drifted, version)
        damaged = (damage for follower in read if (damage := follower.damage))
        return next(damaged, "") if read else None

    def add_events(self, events: Iterable[AnyEvent]) -> None:
        self._pushed, self._session = fold(self._pushed, events), None

    def drop_pushed(self) -> None:
        """Drop the events that were pushed: the files contain the same calls."""
        self._pushed, self._session = Session(agent=self._agent), None

    async def catch_up(self, other: Transcript | None = None) -> None:
        """Read on in the session's own file, and in another one that changed."""
        new = other is not None and await self._follower_of(other).catch_up(other)
        if self.transcript is not None and (other is None or other.path != self.transcript):
            new = await self._followers[self.transcript, ""].catch_up() or new
        if new:
            self._session = None

    def drop_stored_calls(self, keep: int) -> None:
        """Drop old calls from memory, which the store has.

        If two files contain one thread, only one of them is stored: the other stays as it is.
        """
        stored, pushed = self.session, self._pushed
        dropped = [each.drop_stored_calls(stored, keep) for each in self._followers.values()]
        self._pushed = drop_stored_calls(pushed, stored, keep)
        if any(dropped) or self._pushed is not pushed:
            self._session = None

    def release_idle(self, before: float) -> list[str]:
        """Release subagents' files that were last written before a time; return their threads.

        A file that is written again is read from its start.
        """
        own = (self.transcript, "")
        others = ((key, each) for key, each in self._followers.items() if key != own)
        idle = [key for key, each in others if each.is_idle(before)]
        released = [self._followers.pop(key) for key in idle]
        if released:
            self._session = None
        return [name for each in released for name in each.session.threads]

    def _follower_of(self, transcript: Transcript) -> TranscriptFollower:
        """Return the follower of a file, or of a thread in a database."""
        thread = "" if transcript.size else f"{transcript.session}/{transcript.thread}"
        return self._follow((transcript.path, thread), transcript)

    def _follow(self, key: tuple[str, str], transcript: Transcript) -> TranscriptFollower:
        follower = TranscriptFollower(transcript, cleared_after=self._cleared_after)
        return self._followers.setdefault(key, follower)

    @property
    def session(self) -> Session:
        """The session of its own file, with the threads of all files."""
        if self._session is None:
            self._session = self._merged()
        return self._session

    def _merged(self) -> Session:
        own = self._followers.get((self.transcript or "", ""))
        others = [each.session for each in self._followers.values() if each is not own]
        return merge_sessions([self._pushed, *others, *([own.session] if own else ())])
