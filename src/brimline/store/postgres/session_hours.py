"""What each session cost in each hour on each branch, summed from its calls for the fleet view."""

from brimline.store.postgres.pool import ConnectionPool

SUM_LOCK = 0x6272696D  # with the organisation's hash: one replica sums at a time
MAX_SESSIONS = 500  # in one transaction
MAX_BRANCH_CHARS = 200  # of the key's 2,704 bytes; file systems allow 255 bytes
CURSOR = "branch_hours"  # up to which mark of changes is summed

_LOCK = "SELECT pg_try_advisory_xact_lock($2::int, hashtext($1))"
_CHANGED = """SELECT session, mark FROM changes
WHERE organisation = $1
    AND mark > coalesce((SELECT position FROM cursors WHERE organisation = $1 AND name = $2), 0)
ORDER BY mark LIMIT $3"""

# The calls of a session arrive in the order of their times, except few: its last two hours are
# summed again, and those since an hour ago, because a machine's clock may have been ahead. An hour
# has the team, the model and so on that the session has then: with a join of 240,000 hours to their
# sessions, a query took twice as long. A call that is stored again may have another hour or branch
# than before: what no call has any more is deleted. A branch is cut to what an index can hold.
_SUM = f"""WITH changed AS MATERIALIZED (
    SELECT session, (
        SELECT least(coalesce(max(hour), 0), floor(extract(epoch FROM now()) / 3600)) - 1
        FROM branch_hours WHERE organisation = $1 AND session = given.session
    ) AS start FROM unnest($2::text[]) AS given (session)
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

_ADVANCE = """INSERT INTO cursors (organisation, name, position) VALUES ($1, $2, $3)
ON CONFLICT (organisation, name) DO UPDATE SET position = excluded.position"""


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
                await connection.execute(_ADVANCE, self._organisation, CURSOR, last)
            return len(changed)
