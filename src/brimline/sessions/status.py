"""The current context usage of every active session."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from brimline.agents import source
from brimline.agents.transcripts.source import Places
from brimline.context.cache_misses import compute_prompt_cache
from brimline.context.client_report import PromptCache, Quotas
from brimline.context.forecast import forecast
from brimline.context.need import HandoffState, KeptPart, NeedFacts
from brimline.context.policy.levels import Fullness
from brimline.context.tracker import (
    Reading,
    Session,
    Thread,
    context_threads,
    find_loop,
    held_at_trigger,
    main_thread,
    read,
    resolve_context,
)
from brimline.context.usage import percent_raw
from brimline.context.window import ClientSettings, Overrides, SeenCompaction, expect_limit
from brimline.sessions.files import (
    SessionFiles,
    find_transcripts,
    group_by_session,
    merge_transcripts,
    shorten_ids,
)
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.session_cost import ListedCosts


class ThreadStatus(msgspec.Struct, frozen=True):
    """One thread of a session; `cycle` is None if only the end of the file was read.

    `title` is what a subagent is to do. `loop` and `kept` are those of its row in the store.
    """

    thread: str
    model: str | None
    cycle: int | None
    reading: Reading
    title: str | None = None
    loop: int | None = None
    kept: int | None = None

    @property
    def kept_percent(self) -> float | None:
        """What stayed after the last compaction of a loop, in percent of the limit."""
        limit = self.reading.limit
        return percent_raw(self.kept, limit.tokens if limit else None)


class SessionStatus(msgspec.Struct, frozen=True):
    """One session: its main thread and its subagents, the newest first.

    `modified` is when it was last active: when a file of it was written, or a hook came.
    `compactions` are the automatic ones of the main thread, on its present model. `calls_left`
    and `prompt_cache` are those of the main thread, `quotas` those of its account. `cost` is in
    USD; None if it is unknown, also because only the ends of files were read. The daemon alone
    knows its handoff and its messages, whether it has ended, and as which session it continues.
    """

    agent: str
    session: str
    short_id: str
    project: str | None
    title: str | None
    modified: float
    main: ThreadStatus
    subagents: tuple[ThreadStatus, ...]
    compactions: tuple[SeenCompaction, ...] = ()
    calls_left: int | None = None
    quotas: Quotas | None = None
    prompt_cache: PromptCache | None = None
    handoff: HandoffState | None = None
    calls_since_handoff: int | None = None
    unread: int = 0
    undeliverable: str | None = None
    cost: float | None = None
    budget: float | None = None
    kept_part: KeptPart | None = None
    is_fork: bool = False
    has_ended: bool = False
    continued_as: str | None = None

    @property
    def threads(self) -> tuple[ThreadStatus, ...]:
        return (self.main, *self.subagents)

    def last_call_at(self, row: ThreadStatus) -> float:
        """Return the time of a thread's last call, else when the session was last active."""
        return self.modified if row.reading.at is None else row.reading.at

    @property
    def active_at(self) -> float:
        """The time of the last call of any thread."""
        return max(row.reading.at or 0.0 for row in self.threads) or self.modified

    def need_facts(self, fullness: Fullness | None) -> NeedFacts:
        """Return what its need depends on; `fullness` is that of the main thread."""
        reading = self.main.reading
        return NeedFacts(
            name=self.short_id,
            called_at=None if self.has_ended else self.active_at,
            is_compacting=reading.state == "compacting",
            is_limit_enforced=reading.limit is None or reading.limit.is_enforced,
            fullness=fullness,
            percent_raw=reading.percent_raw,
            percent_of_limit=reading.percent_of_limit,
            calls_left=self.calls_left,
            handoff=self.handoff,
            calls_since_handoff=self.calls_since_handoff,
            quotas=self.quotas,
            prompt_cache=self.prompt_cache,
            unread=self.unread,
            undeliverable=self.undeliverable,
            cost=self.cost,
            budget=self.budget,
            model=self.main.model,
            loop=self.main.loop,
            kept_percent=self.main.kept_percent,
            kept_part=self.kept_part,
        )


class StatusSurvey(msgspec.Struct, frozen=True):
    """The active sessions, the ids of all, and what could not be read."""

    sessions: list[SessionStatus]
    ids: frozenset[str]
    problems: list[str]


