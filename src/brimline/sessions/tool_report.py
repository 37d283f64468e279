"""What the MCP servers, memory files, skills and agents of a project cost, and their calls."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from math import fsum
from pathlib import Path
from statistics import median_low
from zlib import crc32

import msgspec

from brimline._version import __version__
from brimline.agents import capabilities_of
from brimline.agents.content import SystemKind
from brimline.agents.fresh_session import CachedAnswer, find_answer, read_answers
from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN
from brimline.context.prices import day_of
from brimline.context.usage import format_tokens
from brimline.errors import BrimlineError
from brimline.files.atomic_file import replace_file
from brimline.files.private_folder import create_private_folder
from brimline.files.regular_file import read_regular_file
from brimline.sessions.files import READ_ERRORS
from brimline.sessions.index import (
    ONE_PROCESS_MAX_BYTES,
    Progress,
    map_in_processes,
    usable_cores,
)
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import plain_name
from brimline.sessions.ledger.session_ledger import read_ledger
from brimline.sessions.ledger.system_parts import (
    PartKey,
    SystemPart,
    count_uses,
    find_system_parts,
)
from brimline.sessions.ledger.waste import MIN_SHOWN_USD, MIN_WASTE_TOKENS, rates_of
from brimline.sessions.report import TranscriptSummary
from brimline.terminal.text import count_of, format_dollars

REPORTED_DAYS, DAY_S = 30, 86_400
# What agents can do without: a memory file is read, not called, so nobody can say.
CALLED_KINDS: tuple[SystemKind, ...] = ("MCP server", "skill", "agent")
REPORTED_KINDS: tuple[SystemKind, ...] = (*CALLED_KINDS, "memory file")
MIN_UNUSED_SESSIONS = 5
MAX_USED_SHARE = 0.1  # of the sessions, in which something may have been called that is advised on


class CarriedPart(msgspec.Struct, frozen=True):
    """An MCP server, a memory file, a skill or an agent in the sessions of a project.

    `tokens` is the median of the sessions that had it, None if no transcript shows it. `cost` is
    what sending it cost in USD, None if no price is known. `calls` were made in `called_sessions`.
    `is_estimated`: in some session only the client's own answer says how large it is. `advice` is a
    sentence, None without evidence that it is not needed.
    """

    agent: str
    kind: SystemKind
    name: str
    tokens: int | None
    sessions: int
    calls: int
    called_sessions: int
    cost: float | None
    is_estimated: bool
    advice: str | None = None


class ToolReport(msgspec.Struct, frozen=True):
    """What the sessions of a project carried since a day, the most expensive first.

    `answered_at` is when a client was last asked what a fresh session holds, None if never.
    """

    project: str
    since: str
    sessions: int
    parts: list[CarriedPart]
    answered_at: float | None


class ThreadLoad(msgspec.Struct, frozen=True):
    """What the client sent with every call of a thread.

    `usd_by_day` is what it cost to send one token so often, None if no price is known.
    """

    parts: list[SystemPart]
    uses: dict[PartKey, int]
    usd_by_day: dict[str, float] | None


class LoadKey(msgspec.Struct, frozen=True):
    """What the load of a transcript depends on, apart from its path."""

    size: int
    modified: float
    copied: int
    answered_at: float | None


class LoadJob(msgspec.Struct, frozen=True):
    """A transcript to read; its calls in `copied` were made in another file.

    `answer` is what the client said of a fresh session like this one.
    """

    transcript: Transcript
    copied: bytes
    answer: CachedAnswer | None
    places: Places

    @property
    def key(self) -> LoadKey:
        read, at = self.transcript, self.answer and self.answer.at
        return LoadKey(read.size, read.modified, crc32(self.copied), at)


class KeptLoad(msgspec.Struct, frozen=True):
    """What the threads of a transcript carried, when it was read."""

    key: LoadKey
    loads: list[ThreadLoad]


class KeptLoads(msgspec.Struct, frozen=True):
    """The loads by path; another version of Brimline may divide or price them in another way."""

    version: str
    loads: dict[str, KeptLoad]


_kept_loads = msgspec.msgpack.Decoder(KeptLoads)


class LoadCache:
    """Keeps what was read of transcripts: to read them all takes a second for 10 to 20 MB."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "tool-loads.msgpack"
        self._kept: dict[str, KeptLoad] = {}
        with suppress(OSError, msgspec.DecodeError):
            kept = _kept_loads.decode(read_regular_file(self._path))
            self._kept = kept.loads if kept.version == __version__ else {}

    def find(self, job: LoadJob) -> list[ThreadLoad] | None:
        """Return what a transcript carried; None if it was not read, or has changed."""
        kept = self._kept.get(job.transcript.path)
        if kept is None:
            return None
        key = job.key
        if not any(_needs_answer(part) for load in kept.loads for part in load.parts):
            key = msgspec.structs.replace(key, answered_at=kept.key.answered_at)
        return kept.loads if kept.key == key else None

    def keep(self, job: LoadJob, loads: list[ThreadLoad]) -> None:
        self._kept[job.transcript.path] = KeptLoad(job.key, loads)

    def save(self, oldest: float) -> None:
        """Write what was read, without transcripts that have not changed since `oldest`."""
        recent = {path: one for path, one in self._kept.items() if one.key.modified >= oldest}
        with suppress(OSError):  # the next report reads them again
            create_private_folder(self._path.parent)
            replace_file(self._path, msgspec.msgpack.encode(KeptLoads(__version__, recent)))


