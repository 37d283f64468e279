"""The figures of a fleet's active sessions, in groups, and the sessions that need attention.

A session belongs to one group. It is active if it was seen since the start of the span and has
neither ended nor been cleared; its fill is that of its main thread. docs/guides/fleet/view.md
defines each figure. What sessions cost is summed beforehand (`session_sums`).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeAlias, TypeVar

from brimline.context.inbox import Message
from brimline.context.policy.levels import LIMIT_FACTOR
from brimline.handoff import MAX_FRESH_CALLS
from brimline.store.common_sql import PENDING, Query, RowT, SessionCost
from brimline.store.fleet import (
    SECONDS_PER_HOUR,
    ActiveSessions,
    FillLevels,
    FleetGrouping,
    GroupCompactions,
    GroupCosts,
    GroupCounts,
    SessionKind,
    UsagePeriod,
    UsageSum,
)
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable
from brimline.store.rows import HandoffRow, SessionRow, ThreadRow

FEW_CALLS_LEFT = 10  # forecasts of so few are off by 3 calls at most, by the median

# What a session is grouped by. Versions are those of its client. Nearly every project has a branch
# `main`, so that a branch has its project before it.
KEYS: dict[FleetGrouping, str] = {
    "team": "s.team",
    "host": "s.host",
    "user": 's."user"',
    "project": "s.project",
    "branch": "coalesce(s.project || ': ', '') || nullif(s.branch, '')",
    "model": "s.model",
    "version": "s.agent || coalesce(' ' || s.version, '')",
    "agent": "s.agent",
}

_IS_ACTIVE = """(s.ended_at IS NULL OR s.seen_at > s.ended_at)
    AND (s.became IS NULL OR s.became_at IS NULL OR s.seen_at > s.became_at)"""

# Sessions with the branch of their last call, which PostgreSQL looks up only if it is used.
# Machines with an earlier version report it with calls alone.
_SESSIONS = """(SELECT sessions.*, coalesce((
    SELECT branch FROM threads
    WHERE organisation = $1 AND session = sessions.id AND thread = 'main'
), (
    SELECT branch FROM branch_hours
    WHERE organisation = $1 AND session = sessions.id ORDER BY hour DESC, last_at DESC LIMIT 1
)) AS branch FROM sessions)"""

_SEEN = f"""FROM {_SESSIONS} AS s
LEFT JOIN threads AS t ON t.organisation = $1 AND t.session = s.id AND t.thread = 'main'"""
_SINCE = "WHERE s.organisation = $1 AND s.seen_at >= $2"

# The kind of a session: `$3` are the names that have levels of their own, perhaps some sessions.
_OWN = "CASE WHEN s.id = ANY($3::text[]) THEN s.id ELSE '' END"
_MODEL = "coalesce(t.model, s.model, '')"

KINDS = f"SELECT DISTINCT {_OWN}, s.agent, {_MODEL} {_SEEN} {_SINCE}"

# The levels of kinds, `$4` to `$9`; those of all others, `$10` to `$12`.
_LEVELS = f"""LEFT JOIN unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::float8[],
    $9::float8[]) AS l (own, agent, model, measure, first, last)
