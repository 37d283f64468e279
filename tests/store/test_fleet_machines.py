"""The machines of a fleet: one row each, with the last report and the versions of the agents."""

from msgspec.structs import replace

from brimline.store.base import PutSession
from brimline.store.fleet import MachineReport
from brimline.store.postgres import open_database
from brimline.store.postgres.machines import KEEP_MACHINE_S, REPORT_EVERY_S
from brimline.store.postgres.tokens import TokenRow
from brimline.store.rows import SessionRow

DAY = 86_400.0
NOW = 2_000_000_000.0
REPORT = MachineReport("m1", "laptop", "ada", "web", "1.0", "off", 0, 0, None, NOW)


async def test_machines_are_listed_the_longest_silent_first(shared_database: str) -> None:
    """Each with the newest version of its agents; another organisation's are not seen."""
    database = await open_database(shared_database)
    try:
        store, machines = database.store("machines"), database.machines("machines")
        rows = [
            SessionRow("s1", "claude", NOW - 9, version="2.1.5", machine="m1"),
            SessionRow("s2", "claude", NOW - 5, version="2.1.6", machine="m1"),
            SessionRow("s3", "codex", NOW, version="0.169", machine="m1"),
            SessionRow("s4", "codex", NOW, machine="m2"),
        ]
        await store.write([PutSession(row) for row in rows])
        await machines.report(REPORT)
        await machines.report(replace(REPORT, id="m2", last_at=NOW - 2 * DAY))
        await database.machines("others").report(replace(REPORT, id="m3"))
        listed = await machines.list(10)
        assert [(each.report.id, each.clients) for each in listed] == [
            ("m2", {}), ("m1", {"claude": "2.1.6", "codex": "0.169"}),
        ]  # fmt: skip
        silent = await machines.list(10, NOW - DAY)
        assert [each.report.id for each in silent] == ["m2"]
        assert len(await machines.list(1)) == 1
        assert await machines.count(NOW - DAY) == (2, 1)
        await machines.prune(NOW - 2 * DAY + KEEP_MACHINE_S + 1)
        assert await machines.count(NOW - DAY) == (1, 0)
        await store.close()
    finally:
        await database.close()


async def test_last_report_of_a_machine_counts(shared_database: str) -> None:
    """A reason stays until no session is refused; a late report changes nothing."""
    database = await open_database(shared_database)
    try:
        machines = database.machines("reports")

        async def stored() -> MachineReport:
            return (await machines.list(10))[0].report

        await machines.report(REPORT)
        await machines.report(replace(REPORT, last_at=NOW + REPORT_EVERY_S / 2))
        assert await stored() == REPORT, "a report that differs in its time alone was written"
        refused = replace(REPORT, refused=1, refusal="too long", last_at=NOW + 1)
        await machines.report(refused)
        await machines.report(replace(refused, refusal=None, behind=3, last_at=NOW + 2))
        assert await stored() == replace(refused, behind=3, last_at=NOW + 2)
        await database.machines("reports").report(REPORT)  # of another replica, late
        assert (await stored()).last_at == NOW + 2
        await machines.report(replace(REPORT, last_at=NOW + 3))
        assert await stored() == replace(REPORT, last_at=NOW + 3)
        assert (await machines.list(10))[0].first_at == NOW
    finally:
        await database.close()


async def test_token_of_a_machine_ends_when_it_is_revoked(shared_database: str) -> None:
    """Its own or the one that it was made from; one that has ended already does not end later."""
    database = await open_database(shared_database)
    try:
        tokens, machines = database.tokens, database.machines("ends")
        parent = TokenRow("ends", "parent", "parent", "team", ("enrol",), NOW)
        rows = [
            replace(parent, id="m1", hash="m1", expires_at=NOW + DAY),
            replace(parent, id="m2", hash="m2"),
            replace(parent, id="m3", hash="m3", expires_at=NOW + DAY, parent="parent"),
            replace(parent, id="m4", hash="m4", expires_at=NOW - DAY),
            replace(parent, id="m5", hash="m5", expires_at=NOW + DAY),
        ]
        await tokens.create([parent, *rows], "test")
        for row in rows:
            await machines.report(replace(REPORT, id=row.id, token=row.id))
        for id in ("m1", "m2", "parent", "m4"):
            assert await tokens.revoke("ends", id, NOW)
        ends = {each.report.id: each.token_ends_at for each in await machines.list(10)}
        assert ends == {"m1": NOW, "m2": NOW, "m3": NOW, "m4": NOW - DAY, "m5": NOW + DAY}
    finally:
        await database.close()
