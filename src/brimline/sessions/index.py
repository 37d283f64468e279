"""An index of transcripts: what the state file holds, brought up to date with the files."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from brimline.agents import source
from brimline.agents.transcripts.source import (
    START,
    ReadMode,
    Tally,
    Transcript,
    begun_at,
)
from brimline.context.tracker import Session, fold
from brimline.errors import WorkerFailed
from brimline.sessions import state_file
from brimline.sessions.files import READ_ERRORS, describe_read_error, with_title
from brimline.sessions.format_drift import (
    DriftedFile,
    describe_damage,
    describe_drift,
    find_drift,
)
from brimline.sessions.state_file import SavedSession, State, StateEntry, encode_session
from brimline.sessions.summary import FileSummary, summarise

ONE_PROCESS_MAX_BYTES = 48 << 20  # for less, starting workers costs more than it saves
TAILS_ABOVE_BYTES = 192 << 20  # with more to read, `status` reads only the ends of new files
MAX_WORKERS = 4
CHUNK_JOBS = 8  # jobs that a worker gets at a time: one by one they took a quarter longer

Progress = Callable[[int, int], None]
JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


class ReadJob(msgspec.Struct, frozen=True):
    """A transcript to read, and its entry up to which it was read before."""

    transcript: Transcript
    before: StateEntry | None

    @property
    def unread_bytes(self) -> int:
        return self.transcript.size - (self.before.mark.offset if self.before else 0)


class ReadResult(msgspec.Struct, frozen=True):
    """A transcript's new entry, or why it could not be read."""

    path: str
    entry: StateEntry | None
    reason: str | None


