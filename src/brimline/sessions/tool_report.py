"""What the MCP servers, memory files, skills and agents of a project cost, and their calls."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import fsum
from pathlib import Path
from statistics import median_low

import msgspec

from brimline.agents import capabilities_of
from brimline.agents.content import SystemKind
from brimline.agents.fresh_session import CachedAnswer, find_answer, read_answers
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.context.prices import day_of
from brimline.context.usage import format_tokens
from brimline.sessions.index import Progress
from brimline.sessions.ledger.context_parts import plain_name
from brimline.sessions.ledger.system_parts import PartKey
from brimline.sessions.ledger.waste import MIN_SHOWN_USD, MIN_WASTE_TOKENS
from brimline.sessions.report import TranscriptSummary
from brimline.sessions.thread_parts import ThreadParts, cache_path, read_parts
from brimline.terminal.text import count_of, format_dollars

REPORTED_DAYS, DAY_S = 30, 86_400
# A memory file is read, not called: its sessions say nothing of its use.
CALLED_KINDS: tuple[SystemKind, ...] = ("MCP server", "skill", "agent")
REPORTED_KINDS: tuple[SystemKind, ...] = (*CALLED_KINDS, "memory file")
MIN_UNUSED_SESSIONS = 5
MAX_USED_SHARE = 0.1  # of a part's sessions: there is no advice if more of them called it


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


def group_by_project(items: Iterable[TranscriptSummary]) -> dict[str, list[TranscriptSummary]]:
    """Return the transcripts of each project; a subagent's is that of its session."""
    by_session: dict[tuple[str, str], list[TranscriptSummary]] = {}
    for item in sorted(items, key=lambda item: item.transcript.thread != MAIN):
        by_session.setdefault((item.transcript.agent, item.session), []).append(item)
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

    What a fresh session has not, by the client's last answer, gets no advice, nor does what comes
    with the client. With `max_bytes` one process reads so many at most; raises TooMuchToRead.
    """
    since = day_of(now - (REPORTED_DAYS - 1) * DAY_S)
    chosen = [item for item in items if any(row.day >= since for row in item.summary.rows)]
    answers = read_answers(cache)
    read = read_parts(chosen, answers, places, cache_path(cache, project), progress, max_bytes)
    totals = defaultdict[tuple[str, PartKey], _Total](_Total)
    for item, threads in zip(chosen, read, strict=True):
        for thread in threads:
            _add_thread(totals, item, thread, since)
    sessions = {(item.transcript.agent, item.session) for item in chosen}
    last = {agent: find_answer(answers, agent, project, None, now) for agent, _ in sessions}
    carried = [total.carried_part(agent, key) for (agent, key), total in totals.items()]
    parts = [
        msgspec.structs.replace(part, advice=_advise(part, last[part.agent])) for part in carried
    ]
    parts.sort(key=lambda part: (part.cost or 0.0, part.tokens or 0), reverse=True)
    asked_at = max((answer.at for answer in last.values() if answer), default=None)
    return ToolReport(project, since, len(sessions), parts, asked_at)


class _Total:
    """Adds up what the sessions of a project carried of one part."""

    def __init__(self) -> None:
        self.name = ""
        self.tokens: dict[str, int] = {}  # by session: the most of a thread
        self.calls: Counter[str] = Counter()
        self.costs: list[float] = []
        self.is_estimated = False

    def carried_part(self, agent: str, key: PartKey) -> CarriedPart:
        called = [session for session, calls in self.calls.items() if calls]
        return CarriedPart(
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


def _add_thread(
    totals: defaultdict[tuple[str, PartKey], _Total],
    item: TranscriptSummary,
    thread: ThreadParts,
    since: str,
) -> None:
    agent, session = item.transcript.agent, item.session
    usd_per_token = thread.usd_since(since)
    for part in thread.parts:
        if part.kind in REPORTED_KINDS and part.name:
            total = totals[agent, (part.kind, plain_name(part.name))]
            total.name = part.name
            total.tokens[session] = max(part.tokens, total.tokens.get(session, 0))
            total.is_estimated = total.is_estimated or part.is_estimated
            if usd_per_token is not None:
                total.costs.append(part.tokens * usd_per_token)
    for key, calls in thread.calls_since(since).items():
        if key[0] in CALLED_KINDS and key[1]:
            totals[agent, key].calls[session] += calls


def _advise(part: CarriedPart, answer: CachedAnswer | None) -> str | None:
    """Return what to do about a part that was carried and not called, if that is worth a line."""
    remove = capabilities_of(part.agent).disable_part.get(part.kind)
    unused = part.sessions - part.called_sessions
    is_unused = unused >= MIN_UNUSED_SESSIONS and (
        part.called_sessions <= MAX_USED_SHARE * part.sessions
    )
    tokens, cost = part.tokens or 0, part.cost or 0.0
    is_small = tokens < MIN_WASTE_TOKENS and cost < MIN_SHOWN_USD
    if remove is None or not is_unused or is_small or not _is_added(part, answer):
        return None
    called = f"called in {part.called_sessions}" if part.called_sessions else "never called"
    spent = f", {format_dollars(part.cost)} in {REPORTED_DAYS} days" if part.cost else ""
    sessions = count_of(part.sessions, "session")
    facts = f"{part.name}: {format_tokens(tokens)} in {sessions}, {called}{spent}"
    return f"{facts}: to disable it in this project, {remove.format(name=part.name)}."


def _is_added(part: CarriedPart, answer: CachedAnswer | None) -> bool:
    """Return whether a fresh session has a part that does not come with the client, if known."""
    if answer is None or not answer.answer.parts:
        return True
    key = (part.kind, plain_name(part.name))
    added = (each for each in answer.answer.parts if not each.is_built_in)
    return any((each.kind, plain_name(each.name)) == key for each in added)
