"""What is known of transcripts: from the state file, and from what was read just now."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from brimline.errors import UnreadableTranscript
from brimline.sources import source
from brimline.sources.base import START, Tally, Transcript
from brimline.survey import state as states
from brimline.survey.state import Entry, Saved, State
from brimline.survey.summary import Summary, summarise
from brimline.survey.workers import cores, shares, spread
from brimline.tracker import Session, fold

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


_outcomes = msgspec.msgpack.Decoder(list[Outcome])


class Knowledge:
    """Entries by path; those of files that are gone are forgotten."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder = folder
        self._state = state
        self._sessions: dict[str, Session] = {}
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
        files = [transcript for transcript in wanted if transcript.size]
        for transcript in wanted:
            if not transcript.size:
                self._live(transcript)
        jobs = [job for job in map(self._job, files) if job is not None]
        if tails and sum(job.size for job in jobs) > READ_WHOLE:
            jobs = [job for job in jobs if not self._by_tail(job)]
        if jobs:
            self._read(jobs, progress)

    def _forget_all_but(self, there: Iterable[Transcript]) -> None:
        """Drop what is known of files that are no more."""
        paths = {transcript.path for transcript in there}
        gone = [path for path in self._state.entries if path not in paths]
        for path in gone:
            del self._state.entries[path]
        self._changed = self._changed or bool(gone)

    def settle(self, there: Sequence[Transcript], whole: bool) -> None:
        """Count a call that stands in two files only once: in the file that had it first.

        `whole` says that every transcript of the machine is there: what is not, is gone.
        """
        if whole:
            self._forget_all_but(there)
        if self._changed:
            self._share([t for t in there if t.path in self._state.entries])

    def _share(self, there: Iterable[Transcript]) -> None:
        entries = [self._state.entries[path] for path in (t.path for t in there)]
        owned: set[bytes] = set()
        for entry in sorted(entries, key=lambda entry: (entry.summary.first or 0, entry.path)):
            ids = set(filter(None, entry.summary.ids.split(b"\n")))
            again = ids & owned
            if b"\n".join(sorted(again)) != entry.summary.shared:
                without = frozenset(id.decode() for id in again)
                summary = summarise(entry.load().session, without)
                self._state.entries[entry.path] = msgspec.structs.replace(entry, summary=summary)
            owned |= ids

    def save(self) -> None:
        """Keep what was learned."""
        if self._changed:
            states.save(self._state, self._folder)
            self._changed = False

    def is_whole(self, transcript: Transcript) -> bool:
        """Whether a transcript was read from its beginning."""
        return transcript.path in self._state.entries or not transcript.size

    def session(self, transcript: Transcript) -> Session | None:
        """The session in a transcript; None where nothing could be read."""
        known = self._sessions.get(_key(transcript))
        if known is None and (entry := self._state.entries.get(transcript.path)):
            known = self._sessions[_key(transcript)] = entry.load().session
        return known

    def summary(self, transcript: Transcript) -> Summary | None:
        """What a transcript adds up to."""
        entry = self._state.entries.get(transcript.path) if transcript.size else None
        if entry:
            return entry.summary
        session = self.session(transcript)
        return summarise(session) if session else None

    def _job(self, transcript: Transcript) -> Job | None:
        entry = self._state.entries.get(transcript.path)
        if entry is None or not states.believed(entry, transcript):
            return Job(transcript, None)
        same = entry.read == (transcript.size, transcript.modified)
        return None if same else Job(transcript, entry)

    def _live(self, transcript: Transcript) -> None:
        """A session in a database: read anew each time, its own file keeps the order."""
        try:
            events = source(transcript.agent).read(transcript)
            self._sessions[_key(transcript)] = fold(Session(agent=transcript.agent), events)
        except UnreadableTranscript as error:
            self.problems.append(str(error))

    def _by_tail(self, job: Job) -> bool:
        """A glance at the end of a file that was never read; the cycle stays unknown."""
        if job.before is not None:
            return False
        transcript = job.transcript
        try:
            events = source(transcript.agent).read(transcript, how="end")
            self._sessions[_key(transcript)] = fold(Session(agent=transcript.agent), events)
        except UnreadableTranscript as error:
            self.problems.append(str(error))
        return True

    def _read(self, jobs: list[Job], progress: Progress | None) -> None:
        count = cores() if sum(job.size for job in jobs) > ALONE else 1
        for packed in spread(shares(jobs, lambda job: job.size, count), work):
            for outcome in _outcomes.decode(packed):
                self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        if outcome.problem:
            self.problems.append(outcome.problem)
        if outcome.entry:
            self._state.entries[outcome.path] = outcome.entry
            self._sessions.pop(outcome.path, None)
            self._changed = True


def _key(transcript: Transcript) -> str:
    return transcript.path if transcript.size else f"{transcript.path}#{transcript.session}"


def work(jobs: Sequence[Job]) -> bytes:
    """Read these transcripts; what a worker sends back."""
    return msgspec.msgpack.encode([absorb(job) for job in jobs])


def absorb(job: Job) -> Outcome:
    """Read what is new in a transcript and fold it in."""
    transcript = job.transcript
    saved = (
        job.before.load() if job.before else Saved(START, Session(agent=transcript.agent), Tally())
    )
    try:
        reader = source(transcript.agent).read(transcript, saved.cursor, how="quick")
        session = fold(saved.session, reader)
        cursor = reader.cursor
        mark = states.mark(transcript.path, cursor.offset)
    except UnreadableTranscript as error:
        return Outcome(transcript.path, None, str(error))
    except OSError as error:
        return Outcome(transcript.path, None, f"cannot read {transcript.path}: {error.strerror}")
    kept = states.pack(Saved(cursor, session, reader.tally))
    read = (transcript.size, transcript.modified)
    entry = Entry(transcript.path, mark, read, summarise(session), kept)
    return Outcome(transcript.path, entry, None)
