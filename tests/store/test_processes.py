"""Real processes on one file: at once, killed, and with a disk that is full."""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from brimline.store.sqlite import SqliteStore

from .child import CALLS, LEVELS, SESSIONS

pytestmark = pytest.mark.slow

CHILD = Path(__file__).parent / "child.py"


def start(task: str, path: Path) -> "subprocess.Popen[str]":
    """A process of its own on the store in a file."""
    command = [sys.executable, str(CHILD), task, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def fire_at_once(path: Path, processes: int) -> list[list[int]]:
    """Which levels each of some processes fired with an effect."""
    children = [start("fire", path) for _ in range(processes)]
    for number, child in enumerate(children):
        assert child.stdin is not None
        child.stdin.write(f"{number}\n")
        child.stdin.flush()
    told = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return [json.loads(text) for text in told]


def kept(path: Path) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the messages in a store."""

    async def look() -> tuple[list[str], list[str]]:
        store = await SqliteStore.open(path)
        calls, messages = await store.calls("s"), await store.messages()
        await store.close()
        return [row.call for row in calls], [row.id for row in messages]

    return asyncio.run(look())


def everything(path: Path) -> list[str]:
    """What `acknowledge` has written, of each kind by its number."""

    async def look() -> list[str]:
        store = await SqliteStore.open(path)
        sessions, compactions = await store.sessions(), await store.compactions()
        await store.close()
        return [row.id for row in sessions] + [str(row.cycle) for row in compactions]

    calls, messages = kept(path)
    return calls + messages + asyncio.run(look())


def held(path: Path) -> list[int]:
    """How much `forget` has left, of each kind."""

    async def look() -> list[int]:
        store = await SqliteStore.open(path)
        sessions = await store.sessions()
        calls = [row for one in sessions for row in await store.calls(one.id)]
        rows = [sessions, calls, await store.messages(), await store.changes()]
        await store.close()
        return [len(some) for some in rows]

    return asyncio.run(look())


def test_processes_that_fire_the_same_signals(tmp_path: Path) -> None:
    """Each signal is fired by one process alone, and has one message; all make the file at once."""
    fired = fire_at_once(tmp_path / "state" / "brimline.db", 3)
    assert Counter(level for levels in fired for level in levels) == Counter(range(LEVELS))
    _, messages = kept(tmp_path / "state" / "brimline.db")
    expected = {f"{name} {level}" for name, levels in enumerate(fired) for level in levels}
    assert set(messages) == expected
    assert len(messages) == LEVELS


def test_processes_that_find_a_broken_file(tmp_path: Path) -> None:
    """One of them puts it aside, and nobody puts the new one aside."""
    path = tmp_path / "brimline.db"
    path.write_bytes(b"no database at all" * 1_000)
    fired = fire_at_once(path, 3)
    assert sum(map(len, fired)) == LEVELS == len(kept(path)[1])
    assert len(list(tmp_path.glob("brimline.db.broken-*"))) == 1


@pytest.mark.parametrize("after", [1, 40, 333])
def test_killed(tmp_path: Path, after: int) -> None:
    """What was acknowledged before a kill -9 is there afterwards, and nothing is half there."""
    path = tmp_path / "brimline.db"
    child = start("acknowledge", path)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline() for _ in range(after)]
    child.kill()
    acknowledged += child.stdout.readlines()
    child.communicate()
    numbers = [int(line) for line in acknowledged if line.endswith("\n")]
    assert len(numbers) >= after
    there = sorted(map(int, everything(path)))
    assert there[: len(numbers)] == numbers
    assert len(there) <= len(numbers) + 1


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.005, 0.02])
def test_killed_while_it_forgets(tmp_path: Path, pause: float) -> None:
    """All is forgotten or nothing is, whenever the process ends; what was told is so."""
    path = tmp_path / "brimline.db"
    child = start("forget", path)
    assert child.stdout is not None
    assert child.stdout.readline() == "full\n"
    time.sleep(pause)
    child.kill()
    told = child.stdout.read()
    child.communicate()
    nothing, all_of_it = [0] * 4, [SESSIONS, SESSIONS * CALLS, SESSIONS * CALLS, SESSIONS]
    assert held(path) in ([nothing] if told else [nothing, all_of_it])


@pytest.mark.parametrize("task", ["fill", "fill_lightly"])
def test_full_disk(tmp_path: Path, task: str) -> None:
    """A full disk is a clear error, nothing is half kept, and with room again writing goes on."""
    path = tmp_path / "brimline.db"
    told, _ = start(task, path).communicate()
    number, error, refused, meanwhile, after = json.loads(told)
    assert number > 3
    assert str(path) in error
    assert "disk full" in error
    assert refused == [True, True]
    assert meanwhile == number * 2
    assert after == [True, True]
    expected = {f"{one} {half}" for one in range(number + 1) for half in "ab"}
    calls, messages = kept(path)
    assert {*calls, *messages} == expected