ON l.own = {_OWN} AND l.agent = s.agent AND l.model = {_MODEL}"""
_FIRST = "CASE WHEN l.measure IS NULL THEN $11 ELSE l.first END"
_LAST = "CASE WHEN l.measure IS NULL THEN $12 ELSE l.last END"

# As policy.levels.figure_of and fullness_of: 0 low, 1 medium, 2 high, 3 at the limit.
_BY_LIMIT = f"t.percent_of_limit / {LIMIT_FACTOR}::float8"
_FIGURE = f"""CASE coalesce(l.measure, $10) WHEN 'window' THEN coalesce(t.percent_raw, {_BY_LIMIT})
    WHEN 'limit' THEN t.percent_of_limit WHEN 'tokens' THEN t.held
    ELSE greatest(t.percent_raw, {_BY_LIMIT}) END"""
_FULLNESS = f"""CASE WHEN t.percent_raw IS NULL AND t.percent_of_limit IS NULL THEN NULL
    WHEN greatest(t.percent_raw, t.percent_of_limit) >= 100 THEN 3
    WHEN {_FIGURE} IS NULL THEN NULL
    WHEN {_FIRST} IS NULL OR {_FIGURE} < {_FIRST} THEN 0
    WHEN {_FIGURE} >= {_LAST} THEN 2 ELSE 1 END"""

_NEAREST = "fullness DESC NULLS LAST, nearness DESC NULLS LAST, id"

# One scan of the sessions for three lists; the first column names the list of a row. A group has
# the fields of GroupCounts, a session of the other lists its id, its place and how many there are.
# The handoff that counts is the last one; it is fresh as in handoff.freshness.
ACTIVE = f"""WITH filled AS (
    SELECT {{key}} AS key, s.id, {_IS_ACTIVE} AS is_active, t.calls, t.calls_left,
        {_FULLNESS} AS fullness, coalesce(t.percent_of_limit, t.percent_raw) AS nearness
    {_SEEN} {_LEVELS} {_SINCE}
), fullest AS (
    SELECT id, fullness, nearness FROM filled WHERE is_active AND nearness IS NOT NULL
    ORDER BY {_NEAREST} LIMIT $13
), needing AS (
    SELECT s.id, s.fullness, s.nearness, count(*) OVER () AS total FROM filled AS s
    LEFT JOIN LATERAL (
        SELECT draft, calls FROM handoffs
        WHERE organisation = $1 AND session = s.id ORDER BY place DESC LIMIT 1
    ) AS h ON TRUE
    WHERE is_active AND (fullness >= 2 OR s.calls_left <= {FEW_CALLS_LEFT})
        AND (h.draft IS NULL OR h.draft OR s.calls - h.calls > {MAX_FRESH_CALLS})
    ORDER BY {_NEAREST} LIMIT $13
)
SELECT 'group' AS part, key, count(*), count(*) FILTER (WHERE is_active),
    count(fullness) FILTER (WHERE is_active),
    count(*) FILTER (WHERE is_active AND fullness >= 1),
    count(*) FILTER (WHERE is_active AND fullness >= 2),
    count(*) FILTER (WHERE is_active AND fullness >= 3)
FROM filled GROUP BY key
UNION ALL
SELECT 'fullest', id, row_number() OVER (ORDER BY {_NEAREST}), 0, 0, 0, 0, 0 FROM fullest
UNION ALL
SELECT 'needing', id, row_number() OVER (ORDER BY {_NEAREST}), total, 0, 0, 0, 0
FROM needing"""

# Work is lost by a compaction of the main thread if its cycle has no document but drafts.
COMPACTIONS = f"""SELECT {{key}} AS key, sum(c.amount)::bigint, count(*) FILTER (WHERE c.has_lost)
FROM (
    SELECT session, count(*) AS amount, bool_or(thread = 'main' AND NOT EXISTS (
        SELECT FROM handoffs AS h WHERE h.organisation = $1 AND h.session = compactions.session
            AND h.cycle = compactions.cycle AND NOT h.draft)) AS has_lost
    FROM compactions WHERE organisation = $1 AND at >= $2 GROUP BY session
) AS c JOIN {_SESSIONS} AS s ON s.organisation = $1 AND s.id = c.session AND s.seen_at >= $2
GROUP BY 1"""

COSTS = """SELECT {key} AS key, sum(s.calls)::bigint, sum(s.cost), sum(s.miss_cost)
FROM branch_hours AS s WHERE s.organisation = $1 AND s.hour >= $2 GROUP BY 1"""

# The sums of each group in each period, of each period, of each group, and of all. A sum over
# groups or periods has NULL as its key or period, and says so: a group's key may be NULL too.
USAGE = """SELECT period, key, grouping(period) = 0, grouping(key) = 0, count(DISTINCT session),
    sum(calls)::bigint, sum(input)::bigint, sum(cache_read)::bigint, sum(cache_write)::bigint,
    sum(output)::bigint, sum(cost), sum(miss_cost)
