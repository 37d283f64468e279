"""What the threads of transcripts carried and called, read in several processes and cached.

The cache has a file for each project, which may be deleted at any moment.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from math import fsum
from pathlib import Path
from zlib import crc32

import msgspec

from brimline._version import __version__
from brimline.agents.fresh_session import CachedAnswer, FreshPart, find_answer
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.prices import day_of
from brimline.errors import BrimlineError
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder, remove_old_files
from brimline.files.regular_file import read_regular_file
from brimline.sessions.files import READ_ERRORS
from brimline.sessions.index import (
    ONE_PROCESS_MAX_BYTES,
    Progress,
    map_in_processes,
    transcript_key,
    usable_cores,
)
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import plain_name
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from brimline.sessions.ledger.system_parts import (
    PartKey,
    SystemPart,
    count_uses,
    find_system_parts,
)
from brimline.sessions.ledger.waste import rates_of
from brimline.sessions.report import TranscriptSummary

FOLDER_NAME = "thread-parts"  # in the cache folder
MAX_CACHE_BYTES = 256 << 20  # of a project: a transcript takes 1 to 10 KB
MAX_AGE_S = 30 * 86_400.0  # an older file has only transcripts that no report reads any more


class TooMuchToRead(BrimlineError):
    """There are more bytes of unread transcripts than the caller wants to wait for."""


class ThreadParts(msgspec.Struct, frozen=True):
    """The parts that the client sent with every model call of a thread.

    `calls_by_day` is how often each part was called, `usd_by_day` what it cost to send one token
    with every model call, None if no price is known; neither has what another thread made, and
    this one copied.
    """

    parts: list[SystemPart]
    calls_by_day: dict[str, dict[PartKey, int]]
    usd_by_day: dict[str, float] | None

    def calls_since(self, first_day: str) -> Counter[PartKey]:
        total = Counter[PartKey]()
        for day, calls in self.calls_by_day.items():
            if day >= first_day:
                total.update(calls)
        return total

    def usd_since(self, first_day: str) -> float | None:
        if self.usd_by_day is None:
            return None
        return fsum(usd for day, usd in self.usd_by_day.items() if day >= first_day)


class PartsVersion(msgspec.Struct, frozen=True):
    """What the parts of a transcript depend on: its content, and the answer that divides them.

    `calls` is a hash of its calls, and of those that are copies: the size of a session in a
    database is unknown.
    """

    size: int
    modified: float
    calls: int
    answered_at: float | None


class PartsJob(msgspec.Struct, frozen=True):
    """A transcript to read; its calls in `copied` were made in another file.

    `answer` is what the client said of a fresh session like this one.
    """

    transcript: Transcript
    version: PartsVersion
    copied: bytes
    answer: CachedAnswer | None
    places: Places

    @property
    def key(self) -> bytes:
        return os.fsencode(transcript_key(self.transcript))


class CachedParts(msgspec.Struct, frozen=True):
    """The parts of the threads of a transcript, as they were read."""

    version: PartsVersion
    threads: list[ThreadParts]

    def is_valid(self, job: PartsJob) -> bool:
        """Return whether a job would read the same; only some transcripts need an answer."""
        version = job.version
        if not any(_needs_answer(part) for thread in self.threads for part in thread.parts):
            version = msgspec.structs.replace(version, answered_at=self.version.answered_at)
        return self.version == version


class ProjectCache(msgspec.Struct, frozen=True):
    """The transcripts of a project by key; another version of Brimline may read other parts."""

    version: str
    transcripts: dict[bytes, CachedParts]


_project_cache = msgspec.msgpack.Decoder(ProjectCache)


def cache_path(cache: Path, project: str) -> Path:
    name = hashlib.sha256(os.fsencode(project)).hexdigest()[:32]
    return cache / FOLDER_NAME / f"{name}.msgpack"


def read_parts(
    items: Sequence[TranscriptSummary],
    answers: Sequence[CachedAnswer],
    places: Places,
    cache: Path,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> list[list[ThreadParts]]:
    """Return the threads of each transcript of a project, none of one that cannot be read.

    `answers` divide what a transcript has as one piece. `cache` is the file of the project: what
    is not of these items leaves it. With `max_bytes` one process reads so many at most; raises
    TooMuchToRead.
    """
    here = Places(places.home, dict(places.env))  # another process gets it
    jobs = [_job(item, answers, here) for item in items]
    cached = _load(cache)
    current: dict[bytes, CachedParts] = {}
    for job in jobs:
        found = cached.get(job.key)
        if found is not None and found.is_valid(job):
            current[job.key] = found
    unread = [job for job in jobs if job.key not in current]
    sessions_at = Counter(job.transcript.path for job in jobs)
    sizes = [_unread_bytes(job.transcript, sessions_at) for job in unread]
    total, done = sum(sizes), 0
    if max_bytes is not None and total > max_bytes:
        raise TooMuchToRead(f"{total >> 20:,} MB of transcripts were not read yet")
    in_one = max_bytes is not None or total <= ONE_PROCESS_MAX_BYTES
    workers = 1 if in_one else usable_cores()
    with closing(map_in_processes(read_threads, unread, workers, chunk_jobs=1)) as results:
        for job, size, threads in zip(unread, sizes, results, strict=True):
            if threads is not None:
                current[job.key] = CachedParts(job.version, threads)
            done += size
            if progress:
                progress(done, total)
    if unread:
        _save(cache, current)
    return [current[job.key].threads if job.key in current else [] for job in jobs]


def _job(item: TranscriptSummary, answers: Sequence[CachedAnswer], places: Places) -> PartsJob:
    transcript, summary = item.transcript, item.summary
    project = summary.project or transcript.project
    answer = find_answer(answers, transcript.agent, project, summary.version, summary.first)
    calls = crc32(summary.shared, crc32(summary.ids))
    version = PartsVersion(transcript.size, transcript.modified, calls, answer and answer.at)
    return PartsJob(transcript, version, summary.shared, answer, places)


def _unread_bytes(transcript: Transcript, sessions_at: Mapping[str, int]) -> int:
    """Return about how much is read of a transcript: of a database, its sessions share the size.

    It may have sessions of other projects too; then it is less.
    """
    if transcript.size:
        return transcript.size
    try:
        return os.stat(transcript.path).st_size // sessions_at[transcript.path]
    except OSError:
        return 0


def read_threads(job: PartsJob) -> list[ThreadParts] | None:
    """Return the threads of a transcript; None if it cannot be read."""
    try:
        ledger = read_ledger(job.transcript, job.places)
    except READ_ERRORS:
        return None
    fresh = job.answer.answer.parts if job.answer else ()
    copied = frozenset(job.copied.decode().split())
    return [_thread_parts(thread, fresh, copied) for thread in ledger.threads]


def _thread_parts(
    thread: ThreadLedger, fresh: Sequence[FreshPart], copied: frozenset[str]
) -> ThreadParts:
    parts = find_system_parts(thread, fresh)
    skills = {plain_name(part.name) for part in parts if part.kind == "skill"}
    by_day: dict[str, list[Step]] = {}
    for step in thread.steps:
        if not (step.call.is_copy or step.call.id in copied):
            by_day.setdefault(day_of(step.call.at), []).append(step)
    calls_by_day: dict[str, dict[PartKey, int]] = {}
    usd_by_day: dict[str, float] = {}
    for day, steps in by_day.items():
        calls = count_uses(steps, skills)
        calls_by_day[day] = {key: tools.total() for key, tools in calls.items()}
        usd = _usd_per_token(steps, thread.steps[0])
        if usd is not None:
            usd_by_day[day] = usd
    return ThreadParts(parts, calls_by_day, usd_by_day or None)


def _usd_per_token(steps: Iterable[Step], first: Step) -> float | None:
    """Return what it cost to send a token with each call; None if no price is known."""
    rates = [(step is first, each) for step in steps if (each := rates_of(step.call))]
    return fsum(new if is_first else again for is_first, (new, again) in rates) if rates else None


def _needs_answer(part: SystemPart) -> bool:
    """Return whether the transcript does not say what a part is, so that the client must."""
    return part.is_estimated or part.kind == "system and tools"


def _load(path: Path) -> dict[bytes, CachedParts]:
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        cached = _project_cache.decode(read_regular_file(path, MAX_CACHE_BYTES))
        if cached.version == __version__:
            return cached.transcripts
    return {}


def _save(path: Path, transcripts: dict[bytes, CachedParts]) -> None:
    with suppress(OSError):  # the next report reads them again
        create_private_folder(path.parent)
        remove_old_files(path.parent, time.time() - MAX_AGE_S)
        replace_file(path, msgspec.msgpack.encode(ProjectCache(__version__, transcripts)))
