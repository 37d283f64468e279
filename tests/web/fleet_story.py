"""A fleet for the page's tests: sessions of teams in every state of fill and handoff."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from msgspec.structs import replace

from brimline.server.fleet.authentication import create_token
from brimline.store.base import (
    PutCall,
    PutCompaction,
    PutHandoff,
    PutSession,
    PutThread,
    Write,
)
from brimline.store.fleet import MachineReport
from brimline.store.postgres import open_database
from brimline.store.rows import CallRow, CompactionRow, HandoffRow, SessionRow, ThreadRow
from fleet_server import add_token

ORGANISATION = "acme"
WINDOW, LIMIT = 200_000, 167_000
TEAMS = ("platform", "payments", "mobile", "a-team-with-a-very-long-name-for-its-size", None)
PROJECTS = ("checkout", "ledger", "ios-app", "infra", "0d4c1a7be2f9")
BRANCHES = ("main", "feature/one-page-checkout-with-saved-cards", None)
MACHINES = 7
MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "gpt-5.5")


async def write_fleet(url: str, sessions: int, machines: int = MACHINES) -> str:
    """Store sessions, the first of which are the fullest; return a token that may act."""
    database = await open_database(url)
    try:
        store, now, draw = database.store(ORGANISATION), time.time(), random.Random(1)
        await store.write([
            write
            for number in range(sessions)
            for write in _session_writes(number, max(3.0, 97.0 - number), now, draw)
        ])  # fmt: skip
        await database.session_sums(ORGANISATION).update()
        for number in range(machines):
            report = _machine(number, now)
            if number == 5:
                _, ending = create_token(ORGANISATION, "m5", ["ingest"], now, now + 3.5 * 86_400)
                await database.tokens.create([ending], "story")
                report = replace(report, token=ending.id)
            await database.machines(ORGANISATION).report(report)
        return await add_token(database, ORGANISATION, "read", "act", name="Ada")
    finally:
        await database.close()


async def fill_sessions(url: str, ids: Sequence[str]) -> None:
    """Fill the windows of some sessions."""
    database = await open_database(url)
    try:
        store = database.store(ORGANISATION)
        await store.write([
            PutThread(replace(row, seq=row.seq + 1, sent=WINDOW, percent=100.0, percent_raw=100.0,
                              percent_of_limit=120.0))
            for id in ids for row in await store.threads(id)
        ])  # fmt: skip
    finally:
        await database.close()


def _machine(number: int, now: float) -> MachineReport:
    """The third has been silent for two days, a session of the fifth is refused."""
    is_silent, refused = number == 2, int(number == 4)
    return MachineReport(
        f"m{number}", f"laptop-{number}", f"user-{number}", TEAMS[number % len(TEAMS)], "1.4.0",
        "all", 12 * refused, refused, "out of range" if refused else None,
        now - (180_000 if is_silent else 5),
    )  # fmt: skip


def _session_writes(number: int, percent: float, now: float, draw: random.Random) -> list[Write]:
    id, sent = f"s{number}", int(WINDOW * percent / 100)
    session = SessionRow(
        id,
        ("claude", "codex")[number % 2],
        now - 5 * number,
        host=f"laptop-{number % 7}",
        project=PROJECTS[number % len(PROJECTS)],
        model=MODELS[number % len(MODELS)],
        version=("2.1.5", "2.0.9")[number % 2],
        user=f"user-{number % 23}",
        team=TEAMS[draw.choice((0, 0, 0, 1, 1, 2, 3, 4))],
        machine=None if number == 1 else f"m{number % MACHINES}",
        receive="off" if number == 2 else "all",
    )
    thread = ThreadRow(
        id, "main", 1, 1, "transcript", "measured",
        at=session.seen_at, sent=sent, held=sent + 500, window=WINDOW, limit=LIMIT,
        percent=percent, percent_raw=percent,
        percent_of_limit=round(100 * (sent + 500) / LIMIT, 1), calls=100, model=session.model,
        calls_left=max(0, int(110 - percent)) if number % 3 else None,
        branch=BRANCHES[number % len(BRANCHES)],
    )  # fmt: skip
    call = CallRow(id, "main", "c", 0, 0, 5_000, sent, 100, 900, at=now, cost=0.4, miss_cost=0.07,
                   branch=BRANCHES[number % len(BRANCHES)])  # fmt: skip
    writes: list[Write] = [PutSession(session), PutThread(thread), PutCall(call)]
    if number % 6 == 2:
        writes.append(PutCompaction(CompactionRow(id, "main", 0, at=now - 60, trigger="auto")))
    if number % 4 == 3:
        handoff = HandoffRow(id, id, now, "/h.md", "0", "", "agent", 1, 95)
        writes.append(PutHandoff(replace(handoff, draft=number % 8 == 3)))
    return writes
