"""The store beside a bare sqlite3 loop in the same run: rows a second by the size of a batch."""

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

from brimline.inbox import Message
from brimline.store.base import CallRow, PutCall, Queue, Write
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite.place import connect, prepare
from brimline.store.sqlite.statements import CALLS, MESSAGES

BATCHES = (1, 50, 500)
AT_ONCE = 64
"""So many callers write one row each, where they are counted together."""


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
        """As it stands in the table."""
        callers = f", {self.at_once} callers" if self.at_once > 1 else ""
        return f"{self.kind.name}, {self.batch} a list{callers}"


def _session(number: int) -> str:
    """A list is of one session, as what an agent tells is."""
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
    CALLS.insert,
    lambda number: CALLS.values(_call(number)),
    "NORMAL",
)
MESSAGE = Kind(
    "messages",
    lambda number: Queue(_message(number)),
    MESSAGES.insert,
    lambda number: MESSAGES.values(_message(number)),
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


def main() -> int:
    """Print the comparison; nothing is asserted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4_000, help="in each case")
    parser.add_argument("--folder", type=Path, help="whose disk is used; else the temporary one's")
    args = parser.parse_args()
    cases = [Case(kind, batch) for kind in (CALL, MESSAGE) for batch in BATCHES]
    cases += [Case(kind, 1, AT_ONCE) for kind in (CALL, MESSAGE)]
    for _ in range(args.rounds):
        for case in cases:
            _measure(case, args.rows, args.folder or Path(tempfile.gettempdir()))
    print(f"sqlite {sqlite3.sqlite_version}, {os.cpu_count()} cores, {args.rounds} rounds\n")
    print(*_table(cases), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
