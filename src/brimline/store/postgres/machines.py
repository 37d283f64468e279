"""The machines of an organisation: who reports by an uplink, and when last."""

from msgspec.structs import astuple, replace

from brimline.files.bounded_dict import BoundedDict
from brimline.store.common_sql import list_columns
from brimline.store.fleet import FleetMachine, MachineReport
from brimline.store.postgres.pool import ConnectionPool
from brimline.store.postgres.statements import storable
from brimline.store.postgres.tokens import REVOKED_AT

REPORT_EVERY_S = 60.0  # a report that differs in its time alone is stored again after this
KEEP_MACHINE_S = 400 * 24 * 3_600.0  # a machine that is silent for longer is removed
MAX_KNOWN = 20_000  # machines whose last report this process remembers

_COLUMNS = list_columns(MachineReport.__struct_fields__)
_UPDATED = ", ".join(
    f'"{field}" = excluded."{field}"'
    for field in MachineReport.__struct_fields__
    if field not in ("id", "refusal")
)
# A machine reports how many sessions are refused, but only the batch with one brings the reason.
_REFUSAL = "CASE WHEN excluded.refused > 0 THEN coalesce(excluded.refusal, m.refusal) END"
_PUT = f"""INSERT INTO machines AS m (organisation, {_COLUMNS}, first_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $11)
ON CONFLICT (organisation, id) DO UPDATE SET {_UPDATED}, refusal = {_REFUSAL}
WHERE m.last_at <= excluded.last_at"""

_CLIENTS = """SELECT DISTINCT ON (machine, agent) machine, agent, version FROM sessions
WHERE organisation = $1 AND machine = ANY($2::text[]) AND version IS NOT NULL
ORDER BY machine, agent, seen_at DESC"""
_TOKEN_END = f"""(SELECT least(expires_at, {REVOKED_AT}) FROM tokens t
WHERE t.organisation = m.organisation AND t.id = m.token) AS token_ends_at"""
_LIST = f"""SELECT {_COLUMNS}, first_at, {_TOKEN_END} FROM machines m
WHERE organisation = $1 AND ($2::float8 IS NULL OR last_at < $2)
ORDER BY last_at, id LIMIT $3"""
_COUNT = """SELECT count(*), count(*) FILTER (WHERE last_at < $2) FROM machines
WHERE organisation = $1"""
_PRUNE = "DELETE FROM machines WHERE organisation = $1 AND last_at < $2"


class MachineTable:
    """The machines of one organisation."""

    def __init__(self, pool: ConnectionPool, organisation: str) -> None:
        self._pool, self._organisation = pool, organisation
        self._stored = BoundedDict[str, MachineReport](MAX_KNOWN)

    async def report(self, report: MachineReport) -> None:
        """Store a report, unless a recent one differs in its time alone."""
        if _is_recent(self._stored.get(report.id), report):
            return
        await self._pool.fetch(_PUT, self._organisation, *map(storable, astuple(report)))
        self._stored[report.id] = report

    async def list(self, max_listed: int, silent_since: float | None = None) -> list[FleetMachine]:
        """Return the machines, the longest silent first; or those without a report since a time."""
        records = await self._pool.fetch(_LIST, self._organisation, silent_since, max_listed)
        ids = [record["id"] for record in records]
        versions: dict[str, dict[str, str]] = {}
        for machine, agent, version in await self._pool.fetch(_CLIENTS, self._organisation, ids):
            versions.setdefault(machine, {})[agent] = version
        return [
            FleetMachine(
                MachineReport(*report), first_at, versions.get(report[0], {}), token_ends_at
            )
            for *report, first_at, token_ends_at in records
        ]

    async def count(self, silent_since: float) -> tuple[int, int]:
        """Return how many machines there are, and how many have not reported since a time."""
        total, silent = (await self._pool.fetch(_COUNT, self._organisation, silent_since))[0]
        return total, silent

    async def prune(self, now: float) -> None:
        """Remove the machines that have been silent for KEEP_MACHINE_S."""
        await self._pool.fetch(_PRUNE, self._organisation, now - KEEP_MACHINE_S)


def _is_recent(stored: MachineReport | None, report: MachineReport) -> bool:
    if stored is None or not 0 <= report.last_at - stored.last_at < REPORT_EVERY_S:
        return False
    return replace(stored, last_at=report.last_at) == report
