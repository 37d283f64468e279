"""The views of sessions that the HTTP API serves, built from rows of the store."""

import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from math import fsum
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from brimline.agents import capabilities_of
from brimline.context.cache_misses import CacheMiss, MissFinder, with_reported_causes
from brimline.context.client_report import PromptCache, Quotas, ReportedMiss, decode_report
from brimline.context.events import MAIN, Call, is_compaction_thread
from brimline.context.inbox import Message, with_expiry
from brimline.context.need import End, KeptPart, Need, NeedFacts, assess, next_change
from brimline.context.policy.levels import Fullness
from brimline.context.usage import percent_raw
from brimline.context.window import UNENFORCED
from brimline.monitor.handoffs import HandoffStatus, status_of_handoff
from brimline.monitor.monitor import Monitor
from brimline.monitor.user_rules import Rules
from brimline.sessions.files import MIN_SHORT_ID_CHARS
from brimline.store.base import Store
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, SignalRow, ThreadRow

MAX_TREND_POINTS = 60
PLAIN_ID = re.compile(r"\w[\w.-]*")
MAX_SINGLE_READS = 500  # for more sessions, four reads of whole tables are faster

RowT = TypeVar("RowT", ThreadRow, Message, HandoffRow)
# Returns the largest part of what a session kept at the last compaction, by its main thread.
KeptReader: TypeAlias = Callable[[SessionRow, ThreadRow], Awaitable[KeptPart | None]]


class ThreadView(ThreadRow, frozen=True, kw_only=True):
    """A thread with its levels, in percent of its window, and how full it is by them.

    `fullness` is low, medium from the first level, high from the last, limit at the limit.
    `pending_level` is the highest level whose message the agent has not received yet.
    """

    levels: list[float]
    fullness: Fullness | None
    pending_level: float | None


class SessionView(msgspec.Struct, frozen=True):
    """A session with its threads, the main thread first.

    `levels` and `limit_at` are percentages of the window. `trend` has the tokens that the calls of
    the current cycle sent. `calls_left` is a forecast until the limit; the true number is within
    `calls_left_range` 8 times out of 10. `cost` is what it has cost in USD, without copies of
    another session's calls; None if no price is known. `unread` counts the pending messages of
    people and other agents. `undeliverable` is why nothing will deliver these, and how to change
    that. `last_handoff_path` is the path of its last handoff document. `resume_command` continues
    the session in a shell; None if its client cannot. `quotas` are those of the account that it
    uses, as its own client last reported them: the same account may have used more since. `need` is
    what it asks of a person now, `ends` what stops it if it goes on, the nearest first. Lists are
    sorted by `rank`, the smallest first, which is 0 with a need, 1 if active, 2 if idle, then by
    the need's kind, then nearest to the limit.
    """

    session: SessionRow
    threads: list[ThreadView]
    levels: list[float]
    limit_at: float | None
    trend: list[int]
    handoff: HandoffStatus
    unread: int
    undeliverable: str | None
    calls_left: int | None
    calls_left_range: list[int] | None
    cost: float | None
    budget: float | None
    last_handoff_path: str | None
    resume_command: str | None
    quotas: Quotas | None
    prompt_cache: PromptCache | None
    need: Need | None
    ends: list[End]
    rank: list[float]
    is_near_limit: bool


class SessionRows(NamedTuple):
    """All from which a session's view is built.

    `undeliverable` is why nothing will deliver its messages. `kept_part` is known if it is in a
    loop of compactions.
    """

    session: SessionRow
    threads: Sequence[ThreadRow]
    waiting: Sequence[Message]
    handoffs: Sequence[HandoffRow]
    cost: float | None = None
    undeliverable: str | None = None
    kept_part: KeptPart | None = None

    @property
    def called_at(self) -> float | None:
        """The time of the last call, else when the session was last seen; None if it has ended."""
        if self.session.has_ended:
            return None
        return max((each.at or 0.0 for each in self.threads), default=0.0) or self.session.seen_at

    def expires_at(self, now: float) -> float | None:
        """When the view changes without a write: a message or the cache expires, a quota resets.

        A message that has expired stays among those that wait until it is removed.
        """
        report = decode_report(self.session.client_report)
        changes = (
            *(each.expires for each in self.waiting),
            report.next_change(now),
            next_change(self.called_at, report.prompt_cache, now),
        )
        return min((at for at in changes if at is not None and at > now), default=None)


