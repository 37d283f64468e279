"""Tasks that the tests run in their own processes: `python child.py TASK FILE`."""

import asyncio
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from brimline.context.inbox import Message
from brimline.errors import StoreFailed
from brimline.store.base import (
    EventKeys,
    ForgetSessions,
    PutCall,
    PutCompaction,
    PutSession,
    QueueMessage,
    RecordSignal,
    Write,
)
from brimline.store.rows import CallRow, CompactionRow, SessionRow, SignalRow
from brimline.store.sqlite import SqliteStore

LEVELS = 60
SESSIONS, CALLS = 150, 20


async def fire(path: Path) -> None:
    """Wait for a line, fire every level of one cycle, and print which had an effect."""
    name = sys.stdin.readline().strip()
    store = await SqliteStore.open(path)
    fired: list[int] = []
    for level in range(LEVELS):
        message = Message(f"{name} {level}", "s", "text", at=1.0, cycle=0, level=level)
        signal = SignalRow("s", "main", 0, "level", 1.0, level)
        if await store.write([RecordSignal(signal, (message,))]) == [True]:
            fired.append(level)
    await store.close()
    print(json.dumps(fired))


async def acknowledge(path: Path) -> None:
    """Write forever, one kind after the other, and print each number once it is stored."""
    store = await SqliteStore.open(path)
    number = 0
    while True:
        await store.write(_numbered(number))
        print(number, flush=True)
        number += 1


def _numbered(number: int) -> list[Write]:
    match number % 4:
        case 0:
            return [PutCall(CallRow("s", "main", str(number), number, 0, 1, 2, 3, 4))]
        case 1:
            return [QueueMessage(Message(str(number), "s", "text", at=1.0))]
        case 2:
            return [PutCompaction(CompactionRow("s", "main", number, before=9))]
        case _:
            return [
                EventKeys((str(number),), 1.0),
                PutSession(SessionRow(str(number), "claude", 1.0)),
            ]


async def forget(path: Path) -> None:
    """Fill a store with sessions, report that it is full, and delete them all."""
    store = await SqliteStore.open(path)
    for number in range(SESSIONS):
        row = SessionRow(str(number), "claude", 1.0)
        calls = [CallRow(row.id, "main", str(c), c, 0, 1, 2, 3, 4) for c in range(CALLS)]
        texts = [Message(f"{number} {m}", row.id, "text" * 100, at=1.0) for m in range(CALLS)]
        await store.write([PutSession(row), *map(PutCall, calls), *map(QueueMessage, texts)])
    print("full", flush=True)
    await store.write([ForgetSessions(2.0)])
    print("empty", flush=True)


async def fill(path: Path) -> None:
    """Write lists of two messages until the disk is full, then make room and write one more."""
    await _fill(path, _messages)


async def fill_lightly(path: Path) -> None:
    """The same with calls."""
    await _fill(path, _calls)


async def _fill(path: Path, two: Callable[[int], list[Write]]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = await SqliteStore.open(path)
    await store.write([PutSession(SessionRow("s", "claude", 1.0))])
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    number, refusal = await _until_full(store, two)
    refused = [await _refused(store, two(number)), await _refused(store, [ForgetSessions(2.0)])]
    meanwhile = len(await store.messages()) + len(await store.calls("s"))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    after = await store.write(two(number))
    await store.close()
    print(json.dumps([number, refusal, refused, meanwhile, after]))


async def _until_full(store: SqliteStore, two: Callable[[int], list[Write]]) -> tuple[int, str]:
    for number in range(10_000):
        try:
            await store.write(two(number))
        except StoreFailed as error:
            return number, str(error)
    raise AssertionError("the disk was never full")


async def _refused(store: SqliteStore, writes: list[Write]) -> bool:
    try:
        await store.write(writes)
    except StoreFailed:
        return True
    return False


def _messages(number: int) -> list[Write]:
    text = "x" * 5_000
    return [QueueMessage(Message(f"{number} {half}", "s", text, at=1.0)) for half in ("a", "b")]


def _calls(number: int) -> list[Write]:
    model = "x" * 5_000
    rows = [CallRow("s", "main", f"{number} {half}", 1, 0, 1, 2, 3, 4, model) for half in "ab"]
    return [PutCall(row) for row in rows]


TASKS = {task.__name__: task for task in (fire, acknowledge, forget, fill, fill_lightly)}

if __name__ == "__main__":
    asyncio.run(TASKS[sys.argv[1]](Path(sys.argv[2])))