class TranscriptIndex:
    """Entries by path; those of deleted files are dropped."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder = folder
        self._state = state
        self._sessions: dict[str, Session] = {}
        self._tail_only: set[str] = set()
        self._drifted: dict[str, list[DriftedFile]] = {}  # by agent, of what has no entry
        self._changed = False
        self.problems: list[str] = []

    @classmethod
    def load(cls, folder: Path) -> "TranscriptIndex":
        return cls(folder, state_file.load(folder))

    def update(
        self,
        transcripts: Sequence[Transcript],
        tails: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Read what is new in these transcripts; with `tails`, only the ends if it is much."""
        for transcript in transcripts:
            if not is_cacheable(transcript):
                self._read_without_entry(transcript, "every")
        cacheable = [transcript for transcript in transcripts if is_cacheable(transcript)]
        jobs = [job for job in map(self._job_for, cacheable) if job is not None]
        if tails and sum(job.unread_bytes for job in jobs) > TAILS_ABOVE_BYTES:
            jobs = [job for job in jobs if not self._read_tail(job)]
        if jobs:
            self._read(jobs, progress)
        self._report_unread(cacheable)

    def _report_unread(self, transcripts: Iterable[Transcript]) -> None:
        for transcript in transcripts:
            entry = self._state.entries.get(transcript.path)
            if entry is not None and entry.damage is not None:
                self.problems.append(entry.damage)
            if entry is not None and entry.drift is not None:
                self._drifted.setdefault(transcript.agent, []).append(entry.drift)
        self.problems += [describe_drift(agent, files) for agent, files in self._drifted.items()]
        self._drifted.clear()

    def read_rest(self, transcripts: Sequence[Transcript]) -> bool:
        """Read what is unread of these transcripts if it is little; return whether it was.

        What could not be read is not reported: these sessions were not asked for.
        """
        jobs = [job for each in transcripts if is_cacheable(each) and (job := self._job_for(each))]
        if sum(job.unread_bytes for job in jobs) > TAILS_ABOVE_BYTES:
            return False
        problems = list(self.problems)
        self._read(jobs, None)
        self.problems = problems
        return True

    def dedupe_calls(self, transcripts: Sequence[Transcript], agents: Iterable[str]) -> None:
        """Count a call that is in two files only once: in the file of the session that made it.

        `transcripts` are all of these agents; their other entries are dropped.
        """
        paths = {transcript.path for transcript in transcripts}
        chosen = set(agents)
        entries = self._state.entries
        unassigned = self._state.unassigned
        for path, entry in list(entries.items()):
            if entry.agent in chosen and path not in paths:
                unassigned.add(entry.agent)
                del entries[path]
        for agent in chosen & unassigned:
            self._assign_calls([entry for entry in entries.values() if entry.agent == agent])
            unassigned.remove(agent)
            self._changed = True

    def _assign_calls(self, entries: Iterable[StateEntry]) -> None:
        ordered = sorted(entries, key=_creation_order)
        ids = [entry.summary.ids.split(b"\n") if entry.summary.ids else [] for entry in ordered]
        candidates = _possibly_shared(ids)
        owned: set[bytes] = set()
        for entry, own_ids in zip(ordered, ids, strict=True):
            own_candidates = candidates.intersection(own_ids)
            shared = owned & own_candidates
            if b"\n".join(sorted(shared)) != entry.summary.shared:
                excluded = frozenset(id.decode() for id in shared)
                summary = summarise(entry.load().session, excluded)
                self._state.entries[entry.path] = msgspec.structs.replace(entry, summary=summary)
            owned |= own_candidates

    def save(self) -> None:
        if self._changed:
            state_file.save(self._state, self._folder)
            self._changed = False

    def is_fully_read(self, transcript: Transcript) -> bool:
        if transcript_key(transcript) in self._tail_only:
            return False
        return transcript.path in self._state.entries or not is_cacheable(transcript)

    def begun_at(self, transcript: Transcript) -> float | None:
        """Return when a file was begun; None if it has no entry, or no time."""
        entry = self._state.entries.get(transcript.path)
        return entry.begun_at if entry else None

    def session(self, transcript: Transcript) -> Session | None:
        """Return the session in a transcript; None if nothing could be read."""
        session = self._sessions.get(transcript_key(transcript))
        if session is None and (entry := self._state.entries.get(transcript.path)):
            session = self._sessions[transcript_key(transcript)] = entry.load().session
        return session

    def summary(self, transcript: Transcript) -> FileSummary | None:
        """Return a transcript's totals; None if nothing could be read."""
        entry = self._state.entries.get(transcript.path) if is_cacheable(transcript) else None
        if entry:
            return entry.summary
        session = self.session(transcript)
        return summarise(session) if session else None

    def _job_for(self, transcript: Transcript) -> ReadJob | None:
        entry = self._state.entries.get(transcript.path)
        if entry is None or not state_file.still_matches(entry.mark, transcript):
            return ReadJob(transcript, None)
        same = entry.read == (transcript.size, transcript.modified)
        return None if same else ReadJob(transcript, entry)

    def _read_without_entry(self, transcript: Transcript, how: ReadMode) -> None:
        try:
            reader = source(transcript.agent).read(transcript, how=how)
            session = with_title(fold(Session(agent=transcript.agent), reader), transcript)
        except READ_ERRORS as error:
            self.problems.append(describe_read_error(transcript, error))
            return
        self._sessions[transcript_key(transcript)] = session
        if drift := find_drift(transcript, session, reader.tally):
            self._drifted.setdefault(transcript.agent, []).append(drift)
        if damage := describe_damage(transcript, session, reader.tally):
            self.problems.append(damage)

    def _read_tail(self, job: ReadJob) -> bool:
        """Read the end of a file that was never read; its cycle stays unknown."""
        if job.before is not None:
            return False
        self._read_without_entry(job.transcript, "end")
        self._tail_only.add(transcript_key(job.transcript))
        return True

    def _read(self, jobs: list[ReadJob], progress: Progress | None) -> None:
        # The largest first: the last worker then has little left to do alone.
        jobs = sorted(jobs, key=lambda job: job.unread_bytes, reverse=True)
        total = sum(job.unread_bytes for job in jobs)
        workers = usable_cores() if total > ONE_PROCESS_MAX_BYTES else 1
        done = 0
        with closing(map_in_processes(read_transcript, jobs, workers)) as results:
            for job, result in zip(jobs, results, strict=True):
                self._add_result(result)
                done += job.unread_bytes
                if progress:
                    progress(done, total)

    def _add_result(self, result: ReadResult) -> None:
        if result.reason:
            self.problems.append(result.reason)
        if result.entry:
            self._state.entries[result.path] = result.entry
            self._state.unassigned.add(result.entry.agent)
            self._sessions.pop(result.path, None)
            self._changed = True