class HandoffHead(msgspec.Struct, frozen=True):
    """A handoff without its text."""

    id: str
    at: float
    path: str
    author: str
    cycle: int
    calls: int | None
    draft: bool
    used_at: float | None


class ThreadMiss(CacheMiss, frozen=True, kw_only=True):
    """A cache miss of a thread."""

    thread: str


class Timeline(msgspec.Struct, frozen=True):
    """What happened in a session; `cost` is an estimate in dollars, None if no price is known.

    Copies of another session's calls are in `calls`, and not in `cost`.
    """

    calls: list[CallRow]
    compactions: list[CompactionRow]
    signals: list[SignalRow]
    messages: list[Message]
    handoffs: list[HandoffHead]
    cost: float | None
    misses: list[ThreadMiss]


class HandoffView(msgspec.Struct, frozen=True):
    """A session's handoffs, the last one first."""

    handoffs: list[HandoffRow]


class Views:
    """Builds the views; on a fleet's server, `has_remote_readers` in other time zones.

    `read_kept` reads the transcripts of sessions that are in a loop of compactions.
    """

    def __init__(
        self,
        store: Store,
        monitor: Monitor,
        rules: Rules,
        has_remote_readers: bool = False,
        read_kept: KeptReader | None = None,
    ) -> None:
        self._store, self._monitor, self._rules = store, monitor, rules
        self._read_kept = read_kept
        self._has_remote_readers = has_remote_readers

    async def read_rows(self, sessions: Sequence[str]) -> AsyncIterator[SessionRows]:
        """Yield the rows of these sessions in order; sessions that are gone are skipped."""
        if len(sessions) <= MAX_SINGLE_READS:
            for id in sessions:
                session = await self._store.session(id)
                if session is not None:
                    yield await self._complete(session)
            return
        by_id = {row.id: row for row in await self._store.sessions()}
        threads = _group_by_session(await self._store.threads())
        waiting = _group_by_session(await self._store.pending_messages())
        handoffs = _group_by_session(await self._store.last_handoffs())
        costs = await self._store.costs()
        for id in sessions:
            if id in by_id:
                rows = threads.get(id, []), waiting.get(id, []), handoffs.get(id, [])
                yield await self.with_causes(SessionRows(by_id[id], *rows, costs.get(id)))

    async def _complete(self, session: SessionRow) -> SessionRows:
        threads = await self._store.threads(session.id)
        waiting = await self._store.pending_messages(session.id)
        handoffs = await self._store.last_handoffs(session.id)
        rows = SessionRows(session, threads, waiting, handoffs, await self.cost(session.id))
        return await self.with_causes(rows)

    async def with_causes(self, rows: SessionRows) -> SessionRows:
        """Return the rows with what keeps messages from delivery, and what keeps a loop going."""
        main = next((each for each in rows.threads if each.thread == MAIN), None)
        if main is not None and main.loop and self._read_kept is not None:
            rows = rows._replace(kept_part=await self._read_kept(rows.session, main))
        if all(each.level is not None for each in rows.waiting):
            return rows
        problem = await self._monitor.delivery_problem(rows.session.id)
        return rows._replace(undeliverable=problem)

    async def view(self, row: SessionRow) -> SessionView:
        return self.build(await self._complete(row))

    def known_calls(self, session: str) -> int | None:
        """Return how many calls the monitor holds of a session; None if it has not read it yet.

        `trend` and `calls_left` come from those, and so change without a write.
        """
        state = self._monitor.state_of(session)
        return state.calls if state else None

    async def cost(self, session: str) -> float | None:
        """Return what a session has cost; None if no price is known."""
        return (await self._store.costs(session)).get(session)

    async def handoff_status(self, session: str) -> HandoffStatus:
        handoffs = await self._store.last_handoffs(session)
        return status_of_handoff(handoffs[0] if handoffs else None, self.known_calls(session))

    def build(self, rows: SessionRows) -> SessionView:
        row, threads, waiting, handoffs, cost, undeliverable, kept_part = rows
        now = self._monitor.now()
        pending = [each for each in waiting if with_expiry(each, now).state != "expired"]
        thread_views = self._thread_views(row, threads, pending)
        main = next((thread for thread in thread_views if thread.thread == MAIN), None)
        last = handoffs[0] if handoffs else None
        left = self._monitor.calls_left(row.id)
        stored_left = main.calls_left if main else None
        report = decode_report(row.client_report)
        handoff = status_of_handoff(last, main.calls if main else None)
        unread = sum(each.level is None for each in pending)
        undeliverable = undeliverable if unread else None  # what had expired is no problem
        calls_left = left.calls if left else stored_left
        quotas = report.quotas and report.quotas.current(now)
        prompt_cache = report.prompt_cache and report.prompt_cache.current(now)
        facts = NeedFacts(
            name=row.id[:MIN_SHORT_ID_CHARS],
            called_at=rows.called_at,
            is_compacting=main is not None and main.state == "compacting",
            is_limit_enforced=main is None or main.limit_origin not in UNENFORCED,
            fullness=main.fullness if main else None,
            percent_raw=main.percent_raw if main else None,
            percent_of_limit=main.percent_of_limit if main else None,
            model=main.model if main else None,
            calls_left=calls_left,
            handoff=handoff.state,
            calls_since_handoff=handoff.calls_since,
            quotas=quotas,
            prompt_cache=prompt_cache,
            unread=unread,
            undeliverable=undeliverable,
            cost=cost,
            budget=self._rules.budget,
            has_remote_readers=self._has_remote_readers,
            loop=main.loop if main else None,
            kept_percent=percent_raw(main.kept, main.limit) if main else None,
            kept_part=kept_part,
        )
        assessed = assess(facts, now)
        return SessionView(
            session=_for_view(row),
            threads=thread_views,
            levels=main.levels if main else [],
            limit_at=percent_raw(main.limit, main.window) if main else None,
            trend=self._trend(row.id),
            handoff=handoff,
            unread=unread,
            undeliverable=undeliverable,
            calls_left=calls_left,
            calls_left_range=left and left.range,
            cost=cost,
            budget=self._rules.budget,
            last_handoff_path=(last.path or None) if last and not last.draft else None,
            resume_command=resume_command(row.agent, row.id, row.project),
            quotas=quotas,
            prompt_cache=prompt_cache,
            need=assessed.need,
            ends=assessed.ends,
            rank=list(assessed.rank),
            is_near_limit=assessed.is_near_limit,
        )

    async def threads(self, row: SessionRow) -> list[ThreadView]:
        return self.build(await self._complete(row)).threads

    def _thread_views(
        self, row: SessionRow, threads: Iterable[ThreadRow], pending: Sequence[Message]
    ) -> list[ThreadView]:
        """Return the main thread first, then the latest."""
        ordered = sorted(threads, key=lambda each: (each.thread != MAIN, -(each.at or 0.0)))
        return [self._thread_view(row, each, pending) for each in ordered]

    def _thread_view(
        self, row: SessionRow, thread: ThreadRow, pending: Sequence[Message]
    ) -> ThreadView:
        whose = row.id, row.agent, thread.model or row.model
        marks = self._rules.marks_of(*whose, thread.window, thread.limit)
        mark_of = dict(zip(self._rules.levels_of(*whose), marks, strict=False))
        levels = {each.level for each in pending if (each.thread or MAIN) == thread.thread}
        return ThreadView(
            **msgspec.structs.asdict(thread),
            levels=marks,
            fullness=self._rules.fullness_of(thread, *whose),
            pending_level=max((mark_of[each] for each in levels if each in mark_of), default=None),
        )

    def _trend(self, session: str) -> list[int]:
        state = self._monitor.state_of(session)
        main = state.folded.threads.get(MAIN) if state else None
        return sample(main.sents_of_cycle) if main else []

    async def timeline(self, session: str) -> Timeline:
        now = self._monitor.now()
        rows = await self._store.calls(session)
        calls = [row for row in rows if not row.is_spending]
        compactions = await self._store.compactions(session)
        row = await self._store.session(session)
        reported = decode_report(row.client_report).misses if row else ()
        return Timeline(
            calls=calls,
            compactions=compactions,
            signals=await self._store.signals(session),
            messages=[with_expiry(each, now) for each in await self._store.messages(session)],
            handoffs=msgspec.convert(
                await self._store.handoffs(session), list[HandoffHead], from_attributes=True
            ),
            cost=_sum_costs(rows),
            misses=_misses_of(calls, compactions, reported),
        )


