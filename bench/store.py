"""The store beside bare sqlite3 in the same run: rows per second, CPU per hook."""

import argparse
import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from brimline.context.inbox import Message
from brimline.store.base import (
    EventKeys,
    PutCall,
    PutHandoff,
    PutSession,
    PutThread,
    QueueMessage,
    Write,
)
from brimline.store.rows import CallRow, HandoffRow, SessionRow, ThreadRow
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite import queries as query
from brimline.store.sqlite import statements as sql
from brimline.store.sqlite.connections import CHECK_BUDGET_S, connect, prepare

BATCHES = (1, 50, 500)
AT_ONCE = 64
"""This many callers write one row each at the same time."""

SESSIONS = 20
PAUSE = 0.0002
"""Between two hooks: they come one by one, with the caches as others left them."""


@dataclass(frozen=True)
class Kind:
    """A kind of row: how it is written by us, and how by hand."""

    name: str
    write: Callable[[int], Write]
    insert: str
    values: Callable[[int], tuple[object, ...]]
    synchronous: str


@dataclass
class Case:
    """A batch of a kind, with the rows a second that were measured of it."""

    kind: Kind
    batch: int
    at_once: int = 1
    ours: list[float] = field(default_factory=list[float])
    bare: list[float] = field(default_factory=list[float])

    @property
    def name(self) -> str:
        callers = f", {self.at_once} callers" if self.at_once > 1 else ""
        return f"{self.kind.name}, {self.batch} a list{callers}"


def _session(number: int) -> str:
    """Each list of writes is of one session, as those of an observation are."""
    return f"{number // 500 % 40:08}-0000-4000-8000-000000000000"


def _call(number: int) -> CallRow:
    session = _session(number)
    return CallRow(
        session, "main", f"msg_{number:024}", number, 0, 3, 90_000, 900, 700, "claude-opus-4-5", 1e9
    )


def _message(number: int) -> Message:
    return Message(f"m{number}", _session(number), "You are at 50 %. " * 10, at=1e9, cycle=0)


CALL = Kind(
    "calls",
    lambda number: PutCall(_call(number)),
    sql.CALLS.insert,
    lambda number: sql.CALLS.values(_call(number)),
    "NORMAL",
)
MESSAGE = Kind(
    "messages",
    lambda number: QueueMessage(_message(number)),
    sql.MESSAGES.insert,
    lambda number: sql.MESSAGES.values(_message(number)),
    "FULL",
)