FROM (
    SELECT date_trunc($4, s.day::timestamp)::date AS period, {key} AS key, s.session, s.calls,
        s.input, s.cache_read, s.cache_write, s.output, s.cost, s.miss_cost
    FROM session_days AS s WHERE s.organisation = $1 AND s.day >= $2 AND s.day <= $3
) AS days GROUP BY GROUPING SETS ((period, key), (period), (key), ()) HAVING count(*) > 0"""

_OF_SESSIONS = "organisation = $1 AND session = ANY($2::text[])"
SESSION_ROWS = Query(SessionRow, "sessions", "organisation = $1 AND id = ANY($2::text[])")
MAIN_THREADS = Query(ThreadRow, "threads", f"{_OF_SESSIONS} AND thread = 'main'")
PENDING_MESSAGES = Query(Message, "messages", f"{_OF_SESSIONS} AND {PENDING}", 'ORDER BY "order"')
LAST_HANDOFFS = Query(
    HandoffRow,
    "handoffs",
    f"""organisation = $1
    AND place IN (SELECT max(place) FROM handoffs WHERE {_OF_SESSIONS} GROUP BY session)""",
    heads_only=True,
)

COSTS_OF_SESSIONS = Query(SessionCost, "session_costs", f"{_OF_SESSIONS} AND priced > 0")

FleetRows: TypeAlias = tuple[
    SessionRow, list[ThreadRow], list[Message], list[HandoffRow], float | None
]
KeyedRowT = TypeVar("KeyedRowT", ThreadRow, Message, HandoffRow)


class FleetFigures:
    """The figures of one organisation's sessions since a time, which is a full hour.

    `levels_of` returns the levels of a kind of sessions; `named` are the names that have levels
    of their own.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        organisation: str,
        levels_of: Callable[[SessionKind], FillLevels],
        named: Iterable[str] = (),
    ) -> None:
        self._pool, self._organisation = pool, organisation
        self._levels_of = levels_of
        self._named = [storable(name) for name in named]

    async def active(self, by: FleetGrouping, since: float, max_listed: int) -> ActiveSessions:
        """Return the counts of each group, and lists of at most `max_listed` sessions."""
        text, levels = ACTIVE.format(key=KEYS[by]), await self._levels(since)
        records = await self._fetch(text, since, self._named, *levels, max_listed)
        groups = [GroupCounts(key, *counts) for part, key, *counts in records if part == "group"]
        fullest, needing = (
            sorted((place, id, total) for part, id, place, total, *_ in records if part == name)
            for name in ("fullest", "needing")
        )
        return ActiveSessions(
            groups,
            [id for _, id, _ in fullest],
            [id for _, id, _ in needing],
            needing[0][2] if needing else 0,
        )

    async def compactions(self, by: FleetGrouping, since: float) -> list[GroupCompactions]:
        records = await self._fetch(COMPACTIONS.format(key=KEYS[by]), since)
        return [GroupCompactions(*record) for record in records]

    async def costs(self, by: FleetGrouping, since: float) -> list[GroupCosts]:
        """Return what the calls since a full hour cost, as far as it is summed."""
        records = await self._fetch(COSTS.format(key=KEYS[by]), int(since // SECONDS_PER_HOUR))
        return [GroupCosts(*record) for record in records]

    async def usage(
        self, by: FleetGrouping, per: UsagePeriod, first: date, last: date
    ) -> list[UsageSum]:
        """Return the sums of days, from the first to the last, by group, by period, and of all."""
        records = await self._fetch(USAGE.format(key=KEYS[by]), first, last, per)
        return [UsageSum(*record) for record in records]

    async def rows(self, sessions: Sequence[str]) -> list[FleetRows]:
        """Return the rows of sessions, in the same order; those that are gone are skipped."""
        rows, threads, pending, handoffs, costs = await asyncio.gather(
            self._select(SESSION_ROWS, sessions),
            self._select(MAIN_THREADS, sessions),
            self._select(PENDING_MESSAGES, sessions),
            self._select(LAST_HANDOFFS, sessions),
            self._select(COSTS_OF_SESSIONS, sessions),
        )
        by_id = {row.id: row for row in rows}
        threads_of, pending_of = _by_session(threads), _by_session(pending)
        handoffs_of = _by_session(handoffs)
        cost_of = {each.session: each.cost for each in costs}
        return [
            (
                by_id[id],
                threads_of.get(id, []),
                pending_of.get(id, []),
                handoffs_of.get(id, []),
                cost_of.get(id),
            )
            for id in sessions
            if id in by_id
        ]

    async def _select(self, query: Query[RowT], sessions: Sequence[str]) -> list[RowT]:
        return [query.kind(*record) for record in await self._fetch(query.text, sessions)]

    async def _levels(self, since: float) -> Sequence[Any]:
        """Return the levels of all kinds of sessions, as columns, and those of the others.

        If no name has levels of its own, all sessions have the same.
        """
        records: Sequence[Any] = ()
        if self._named:
            records = await self._fetch(KINDS, since, self._named)
        levels = [self._levels_of(SessionKind(*record)) for record in records]
        others = self._levels_of(SessionKind("", "", ""))
        return (
            [each.kind.session for each in levels],
            [each.kind.agent for each in levels],
            [each.kind.model for each in levels],
            [each.measure for each in levels],
            [each.first for each in levels],
            [each.last for each in levels],
            others.measure,
            others.first,
            others.last,
        )

    async def _fetch(self, text: str, *values: Any) -> Sequence[Any]:
        return await self._pool.fetch(text, self._organisation, *values)


def _by_session(rows: Iterable[KeyedRowT]) -> dict[str, list[KeyedRowT]]:
    groups: dict[str, list[KeyedRowT]] = {}
    for row in rows:
        groups.setdefault(row.session, []).append(row)
    return groups