def sample(points: list[int], most: int = MAX_TREND_POINTS) -> list[int]:
    """Return at most `most` points, with the first and the last.

    They are taken at fixed places, so that one more point changes few of them.
    """
    step = max(1, -(-(len(points) - 1) // (most - 1)))
    return points[:-1:step] + points[-1:]


def resume_command(agent: str, session: str, project: str | None) -> str | None:
    """Return the shell command that resumes a session in its project; None if there is none.

    People paste it: an id that could be an option, or a path with control characters, has none. An
    uplink reports only the name of a project, which is no folder to change to.
    """
    command = capabilities_of(agent).resume_command
    if not command or not PLAIN_ID.fullmatch(session) or not (project or "").isprintable():
        return None
    resume = shlex.join([*command, session])
    # Clients look for a session among those of the current folder.
    is_folder = project is not None and Path(project).is_absolute()
    return f"cd {shlex.quote(project)} && {resume}" if project and is_folder else resume


def _sum_costs(rows: Iterable[CallRow]) -> float | None:
    """Return the cost of the calls and spendings whose price is known, in USD."""
    known = [row.cost for row in rows if row.cost is not None]
    return fsum(known) if known else None


def _misses_of(
    calls: Iterable[CallRow],
    compactions: Iterable[CompactionRow],
    reported: Sequence[ReportedMiss],
) -> list[ThreadMiss]:
    """Return the cache misses of calls that are sorted by thread, but not those of copies."""
    compacted = {(row.thread, row.cycle) for row in compactions}
    misses: list[ThreadMiss] = []
    finder, before = MissFinder(), None
    for row in calls:
        if is_compaction_thread(row.thread):
            continue
        if before is None or before.thread != row.thread:
            finder, before = MissFinder(), row
        change = None
        if row.cycle != before.cycle:
            change = "compaction" if (row.thread, row.cycle - 1) in compacted else "clear"
        call = Call(id=row.call, usage=row.usage, at=row.at, model=row.model, thread=row.thread)
        if (miss := finder.add(call, change)) and row.counted:
            billed = msgspec.structs.replace(miss, cost=row.miss_cost)
            misses.append(ThreadMiss(**msgspec.structs.asdict(billed), thread=row.thread))
        before = row
    # A client reports those of the main thread.
    main = with_reported_causes((each for each in misses if each.thread == MAIN), reported)
    by_call = {each.call: each for each in main}
    return [by_call.get(each.call, each) if each.thread == MAIN else each for each in misses]


def _for_view(row: SessionRow) -> SessionRow:
    """Return a row without an empty problem, and without the end of a session that was resumed.

    The view has the client's report as `quotas` and `prompt_cache`; its variables are for the
    monitor alone.
    """
    return msgspec.structs.replace(
        row,
        env=None,
        ended_at=row.ended_at if row.has_ended else None,
        became=row.continued_as,
        problem=row.problem or None,
        client_report=None,
    )


def _group_by_session(rows: Iterable[RowT]) -> dict[str, list[RowT]]:
    groups: dict[str, list[RowT]] = {}
    for row in rows:
        groups.setdefault(row.session, []).append(row)
    return groups