def _needs_answer(part: SystemPart) -> bool:
    """Return whether the transcript does not say what a part is, so that the client must."""
    return part.is_estimated or part.kind == "system and tools"


class TooMuchToRead(BrimlineError):
    """There are more bytes of unread transcripts than the caller wants to wait for."""


def group_by_project(items: Iterable[TranscriptSummary]) -> dict[str, list[TranscriptSummary]]:
    """Return the transcripts of each project; a subagent's is that of its session."""
    by_session: dict[str, list[TranscriptSummary]] = {}
    for item in sorted(items, key=lambda item: item.transcript.thread != MAIN):
        by_session.setdefault(item.session, []).append(item)
    groups: dict[str, list[TranscriptSummary]] = {}
    for group in by_session.values():
        projects = (item.summary.project or item.transcript.project for item in group)
        if project := next(filter(None, projects), None):
            groups.setdefault(project, []).extend(group)
    return groups


def report_tools(
    items: Sequence[TranscriptSummary],
    project: str,
    places: Places,
    cache: Path,
    now: float,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> ToolReport:
    """Total what the sessions of these transcripts carried in the last 30 days.

    What a client, asked last, did not say of a fresh session gets no advice. With `max_bytes` one
    process reads so many at most; raises TooMuchToRead.
    """
    since = day_of(now - (REPORTED_DAYS - 1) * DAY_S)
    chosen = [item for item in items if any(row.day >= since for row in item.summary.rows)]
    answers = read_answers(cache)
    here = Places(places.home, dict(places.env))  # another process gets it
    jobs = [_job(item, answers, here) for item in chosen]
    agents = {item.transcript.agent for item in chosen}
    last = [one for each in agents if (one := find_answer(answers, each, project, None, now))]
    current = {(part.kind, plain_name(part.name)) for one in last for part in one.answer.parts}
    totals: dict[tuple[str, PartKey], _Total] = {}
    read = _read_all(jobs, LoadCache(cache), now, progress, max_bytes)
    for item, loads in zip(chosen, read, strict=True):
        for load in loads:
            _add_load(totals, item, load, since)
    parts = [
        total.carried_part(agent, key, not current or key in current)
        for (agent, key), total in totals.items()
    ]
    parts.sort(key=lambda part: (part.cost or 0.0, part.tokens or 0), reverse=True)
    asked_at = max((one.at for one in last), default=None)
    return ToolReport(project, since, len({item.session for item in chosen}), parts, asked_at)


def _job(item: TranscriptSummary, answers: Sequence[CachedAnswer], places: Places) -> LoadJob:
    read, summary = item.transcript, item.summary
    project = summary.project or read.project
    answer = find_answer(answers, read.agent, project, summary.version, summary.first)
    return LoadJob(read, summary.shared, answer, places)


def _read_all(
    jobs: Sequence[LoadJob],
    cache: LoadCache,
    now: float,
    progress: Progress | None,
    max_bytes: int | None,
) -> list[list[ThreadLoad]]:
    """Return what the threads of each transcript carried; in several processes if it is much."""
    unread = [job for job in jobs if cache.find(job) is None]
    total, done = sum(job.transcript.size for job in unread), 0
    if max_bytes is not None and total > max_bytes:
        raise TooMuchToRead(f"{total >> 20:,} MB of transcripts were not read yet")
    in_one = max_bytes is not None or total <= ONE_PROCESS_MAX_BYTES
    workers = 1 if in_one else usable_cores()
    with closing(map_in_processes(read_loads, unread, workers, chunk_jobs=1)) as results:
        for job, loads in zip(unread, results, strict=True):
            cache.keep(job, loads)
            done += job.transcript.size
            if progress:
                progress(done, total)
    if unread:
        cache.save(now - REPORTED_DAYS * DAY_S)
    return [cache.find(job) or [] for job in jobs]


def read_loads(job: LoadJob) -> list[ThreadLoad]:
    """Return what the threads of a transcript carried; nothing if it cannot be read."""
    try:
        ledger = read_ledger(job.transcript, job.places)
    except READ_ERRORS:
        return []
    fresh = job.answer.answer.parts if job.answer else ()
    copied = frozenset(job.copied.decode().split())
    return [
        ThreadLoad(
            find_system_parts(thread, fresh),
            {key: uses.total() for key, uses in count_uses(thread.steps).items()},
            _usd_by_day(thread.steps, copied),
        )
        for thread in ledger.threads
    ]


def _usd_by_day(steps: Iterable[Step], copied: frozenset[str]) -> dict[str, float] | None:
    """Return what it cost to send a token with every call; None if no price is known."""
    usd, is_first = defaultdict[str, float](float), True
    for step in steps:
        rates = rates_of(step.call)
        if rates is not None and step.call.id not in copied:
            usd[day_of(step.call.at)] += rates[0] if is_first else rates[1]
        is_first = False
    return dict(usd) or None


class _Total:
    """Adds up what the sessions of a project carried of one part."""

    def __init__(self) -> None:
        self.name = ""
        self.tokens: dict[str, int] = {}  # by session: the most of a thread
        self.calls: Counter[str] = Counter()
        self.costs: list[float] = []
        self.is_estimated = False

    def carried_part(self, agent: str, key: PartKey, is_current: bool) -> CarriedPart:
        called = [session for session, calls in self.calls.items() if calls]
        part = CarriedPart(
            agent=agent,
            kind=key[0],
            name=self.name or key[1],
            tokens=median_low(self.tokens.values()) if self.tokens else None,
            sessions=len({*self.tokens, *called}),
            calls=self.calls.total(),
            called_sessions=len(called),
            cost=fsum(self.costs) if self.costs else None,
            is_estimated=self.is_estimated,
        )
        return msgspec.structs.replace(part, advice=_advise(part)) if is_current else part


def _add_load(
    totals: dict[tuple[str, PartKey], _Total], item: TranscriptSummary, load: ThreadLoad, since: str
) -> None:
    agent, session = item.transcript.agent, item.session
    usd = load.usd_by_day
    usd_per_token = fsum(each for day, each in usd.items() if day >= since) if usd else None
    for part in load.parts:
        if part.kind in REPORTED_KINDS and part.name:
            total = totals.setdefault((agent, (part.kind, plain_name(part.name))), _Total())
            total.name = part.name
            total.tokens[session] = max(part.tokens, total.tokens.get(session, 0))
            total.is_estimated = total.is_estimated or part.is_estimated
            if usd_per_token is not None:
                total.costs.append(part.tokens * usd_per_token)
    for key, calls in load.uses.items():
        if key[0] in CALLED_KINDS and key[1]:
            totals.setdefault((agent, key), _Total()).calls[session] += calls


def _advise(part: CarriedPart) -> str | None:
    """Return what to do about a part that was carried and not called, if that is worth a line."""
    remove = capabilities_of(part.agent).disable_part.get(part.kind)
    unused = part.sessions - part.called_sessions
    is_unused = unused >= MIN_UNUSED_SESSIONS and (
        part.called_sessions <= MAX_USED_SHARE * part.sessions
    )
    tokens, cost = part.tokens or 0, part.cost or 0.0
    if remove is None or not is_unused or (tokens < MIN_WASTE_TOKENS and cost < MIN_SHOWN_USD):
        return None
    called = f"called in {part.called_sessions}" if part.called_sessions else "never called"
    spent = f", {format_dollars(part.cost)} in {REPORTED_DAYS} days" if part.cost else ""
    sessions = count_of(part.sessions, "session")
    facts = f"{part.name}: {format_tokens(tokens)} in {sessions}, {called}{spent}"
    return f"{facts}: to disable it in this project, {remove.format(name=part.name)}."
