"""`brimline fleet forget`: what a person or a machine reported is gone, and nothing else."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet_server import FleetProcess
from postgres_server import execute, new_schema
from web.fleet_story import ORGANISATION, write_fleet

from .terminal import User

TABLES = ("sessions", "threads", "calls", "call_days", "branch_hours", "session_days",
          "session_costs", "changes", "handoffs", "compactions", "machines")  # fmt: skip


class FilledFleet:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.token = asyncio.run(write_fleet(url, 46))
        self.server = FleetProcess(url, folder)

    def count(self) -> dict[str, int]:
        columns = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)
        return dict(zip(TABLES, execute(self.url, f"SELECT {columns}")[0], strict=True))

    def users(self) -> set[str]:
        return {each["session"]["user"] for each in self.get("/v1/sessions?since=24h")}

    def get(self, path: str) -> Any:
        return self.server.request("GET", path, self.token).json


@pytest.fixture
def fleet(postgres: str, tmp_path: Path) -> Iterator[FilledFleet]:
    with new_schema(postgres) as url:
        filled = FilledFleet(url, tmp_path)
        yield filled
        filled.server.close()


def test_forget_removes_a_person(fleet: FilledFleet, user: User) -> None:
    """A dry run counts the same and removes nothing; the audit log says who removed how much."""
    asked = ("fleet", "forget", "--user", "user-2", "--organisation", ORGANISATION,
             "--database", fleet.url)  # fmt: skip
    before = fleet.count()
    assert "user-2" in fleet.users()
    planned = user.run(*asked, "--dry-run").out
    assert planned == "would remove of user-2: 2 sessions, 2 calls, 2 daily sums, 1 machine\n"
    assert fleet.count() == before
    done = user.run(*asked, "--json").json
    assert done == {"dry_run": False, "sessions": 2, "calls": 2, "days": 2, "machines": 1}
    after = fleet.count()
    removed = {table: before[table] - after[table] for table in ("sessions", "calls", "machines")}
    assert removed == {"sessions": 2, "calls": 2, "machines": 1}
    assert after["session_days"] == before["session_days"] - 2
    assert "user-2" not in fleet.users()
    assert len(fleet.users()) == 22
    entry = fleet.get("/v1/audit?limit=1")[0]
    assert (entry["action"], entry["subject"]) == ("forget", "user user-2: 2 sessions")
    assert "0 sessions" in user.run(*asked).out


def test_forget_removes_a_machine(fleet: FilledFleet, user: User) -> None:
    words = ("fleet", "forget", "--organisation", ORGANISATION, "--database", fleet.url)
    assert "`brimline fleet machines" in user.run(*words).err
    done = user.run(*words, "--machine", "m3")
    assert done.lines[0] == "removed of m3: 7 sessions, 7 calls, 7 daily sums, 1 machine"
    assert "revoke its token first" in done.out
    assert "m3" not in {each["id"] for each in fleet.get("/v1/machines")}
    other = user.run(*words[:2], "--database", fleet.url, "--user", "user-1", "--dry-run")
    assert "0 sessions" in other.out, "another organisation's sessions were counted"
    for old, new in (("m1", "0123456789ab"), ("m2", "0123456789cd")):
        execute(fleet.url, f"UPDATE machines SET id = '{new}' WHERE id = '{old}'")
    assert "begins the ids of 2 machines" in user.run(*words, "--machine", "01234567").err
    done = user.run(*words, "--machine", "0123456789a")
    assert done.lines == ["removed of 0123456789ab: 0 sessions, 0 calls, 0 daily sums, 1 machine"]
