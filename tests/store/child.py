"""What the tests start as processes of their own: `python child.py fire|acknowledge|fill FILE`."""

import asyncio
import json
import resource
import sys
from pathlib import Path

from brimline.inbox import Message
from brimline.store.base import CallRow, Fire, PutCall, Queue, SignalRow, Write
from brimline.store.failures import StoreFailed
from brimline.store.sqlite import SqliteStore

LEVELS = 60


async def fire(path: Path) -> None:
    """Wait for a line, fire every level of one cycle, and tell which had an effect."""
    name = sys.stdin.readline().strip()
    store = await SqliteStore.open(path)
    fired: list[int] = []
    for level in range(LEVELS):
        message = Message(f"{name} {level}", "s", "text", at=1.0, cycle=0, level=level)
        signal = SignalRow("s", "main", 0, "level", 1.0, level)
        if await store.write([Fire(signal, (message,))]) == [True]:
            fired.append(level)
    await store.close()
    print(json.dumps(fired))


async def acknowledge(path: Path) -> None:
    """Write without end, a call and a message in turn, and tell each number once it is kept."""
    store = await SqliteStore.open(path)
    number = 0
    while True:
        await store.write([_numbered(number)])
        print(number, flush=True)
        number += 1


def _numbered(number: int) -> Write:
    if number % 2:
        return Queue(Message(str(number), "s", "text", at=1.0))
    return PutCall(CallRow("s", "main", str(number), number, 0, 1, 2, 3, 4))


async def fill(path: Path) -> None:
    """Write lists of two until the disk is full, then make room and write one more."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = await SqliteStore.open(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    number, told = await _until_full(store)
    refused = await _refused(store, number)
    meanwhile = len(await store.messages())
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    after = await store.write(_two(number))
    await store.close()
    print(json.dumps([number, told, refused, meanwhile, after]))


async def _until_full(store: SqliteStore) -> tuple[int, str]:
    for number in range(10_000):
        try:
            await store.write(_two(number))
        except StoreFailed as error:
            return number, str(error)
    raise AssertionError("the disk was never full")


async def _refused(store: SqliteStore, number: int) -> bool:
    try:
        await store.write(_two(number))
    except StoreFailed:
        return True
    return False


def _two(number: int) -> list[Write]:
    text = "x" * 5_000
    return [Queue(Message(f"{number} {half}", "s", text, at=1.0)) for half in ("a", "b")]


if __name__ == "__main__":
    asyncio.run(
        {"fire": fire, "acknowledge": acknowledge, "fill": fill}[sys.argv[1]](Path(sys.argv[2]))
    )