def _creation_order(entry: StateEntry) -> tuple[float, int, str]:
    """Return the sort key that puts an original before its forks.

    If both were begun with the same records, the original is the one that has no other calls.
    """
    # A fork copies the times of its calls: only what precedes them has a time of its own.
    begun = entry.summary.first if entry.begun_at is None else entry.begun_at
    return begun or 0.0, len(entry.summary.ids), entry.path


def _possibly_shared(id_lists: Iterable[list[bytes]]) -> set[bytes]:
    """Return all ids of the lists that repeat an id; mostly there are few."""
    seen: set[bytes] = set()
    candidates: set[bytes] = set()
    for ids in id_lists:
        before = len(seen)
        seen.update(ids)
        if len(seen) < before + len(ids):
            candidates.update(ids)
    return candidates


def is_cacheable(transcript: Transcript) -> bool:
    """Whether the state file can hold it: a file of its own, whose name is valid text."""
    if not transcript.size:
        return False
    try:
        transcript.path.encode()
    except UnicodeEncodeError:
        return False
    return True


def transcript_key(transcript: Transcript) -> str:
    """Return its path, with session and thread if the state file cannot hold it."""
    if is_cacheable(transcript):
        return transcript.path
    return f"{transcript.path}#{transcript.session}#{transcript.thread}"


def usable_cores() -> int:
    """Return how many processes are worth starting."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no affinity
        usable = os.cpu_count() or 1
    return min(MAX_WORKERS, usable)


def map_in_processes(
    function: Callable[[JobT], ResultT],
    jobs: Sequence[JobT],
    workers: int,
    chunk_jobs: int = CHUNK_JOBS,
) -> Generator[ResultT, None, None]:
    """Yield the result of each job, in their order; raises WorkerFailed if a worker dies."""
    if workers == 1:
        yield from map(function, jobs)
        return
    # Imported here: it takes 20 ms, and most commands have little to read.
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context(method), _reset_signals)
    try:
        yield from pool.map(function, jobs, chunksize=chunk_jobs)
    except BrokenProcessPool as error:
        raise WorkerFailed from error
    finally:
        with delay_interrupt():  # else Python closes the pool at exit, with a traceback
            pool.shutdown(cancel_futures=True)


@contextmanager
def delay_interrupt() -> Generator[None, None, None]:
    """Raise KeyboardInterrupt after the block, if Ctrl-C was pressed within it.

    Workers end at Ctrl-C by themselves, so that the pool does not wait for them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    presses: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: presses.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if presses:
        raise KeyboardInterrupt


def _reset_signals() -> None:
    """In a worker: end silently at Ctrl-C, and write nothing to the parent's event loop."""
    signal.set_wakeup_fd(-1)
    # `watch` handles SIGTERM and SIGHUP itself, and a forked worker inherits its handlers.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def read_transcript(job: ReadJob) -> ReadResult:
    transcript, before = job.transcript, job.before
    empty = SavedSession(START, Session(agent=transcript.agent), Tally())
    saved = before.load() if before else empty
    try:
        reader = source(transcript.agent).read(transcript, saved.cursor, how="quick")
        folded = fold(saved.session, reader)
        session = with_title(folded, transcript, saved.cursor.offset)
        cursor = reader.cursor
        mark = state_file.file_mark(transcript.path, cursor.offset)
    except READ_ERRORS as error:
        return ReadResult(transcript.path, None, describe_read_error(transcript, error))
    tally = reader.tally
    tally.continue_from(saved.tally)
    encoded = encode_session(SavedSession(cursor, session, tally))
    size_and_time = (transcript.size, transcript.modified)
    begun = before.begun_at if before else begun_at(transcript.path)
    entry = StateEntry(
        transcript.agent,
        transcript.path,
        mark,
        size_and_time,
        summarise(session),
        encoded,
        begun,
        find_drift(transcript, session, tally),
        describe_damage(transcript, session, tally),
    )
    return ReadResult(transcript.path, entry, None)
