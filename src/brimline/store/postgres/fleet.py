"""The figures of a fleet's active sessions, in groups, and the sessions that need attention.

A session belongs to one group. It is active if it was seen since the start of the span and has
neither ended nor been cleared; its fill is that of its main thread. docs/guides/fleet/view.md
defines each figure. What sessions cost is summed by hour and branch beforehand.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
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
_SESSIONS = """(SELECT sessions.*, (
    SELECT branch FROM branch_hours
    WHERE organisation = $1 AND session = sessions.id ORDER BY hour DESC, last_at DESC LIMIT 1
) AS branch FROM sessions)"""

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

SUM_LOCK = 0x6272696D  # with the organisation's hash: one replica sums at a time
MAX_SESSIONS = 500  # in one transaction
MAX_BRANCH_CHARS = 200  # of the key's 2,704 bytes; file systems allow 255 bytes
CURSOR = "branch_hours"  # up to which mark of changes is summed

_LOCK = "SELECT pg_try_advisory_xact_lock($2::int, hashtext($1))"
_CHANGED = """SELECT session, mark FROM changes
WHERE organisation = $1
    AND mark > coalesce((SELECT position FROM cursors WHERE organisation = $1 AND name = $2), 0)
ORDER BY mark LIMIT $3"""

# The hours from that of the earliest new call on are summed again. So are a session's last two, and
# those since an hour ago: a machine's clock may have been ahead, and the call corrected. An hour
# has the team, the model and so on that the session has then: with a join of 240,000 hours to their
# sessions, a query took twice as long. A call that is stored again may have another hour or branch
# than before: what no call has any more is deleted. A branch is cut to what an index can hold.
_SUM = f"""WITH changed AS MATERIALIZED (
    SELECT session, least((
        SELECT least(coalesce(max(hour), 0), floor(extract(epoch FROM now()) / 3600)) - 1
        FROM branch_hours WHERE organisation = $1 AND session = given.session
    ), floor(calls_since / 3600)) AS start
    FROM unnest($2::text[]) AS given (session)
    JOIN changes USING (session) WHERE organisation = $1
), summed AS MATERIALIZED (
SELECT s.id AS session, floor(c.at / 3600)::bigint AS hour,
    coalesce(left(c.branch, {MAX_BRANCH_CHARS}), '') AS branch, max(c.at) AS last_at,
    count(*) FILTER (WHERE c.counted) AS calls, sum(c.cost) AS cost,
    CASE WHEN count(c.cost) > 0 THEN coalesce(sum(c.miss_cost), 0) END AS miss_cost,
    s.agent, s.host, s.project, s.model, s.version, s."user", s.team
FROM changed
JOIN sessions AS s ON s.organisation = $1 AND s.id = changed.session
JOIN call_days AS d ON d.organisation = $1 AND d.session = changed.session
JOIN calls AS c ON c.organisation = $1 AND c.session = changed.session AND c.day = d.day
    AND c.at >= changed.start * 3600.0
GROUP BY s.organisation, s.id, 2, 3
), gone AS (
    DELETE FROM branch_hours AS h USING changed
    WHERE h.organisation = $1 AND h.session = changed.session AND h.hour >= changed.start
        AND (h.session, h.hour, h.branch) NOT IN (SELECT session, hour, branch FROM summed)
)
INSERT INTO branch_hours (organisation, session, hour, branch, last_at, calls, cost, miss_cost,
    agent, host, project, model, version, "user", team)
SELECT $1, summed.* FROM summed
ON CONFLICT (organisation, hour, session, branch) DO UPDATE
SET last_at = excluded.last_at, calls = excluded.calls, cost = excluded.cost,
    miss_cost = excluded.miss_cost,
    agent = excluded.agent, host = excluded.host, project = excluded.project,
    model = excluded.model, version = excluded.version, "user" = excluded."user",
    team = excluded.team"""

# A session that has changed again meanwhile is summed again.
_SUMMED = """UPDATE changes SET calls_since = NULL WHERE organisation = $1
    AND session = ANY($2::text[]) AND mark <= $3 AND calls_since IS NOT NULL"""

_ADVANCE = """INSERT INTO cursors (organisation, name, position) VALUES ($1, $2, $3)
ON CONFLICT (organisation, name) DO UPDATE SET position = excluded.position"""


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
        """Return what the calls since a full hour cost, as far as `SessionHours` has summed."""
        records = await self._fetch(COSTS.format(key=KEYS[by]), int(since // SECONDS_PER_HOUR))
        return [GroupCosts(*record) for record in records]

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


class SessionHours:
    """The hours of one organisation's sessions; any number of replicas may keep them current."""

    def __init__(self, pool: ConnectionPool, organisation: str) -> None:
        self._pool, self._organisation = pool, organisation

    async def update(self) -> None:
        """Sum the sessions that changed since the last time; if another replica does so, return."""
        while await self._update_some() == MAX_SESSIONS:
            pass

    async def _update_some(self) -> int:
        """Sum some of the changed sessions in one transaction; return how many."""
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_LOCK, self._organisation, SUM_LOCK):
                return 0
            changed = await connection.fetch(_CHANGED, self._organisation, CURSOR, MAX_SESSIONS)
            if changed:
                sessions = [record["session"] for record in changed]
                await connection.execute(_SUM, self._organisation, sessions)
                last = changed[-1]["mark"]
                await connection.execute(_SUMMED, self._organisation, sessions, last)
                await connection.execute(_ADVANCE, self._organisation, CURSOR, last)
            return len(changed)
