"""What is known of transcripts: from the state file, and from what was read just now."""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from brimline.agents import source
from brimline.survey import state_file as states
from brimline.survey.codec import Saved, pack
from brimline.survey.files import UNREADABLE, problem
from brimline.survey.state_file import Entry, State
from brimline.survey.summary import Summary, summarise
from brimline.survey.workers import cores, spread
from brimline.tracker import Session, fold
from brimline.transcripts.source import START, Tally, Transcript

ALONE = 48 << 20
"""Up to so many bytes are read in this process: a fork would cost more than it saves."""

READ_WHOLE = 192 << 20
"""With more than this to read, a glance takes the ends of the files."""

Progress = Callable[[int, int], None]


class Job(msgspec.Struct, frozen=True):
    """A transcript to be read, and what was read of it before."""

    transcript: Transcript
    before: Entry | None

    @property
    def size(self) -> int:
        """How many bytes there are to read."""
        return self.transcript.size - (self.before.mark.offset if self.before else 0)


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """What became of a job: an entry, or why not."""

    path: str
    entry: Entry | None
    problem: str | None


class Knowledge:
    """Entries by path; those of files that are gone are forgotten."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder = folder
        self._state = state
        self._sessions: dict[str, Session] = {}
        self._glanced: set[str] = set()
        self._changed = False
        self.problems: list[str] = []

    @classmethod
    def of(cls, folder: Path) -> "Knowledge":
        """What the state file in a folder knows."""
        return cls(folder, states.load(folder))

    def learn(
        self, wanted: Sequence[Transcript], tails: bool = False, progress: Progress | None = None
    ) -> None:
        """Bring these transcripts up to date; with `tails`, much of it by the ends alone."""
        files = [transcript for transcript in wanted if lasting(transcript)]
        for transcript in wanted:
            if not lasting(transcript):
                self._live(transcript)
        jobs = [job for job in map(self._job, files) if job is not None]
        if tails and sum(job.size for job in jobs) > READ_WHOLE:
            jobs = [job for job in jobs if not self._by_tail(job)]
        if jobs:
            self._read(jobs, progress)

    def settle(self, there: Sequence[Transcript], agents: Iterable[str]) -> None:
        """Count a call that stands in two files only once: in the file that had it first.

        `there` are all transcripts of these agents: what else is known of them is gone.
        """
        paths = {transcript.path for transcript in there}
        asked = set(agents)
        entries = self._state.entries
        gone = [path for path, e in entries.items() if e.agent in asked and path not in paths]
        for path in gone:
            del entries[path]
        if self._changed or gone:
            self._changed = True
            for agent in asked:
                self._share([entry for entry in entries.values() if entry.agent == agent])

    def _share(self, entries: Iterable[Entry]) -> None:
        ordered = sorted(entries, key=lambda entry: (entry.summary.first or 0, entry.path))
        ids = [entry.summary.ids.split(b"\n") if entry.summary.ids else [] for entry in ordered]
        suspects = _suspects(ids)
        owned: set[bytes] = set()
        for entry, own in zip(ordered, ids, strict=True):
            suspected = suspects.intersection(own)
            again = owned & suspected
            if b"\n".join(sorted(again)) != entry.summary.shared:
                without = frozenset(id.decode() for id in again)
                summary = summarise(entry.load().session, without)
                self._state.entries[entry.path] = msgspec.structs.replace(entry, summary=summary)
            owned |= suspected

    def save(self) -> None:
        """Keep what was learned."""
        if self._changed:
            states.save(self._state, self._folder)
            self._changed = False

    def is_whole(self, transcript: Transcript) -> bool:
        """Whether a transcript was read from its beginning."""
        if _key(transcript) in self._glanced:
            return False
        return transcript.path in self._state.entries or not lasting(transcript)

    def session(self, transcript: Transcript) -> Session | None:
        """The session in a transcript; None where nothing could be read."""
        known = self._sessions.get(_key(transcript))
        if known is None and (entry := self._state.entries.get(transcript.path)):
            known = self._sessions[_key(transcript)] = entry.load().session
        return known

    def summary(self, transcript: Transcript) -> Summary | None:
        """What a transcript adds up to."""
        entry = self._state.entries.get(transcript.path) if lasting(transcript) else None
        if entry:
            return entry.summary
        session = self.session(transcript)
        return summarise(session) if session else None

    def end(self, transcript: Transcript, size: int) -> bytes | None:
        """So many last bytes of a transcript, where it was read to its end; None: not known."""
        entry = self._state.entries.get(transcript.path) if lasting(transcript) else None
        if entry is None or entry.mark.offset != transcript.size:
            return None
        return entry.mark.tail[-size:] if size <= states.TAIL else None

    def _job(self, transcript: Transcript) -> Job | None:
        entry = self._state.entries.get(transcript.path)
        if entry is None or not states.believed(entry, transcript):
            return Job(transcript, None)
        same = entry.read == (transcript.size, transcript.modified)
        return None if same else Job(transcript, entry)

    def _live(self, transcript: Transcript) -> None:
        """What the state file cannot keep is read anew each time."""
        try:
            events = source(transcript.agent).read(transcript)
            self._sessions[_key(transcript)] = fold(Session(agent=transcript.agent), events)
        except UNREADABLE as error:
            self.problems.append(problem(transcript, error))

    def _by_tail(self, job: Job) -> bool:
        """A glance at the end of a file that was never read; the cycle stays unknown."""
        if job.before is not None:
            return False
        transcript = job.transcript
        try:
            events = source(transcript.agent).read(transcript, how="end")
            self._sessions[_key(transcript)] = fold(Session(agent=transcript.agent), events)
            self._glanced.add(_key(transcript))
        except UNREADABLE as error:
            self.problems.append(problem(transcript, error))
        return True

    def _read(self, jobs: list[Job], progress: Progress | None) -> None:
        jobs = sorted(jobs, key=lambda job: job.size, reverse=True)
        sizes = list(accumulate((job.size for job in jobs), initial=0))
        whole = sizes[-1]

        def told(taken: int) -> None:
            if progress:
                progress(sizes[taken], whole)

        count = cores() if whole > ALONE else 1
        for outcome in spread(jobs, absorb, Outcome, count, told):
            self._take(outcome)
        told(len(jobs))

    def _take(self, outcome: Outcome) -> None:
        if outcome.problem:
            self.problems.append(outcome.problem)
        if outcome.entry:
            self._state.entries[outcome.path] = outcome.entry
            self._sessions.pop(outcome.path, None)
            self._changed = True


def _suspects(lists: Iterable[list[bytes]]) -> set[bytes]:
    """All that stands in those lists that repeat something; mostly there are few."""
    seen: set[bytes] = set()
    suspects: set[bytes] = set()
    for each in lists:
        before = len(seen)
        seen.update(each)
        if len(seen) < before + len(each):
            suspects.update(each)
    return suspects


def lasting(transcript: Transcript) -> bool:
    """Whether the state file can keep a transcript: a file of its own, whose name is text."""
    if not transcript.size:
        return False
    try:
        transcript.path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(transcript: Transcript) -> str:
    if lasting(transcript):
        return transcript.path
    return f"{transcript.path}#{transcript.session}#{transcript.thread}"


def absorb(job: Job) -> Outcome:
    """Read what is new in a transcript and fold it in."""
    transcript, before = job.transcript, job.before
    saved = before.load() if before else Saved(START, Session(agent=transcript.agent), Tally())
    try:
        reader = source(transcript.agent).read(transcript, saved.cursor, how="quick")
        session = fold(saved.session, reader)
        cursor = reader.cursor
        mark = states.mark(transcript.path, cursor.offset)
    except UNREADABLE as error:
        return Outcome(transcript.path, None, problem(transcript, error))
    kept = pack(Saved(cursor, session, reader.tally))
    read = (transcript.size, transcript.modified)
    summary = summarise(session)
    return Outcome(
        transcript.path, Entry(transcript.agent, transcript.path, mark, read, summary, kept), None
    )
