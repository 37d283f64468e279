"""What each session cost in each hour, summed from its calls for the fleet view."""

from brimline.store.postgres.pool import ConnectionPool

SUM_LOCK = 0x6272696D  # with the organisation's hash: one replica sums at a time
MAX_SESSIONS = 500  # in one transaction
CURSOR = "session_hours"  # up to which mark of changes is summed

_LOCK = "SELECT pg_try_advisory_xact_lock($2::int, hashtext($1))"
_CHANGED = """SELECT session, mark FROM changes
WHERE organisation = $1
    AND mark > coalesce((SELECT position FROM cursors WHERE organisation = $1 AND name = $2), 0)
ORDER BY mark LIMIT $3"""

# The calls of a session arrive in the order of their times, except few: its last two hours are
# summed again, and those since an hour ago, because a machine's clock may have been ahead. An hour
# has the team, the model and so on that the session has then: with a join of 240,000 hours to their
# sessions, a query took twice as long.
_SUM = """INSERT INTO session_hours (organisation, session, hour, calls, cost, miss_cost,
    agent, host, project, model, version, "user", team)
SELECT $1, s.id, floor(c.at / 3600)::bigint, count(*) FILTER (WHERE c.counted), sum(c.cost),
    CASE WHEN count(c.cost) > 0 THEN coalesce(sum(c.miss_cost), 0) END,
    s.agent, s.host, s.project, s.model, s.version, s."user", s.team
FROM unnest($2::text[]) AS changed (session)
JOIN sessions AS s ON s.organisation = $1 AND s.id = changed.session
JOIN call_days AS d ON d.organisation = $1 AND d.session = changed.session
CROSS JOIN LATERAL (
    SELECT least(coalesce(max(hour), 0), floor(extract(epoch FROM now()) / 3600)) * 3600.0 - 3600.0
        AS start FROM session_hours
    WHERE organisation = $1 AND session = changed.session
) AS summed
JOIN calls AS c ON c.organisation = $1 AND c.session = changed.session AND c.day = d.day
    AND c.at >= summed.start
GROUP BY s.organisation, s.id, 3
ON CONFLICT (organisation, hour, session) DO UPDATE
SET calls = excluded.calls, cost = excluded.cost, miss_cost = excluded.miss_cost,
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
