"""Real processes on one file: concurrent, killed, and on a full disk."""

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
    """Start a task on the store in a file."""
    command = [sys.executable, str(CHILD), task, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def fire_at_once(path: Path, processes: int) -> list[list[int]]:
    """The levels that each of several processes fired with an effect."""
    children = [start("fire", path) for _ in range(processes)]
    for number, child in enumerate(children):
        assert child.stdin is not None
        child.stdin.write(f"{number}\n")
        child.stdin.flush()
    outputs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * processes
    return [json.loads(text) for text in outputs]


def stored_ids(path: Path) -> tuple[list[str], list[str]]:
    """The ids of the stored calls and messages."""

    async def look() -> tuple[list[str], list[str]]:
        store = await SqliteStore.open(path)
        calls, messages = await store.calls("s"), await store.messages()
        await store.close()
        return [row.call for row in calls], [row.id for row in messages]

    return asyncio.run(look())


def stored_numbers(path: Path) -> list[str]:
    """The numbers that `acknowledge` has written, by kind."""

    async def look() -> list[str]:
        store = await SqliteStore.open(path)
        sessions, compactions = await store.sessions(), await store.compactions()
        await store.close()
        return [row.id for row in sessions] + [str(row.cycle) for row in compactions]

    calls, messages = stored_ids(path)
    return calls + messages + asyncio.run(look())


def stored_counts(path: Path) -> list[int]:
    """The number of rows that `forget` has left, by kind."""

    async def look() -> list[int]:
        store = await SqliteStore.open(path)
        sessions = await store.sessions()
        calls = [row for row_ in sessions for row in await store.calls(row_.id)]
        rows = [sessions, calls, await store.messages(), await store.changes()]
        await store.close()
        return [len(some) for some in rows]

    return asyncio.run(look())


def test_signal_fired_by_several_processes_has_one_message(tmp_path: Path) -> None:
    fired = fire_at_once(tmp_path / "state" / "brimline.db", 3)
    assert Counter(level for levels in fired for level in levels) == Counter(range(LEVELS))
    _, messages = stored_ids(tmp_path / "state" / "brimline.db")
    expected = {f"{name} {level}" for name, levels in enumerate(fired) for level in levels}
    assert set(messages) == expected
    assert len(messages) == LEVELS


def test_broken_file_is_set_aside_by_one_process(tmp_path: Path) -> None:
    path = tmp_path / "brimline.db"
    path.write_bytes(b"no database at all" * 1_000)
    fired = fire_at_once(path, 3)
    assert sum(map(len, fired)) == LEVELS == len(stored_ids(path)[1])
    assert len(list(tmp_path.glob("brimline.db.broken-*"))) == 1


@pytest.mark.parametrize("after", [1, 40, 333])
def test_acknowledged_writes_survive_a_kill(tmp_path: Path, after: int) -> None:
    path = tmp_path / "brimline.db"
    child = start("acknowledge", path)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline() for _ in range(after)]
    child.kill()
    acknowledged += child.stdout.readlines()
    child.communicate()
    numbers = [int(line) for line in acknowledged if line.endswith("\n")]
    assert len(numbers) >= after
    there = sorted(map(int, stored_numbers(path)))
    assert there[: len(numbers)] == numbers
    assert len(there) <= len(numbers) + 1


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.005, 0.02])
def test_killed_deletion_is_complete_or_absent(tmp_path: Path, pause: float) -> None:
    path = tmp_path / "brimline.db"
    child = start("forget", path)
    assert child.stdout is not None
    assert child.stdout.readline() == "full\n"
    time.sleep(pause)
    child.kill()
    output = child.stdout.read()
    child.communicate()
    nothing, all_of_it = [0] * 4, [SESSIONS, SESSIONS * CALLS, SESSIONS * CALLS, SESSIONS]
    assert stored_counts(path) in ([nothing] if output else [nothing, all_of_it])


@pytest.mark.parametrize("task", ["fill", "fill_lightly"])
def test_full_disk_is_an_error_without_partial_writes_and_recovers(
    tmp_path: Path, task: str
) -> None:
    path = tmp_path / "brimline.db"
    output, _ = start(task, path).communicate()
    number, error, refused, meanwhile, after = json.loads(output)
    assert number > 3
    assert str(path) in error
    assert "disk full" in error
    assert refused == [True, True]
    assert meanwhile == number * 2
    assert after == [True, True]
    expected = {f"{index} {half}" for index in range(number + 1) for half in "ab"}
    calls, messages = stored_ids(path)
    assert {*calls, *messages} == expected