def _batches(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _bare(path: Path, case: Case, rows: int) -> float:
    """What a loop of sqlite3 alone takes: same table, same durability, one transaction a batch."""
    prepare(path)
    batches = [[case.kind.values(n) for n in part] for part in _batches(range(rows), case.batch)]
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA synchronous = {case.kind.synchronous}")
        start = time.perf_counter()
        for batch in batches:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(case.kind.insert, batch)
            connection.execute("COMMIT")
        return rows / (time.perf_counter() - start)


async def _ours(path: Path, case: Case, rows: int) -> float:
    """What the store takes for the same rows, each list acknowledged before the next."""
    lists = [[case.kind.write(n) for n in part] for part in _batches(range(rows), case.batch)]
    shares = [lists[first :: case.at_once] for first in range(case.at_once)]
    store = await SqliteStore.open(path)
    start = time.perf_counter()
    await asyncio.gather(*(_one_after_another(store.write, share) for share in shares))
    seconds = time.perf_counter() - start
    await store.close()
    return rows / seconds


async def _one_after_another(
    write: Callable[[Sequence[Write]], Awaitable[list[bool]]], lists: Sequence[Sequence[Write]]
) -> None:
    for writes in lists:
        await write(writes)


def _measure(case: Case, rows: int, folder: Path) -> None:
    """Both, in turn, so that noise hits both; each in a file of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        case.bare.append(_bare(Path(work) / "bare.db", case, rows))
        case.ours.append(asyncio.run(_ours(Path(work) / "ours.db", case, rows)))


def _table(cases: Sequence[Case]) -> Iterator[str]:
    yield f"{'rows a second':34}{'store':>10}{'sqlite3':>10}{'ratio':>8}"
    for case in cases:
        ours, bare = statistics.median(case.ours), statistics.median(case.bare)
        yield f"{case.name:34}{ours:10,.0f}{bare:10,.0f}{ours / bare:8.2f}"


Statement: TypeAlias = tuple[str, tuple[object, ...]]


@dataclass
class Step:
    """What a hook asks of the store, by us and by hand, and the microseconds of CPU it took."""

    name: str
    ask: Callable[[SqliteStore, int], Awaitable[object]]
    statements: Callable[[int], Sequence[Statement]]
    ours: list[float] = field(default_factory=list[float])
    bare: list[float] = field(default_factory=list[float])


def _name(number: int) -> str:
    return _session(number % SESSIONS * 500)


def _event(number: int) -> EventKeys:
    return EventKeys((f"{1_700_000_000_000_000_000 + number}-4711",), 1e9)


def _seen(number: int, at: int = 0) -> SessionRow:
    return SessionRow(_name(number), "claude", 1e9 + at, "host", "/project", "model", "2.1")


def _surroundings() -> list[Write]:
    """One of each for every session; a document is long."""
    return [
        write
        for name in (_name(number) for number in range(SESSIONS))
        for write in (
            PutThread(ThreadRow(name, "main", 0, 1, "hook", "measured", sent=90_000)),
            QueueMessage(Message(f"to {name}", name, "You are at 50 %. " * 10, at=1e9)),
            PutHandoff(HandoffRow(name, name, 1e9, "/h.md", "00", "x" * 50_000, "agent", 0, 7)),
        )
    ]


def _put(event: EventKeys, row: SessionRow, *changed: str) -> list[Statement]:
    return [
        ("BEGIN IMMEDIATE", ()),
        (sql.INSERT_EVENT_KEY, (*event.keys, event.at)),
        (sql.PUT_SESSION, sql.SESSIONS.values(row)),
        *((sql.MARK_CHANGED, (session,)) for session in changed),
        ("COMMIT", ()),
    ]


def _reading(name: str, ask: Callable[[SqliteStore, str], Awaitable[object]], text: str) -> Step:
    return Step(name, lambda store, n: ask(store, _name(n)), lambda n: [(text, (_name(n),))])


def _steps() -> list[Step]:
    return [
        Step(
            "write([Once, PutSession])",
            lambda store, n: store.write([_event(n), PutSession(_seen(n, n))]),
            lambda n: _put(_event(n), _seen(n, n), _name(n)),
        ),
        Step(
            "write([Once, PutSession]), not new",
            lambda store, n: store.write([_event(-n - 1), PutSession(_seen(n))]),
            lambda n: _put(_event(-n - 1), _seen(n)),
        ),
        _reading("session(id)", SqliteStore.session, query.SESSION.text),
        _reading("threads(id)", SqliteStore.threads, query.THREADS.one.text),
        _reading("waiting(id)", SqliteStore.pending_messages, query.PENDING_MESSAGES.one.text),
        _reading("last_handoffs(id)", SqliteStore.last_handoffs, query.LAST_HANDOFF.text),
        _reading("messages(id), in a thread", SqliteStore.messages, query.MESSAGES.one.text),
    ]


def _by_hand(connection: sqlite3.Connection, statements: Sequence[Statement]) -> float:
    start = time.process_time()
    for text, values in statements:
        connection.execute(text, values).fetchall()
    return (time.process_time() - start) * 1e6


async def _by_us(store: SqliteStore, step: Step, number: int) -> float:
    start = time.process_time()
    await step.ask(store, number)
    return (time.process_time() - start) * 1e6


async def _hooks(folder: Path, hooks: int) -> list[Step]:
    """The steps of many hooks, ours and the bare one in turn, each in a file of its own."""
    steps = _steps()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        for name in ("ours.db", "bare.db"):
            filled = await SqliteStore.open(Path(work) / name)
            await filled.write(_surroundings())
            await filled.close()
        store = await SqliteStore.open(Path(work) / "ours.db")
        with closing(connect(Path(work) / "bare.db")) as connection:
            connection.execute("PRAGMA synchronous = NORMAL")
            for number in range(hooks):
                for step in steps:
                    await asyncio.sleep(PAUSE)
                    step.ours.append(await _by_us(store, step, number))
                    await asyncio.sleep(PAUSE)
                    step.bare.append(_by_hand(connection, step.statements(number)))
        await store.close()
    return steps


def _costs(steps: Sequence[Step]) -> Iterator[str]:
    yield f"{'us of CPU, all threads, mean':36}{'store':>8}{'sqlite3':>10}{'ratio':>8}"
    for step in steps:
        ours, bare = statistics.mean(step.ours), statistics.mean(step.bare)
        yield f"{step.name:36}{ours:8.0f}{bare:10.0f}{ours / bare:8.2f}"


ROW_BYTES = 125
"""What a row of `_fill_calls` takes in the file."""

FILL = """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO calls SELECT printf('%08d-0000-4000-8000-000000000000', n / 500), 'main',
    printf('msg_%024d', n), n, 0, 3, 90000, 900, 700, 'claude-opus-4-5', 1e9 FROM numbers"""


@dataclass
class Boot:
    """A store of a size: seconds to open it with and without the check, and to check all of it."""

    megabytes: float
    checked: list[float] = field(default_factory=list[float])
    unchecked: list[float] = field(default_factory=list[float])
    whole: float = 0.0


def _fill_calls(path: Path, megabytes: int) -> None:
    prepare(path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(FILL, (megabytes * (1 << 20) // ROW_BYTES,))


async def _opened_s(path: Path, check_budget_s: float) -> float:
    start = time.perf_counter()
    store = await SqliteStore.open(path, check_budget_s)
    seconds = time.perf_counter() - start
    await store.close()
    return seconds


async def _whole_check_s(path: Path) -> float:
    store = await SqliteStore.open(path, 0.0)
    start = time.perf_counter()
    await store.check_content()
    seconds = time.perf_counter() - start
    await store.close()
    return seconds


def _boot(folder: Path, megabytes: int, rounds: int) -> Boot:
    """Open a store of a size with and without the check, in turn."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        path = Path(work) / "boot.db"
        _fill_calls(path, megabytes)
        boot = Boot(path.stat().st_size / (1 << 20))
        for _ in range(rounds):
            boot.checked.append(asyncio.run(_opened_s(path, CHECK_BUDGET_S)))
            boot.unchecked.append(asyncio.run(_opened_s(path, 0.0)))
        boot.whole = asyncio.run(_whole_check_s(path))
    return boot


def _boots(boots: Sequence[Boot]) -> Iterator[str]:
    yield f"{'ms to open a store':24}{'checked':>9}{'not':>7}{'ratio':>8}{'whole check, s':>17}"
    for boot in boots:
        checked, unchecked = (
            statistics.median(times) * 1e3 for times in (boot.checked, boot.unchecked)
        )
        name = f"{boot.megabytes:,.0f} MB"
        ratio = checked / unchecked
        yield f"{name:24}{checked:9.0f}{unchecked:7.0f}{ratio:8.1f}{boot.whole:17.1f}"


def main() -> int:
    """Print the comparisons; nothing is asserted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4_000, help="in each case")
    parser.add_argument("--hooks", type=int, default=2_000)
    parser.add_argument(
        "--folder",
        type=Path,
        help="on the disk to measure",
    )
    parser.add_argument("--boot-mb", type=int, nargs="*", default=[10, 200], help="of each store")
    parser.add_argument("--boot-only", action="store_true", help="nothing but the opening")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.gettempdir())
    cases = [Case(kind, batch) for kind in (CALL, MESSAGE) for batch in BATCHES]
    cases += [Case(kind, 1, AT_ONCE) for kind in (CALL, MESSAGE)]
    print(f"sqlite {sqlite3.sqlite_version}, {os.cpu_count()} cores, {args.rounds} rounds\n")
    boots = [_boot(folder, megabytes, args.rounds) for megabytes in args.boot_mb]
    print(*_boots(boots), "", sep="\n")
    if args.boot_only:
        return 0
    print(*_costs(asyncio.run(_hooks(folder, args.hooks))), "", sep="\n")
    for _ in range(args.rounds):
        for case in cases:
            _measure(case, args.rows, folder)
    print(*_table(cases), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