def survey_sessions(
    places: Places,
    agents: Iterable[str],
    since: float | None,
    overrides: Overrides,
    cache: Path,
    budget: float | None = None,
) -> StatusSurvey:
    """Return every session that was active since a time, or all sessions if it is None.

    `budget` is what each may cost, in USD.
    """
    transcripts = find_transcripts(places, agents)
    every = group_by_session(transcripts)
    short_ids = shorten_ids(files.session for files in every)
    active = [files for files in every if since is None or files.modified >= since]
    wanted = [transcript for files in active for transcript in files.transcripts]
    index = TranscriptIndex.load(cache)
    index.update(wanted, tails=True)
    costs = ListedCosts(index, transcripts, active)
    index.save()
    sessions: list[SessionStatus] = []
    settings: dict[tuple[str, str | None], ClientSettings] = {}
    for files in active:
        short_id = short_ids[files.session]
        glance = _session_status(files, short_id, index, places, settings, overrides)
        if glance:
            cost, is_fork = costs.cost_of(files), glance.is_fork or costs.has_copies(files)
            found = {"cost": cost, "budget": budget, "is_fork": is_fork}
            sessions.append(msgspec.structs.replace(glance, **found))
    return StatusSurvey(sessions, frozenset(short_ids), index.problems)


def _session_status(
    files: SessionFiles,
    short_id: str,
    index: TranscriptIndex,
    places: Places,
    settings: dict[tuple[str, str | None], ClientSettings],
    overrides: Overrides,
) -> SessionStatus | None:
    read_parts = ((transcript, index.session(transcript)) for transcript in files.transcripts)
    parts = [(transcript, session) for transcript, session in read_parts if session is not None]
    session = merge_transcripts(files.agent, parts)
    key = (files.agent, session.project)
    if key not in settings:
        settings[key] = source(files.agent).settings(places, session.project)
    tail_only = {
        name
        for transcript, part in parts
        if not index.is_fully_read(transcript)
        for name in part.threads
    }
    rows = [
        _thread_status(session, thread, settings[key], overrides, thread.name not in tail_only)
        for thread in context_threads(session).values()
    ]
    if not rows:
        return None
    own, *others = rows
    main = main_thread(session)
    left = forecast(main, own.reading) if main else None
    return SessionStatus(
        files.agent,
        files.session,
        short_id,
        session.project,
        session.title,
        files.modified,
        own,
        tuple(sorted(others, key=_newest_first)),
        tuple(_seen_compactions(files.agent, session, settings[key], own.reading)),
        calls_left=left and left.calls,
        quotas=session.quotas,
        prompt_cache=compute_prompt_cache(main) if main else None,
        kept_part=_kept_part(files, places) if own.loop else None,
        is_fork=session.is_fork,
    )


def _seen_compactions(
    agent: str, session: Session, settings: ClientSettings, reading: Reading
) -> Iterator[SeenCompaction]:
    main = main_thread(session)
    if main is None or main.last is None:
        return
    known, model = resolve_context(session, main, settings), main.last.model
    for each in main.compactions:
        tokens, version, at = held_at_trigger(each), each.version, each.at
        if tokens is None or version is None or at is None or each.model != model:
            continue
        then = msgspec.structs.replace(known, version=version)
        if expected := expect_limit(then, reading.window):
            yield SeenCompaction(agent, each.model, version, at, tokens, expected)


def _kept_part(files: SessionFiles, places: Places) -> KeptPart | None:
    # Imported here: few sessions are in a loop.
    from brimline.sessions.ledger.kept_part import read_kept_part

    return read_kept_part(files, places)


def _newest_first(row: ThreadStatus) -> float:
    return -(row.reading.at or 0.0)


def _thread_status(
    session: Session, thread: Thread, settings: ClientSettings, overrides: Overrides, whole: bool
) -> ThreadStatus:
    # Evidence of a longer window, and compactions, may be in the part that was not read.
    how = "transcript" if whole else "end of transcript"
    reading = read(session, thread, how, overrides, settings)
    cycle = thread.cycle if whole else None
    loop = find_loop(thread)
    return ThreadStatus(
        thread.name,
        thread.model,
        cycle,
        reading,
        thread.title,
        loop=loop and loop.compactions,
        kept=loop and loop.kept,
    )
