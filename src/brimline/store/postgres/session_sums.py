"""What sessions used, summed by hour for the fleet view and by day for months.

The sums of hours are forgotten with their session. Those of days stay longer.
"""

from datetime import date

from brimline.store.postgres.pool import ConnectionPool
from brimline.store.rows import SPENDINGS

SUM_LOCK = 0x6272696D  # with the organisation's hash: one replica sums at a time
MAX_SESSIONS = 500  # in one transaction
MAX_BRANCH_CHARS = 200  # of the key's 2,704 bytes; file systems allow 255 bytes
CURSOR = "branch_hours"  # up to which mark of changes is summed

_LOCK = "SELECT pg_try_advisory_xact_lock($2::int, hashtext($1))"

# The changed sessions, and the hour from which on each is summed again: that of its earliest new
# call, or the last two, or an hour ago: a machine's clock may have been ahead, and the call
# corrected.
_CHANGED = """SELECT session, mark, least((
    SELECT least(coalesce(max(hour), 0), floor(extract(epoch FROM now()) / 3600)) - 1
    FROM branch_hours WHERE organisation = $1 AND session = changes.session
), floor(calls_since / 3600))::bigint AS start
FROM changes WHERE organisation = $1
    AND mark > coalesce((SELECT position FROM cursors WHERE organisation = $1 AND name = $2), 0)
ORDER BY mark LIMIT $3"""

# Calls but copies, and what is spent beside them.
_IS_SUMMED = f"c.counted OR c.thread LIKE '%{SPENDINGS}'"

# An hour has the team, the model and so on that the session has then: with a join of 240,000 hours
# to their sessions, a query took twice as long. A call that is stored again may have another hour
# or branch than before: what no call has any more is deleted. A branch is cut to what an index can
# hold.
_SUM_HOURS = f"""WITH changed AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS given (session, start)
), summed AS MATERIALIZED (
SELECT s.id AS session, floor(c.at / 3600)::bigint AS hour,
    coalesce(left(c.branch, {MAX_BRANCH_CHARS}), '') AS branch, max(c.at) AS last_at,
    count(*) FILTER (WHERE c.counted) AS calls, sum(c.cost) AS cost,
    CASE WHEN count(c.cost) > 0 THEN coalesce(sum(c.miss_cost), 0) END AS miss_cost,
    s.agent, s.host, s.project, s.model, s.version, s."user", s.team,
    coalesce(sum(c.input) FILTER (WHERE {_IS_SUMMED}), 0)::bigint AS input,
    coalesce(sum(c.cache_read) FILTER (WHERE {_IS_SUMMED}), 0)::bigint AS cache_read,
    coalesce(sum(c.cache_write) FILTER (WHERE {_IS_SUMMED}), 0)::bigint AS cache_write,
    coalesce(sum(c.output) FILTER (WHERE {_IS_SUMMED}), 0)::bigint AS output
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
    agent, host, project, model, version, "user", team, input, cache_read, cache_write, output)
SELECT $1, summed.* FROM summed
ON CONFLICT (organisation, hour, session, branch) DO UPDATE
SET last_at = excluded.last_at, calls = excluded.calls, cost = excluded.cost,
    miss_cost = excluded.miss_cost,
    agent = excluded.agent, host = excluded.host, project = excluded.project,
    model = excluded.model, version = excluded.version, "user" = excluded."user",
    team = excluded.team, input = excluded.input, cache_read = excluded.cache_read,
    cache_write = excluded.cache_write, output = excluded.output"""

# Days are those of UTC. The days before the first one that is summed now stay as they are: a
# session that was forgotten and goes on has no hours of them any more.
_SUM_DAYS = """WITH changed AS (
    SELECT * FROM unnest($2::text[], $3::bigint[]) AS given (session, start)
), summed AS MATERIALIZED (
SELECT s.id AS session, (to_timestamp(h.hour * 3600.0) AT TIME ZONE 'UTC')::date AS day, h.branch,
    sum(h.calls)::bigint AS calls, sum(h.input)::bigint AS input,
    sum(h.cache_read)::bigint AS cache_read, sum(h.cache_write)::bigint AS cache_write,
    sum(h.output)::bigint AS output, sum(h.cost) AS cost, sum(h.miss_cost) AS miss_cost,
    s.agent, s.host, s.project, s.model, s.version, s."user", s.team
FROM changed
JOIN sessions AS s ON s.organisation = $1 AND s.id = changed.session
JOIN branch_hours AS h ON h.organisation = $1 AND h.session = changed.session
    AND h.hour >= floor(changed.start / 24.0) * 24
GROUP BY s.organisation, s.id, 2, 3
), gone AS (
    DELETE FROM session_days AS d
    USING (SELECT session, min(day) AS first FROM summed GROUP BY session) AS again
    WHERE d.organisation = $1 AND d.session = again.session AND d.day >= again.first
        AND (d.session, d.day, d.branch) NOT IN (SELECT session, day, branch FROM summed)
)
INSERT INTO session_days (organisation, session, day, branch, calls, input, cache_read, cache_write,
    output, cost, miss_cost, agent, host, project, model, version, "user", team)
SELECT $1, summed.* FROM summed
ON CONFLICT (organisation, day, session, branch) DO UPDATE
SET calls = excluded.calls, input = excluded.input, cache_read = excluded.cache_read,
    cache_write = excluded.cache_write, output = excluded.output, cost = excluded.cost,
    miss_cost = excluded.miss_cost,
    agent = excluded.agent, host = excluded.host, project = excluded.project,
    model = excluded.model, version = excluded.version, "user" = excluded."user",
    team = excluded.team"""

# A session that has changed again meanwhile is summed again.
_SUMMED = """UPDATE changes SET calls_since = NULL WHERE organisation = $1
    AND session = ANY($2::text[]) AND mark <= $3 AND calls_since IS NOT NULL"""

_ADVANCE = """INSERT INTO cursors (organisation, name, position) VALUES ($1, $2, $3)
ON CONFLICT (organisation, name) DO UPDATE SET position = excluded.position"""

_PRUNE_DAYS = "DELETE FROM session_days WHERE organisation = $1 AND day < $2"


class SessionSums:
    """The sums of one organisation's sessions; any number of replicas may keep them current."""

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
                starts = [record["start"] for record in changed]
                last = changed[-1]["mark"]
                for statement in (_SUM_HOURS, _SUM_DAYS):
                    await connection.execute(statement, self._organisation, sessions, starts)
                await connection.execute(_SUMMED, self._organisation, sessions, last)
                await connection.execute(_ADVANCE, self._organisation, CURSOR, last)
            return len(changed)

    async def prune(self, before: date) -> None:
        """Delete the sums of the days before one."""
        await self._pool.fetch(_PRUNE_DAYS, self._organisation, before)
