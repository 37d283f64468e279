"""Transcripts that are followed while they are written: the store has what the files tell."""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from brimline.events import MAIN, sums_up
from brimline.monitor.monitor import Monitor
from brimline.server.following import Following
from brimline.sources.base import Places
from brimline.store.memory import MemoryStore
from brimline.survey.files import sessions, transcripts, whole

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent.parent / "fixtures"
SCENES = sorted(str(home.parent.relative_to(FIXTURES)) for home in FIXTURES.glob("*/*/home"))
LOOK_EVERY = 0.3
PATIENCE = 20.0

Figures = dict[tuple[str, str], tuple[int, int | None, int]]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


def told(places: Places) -> Figures:
    """What the files tell when they are read whole: calls, what the last sent, the cycle."""
    found: Figures = {}
    for files in sessions(transcripts(places)):
        for name, thread in whole(files).session.threads.items():
            sent = thread.holding.usage.sent if thread.holding else None
            found[files.session, name] = (len(thread.calls), sent, thread.cycle)
    return {key: each for key, each in found.items() if each[0] and not sums_up(key[1])}


async def kept(store: MemoryStore) -> Figures:
    """What the store has of the threads that have calls."""
    calls: dict[tuple[str, str], int] = {}
    for row in await store.sessions():
        for call in await store.calls(row.id):
            calls[row.id, call.thread] = calls.get((row.id, call.thread), 0) + 1
    rows = {(row.session, row.thread): row for row in await store.threads()}
    return {
        key: (count, rows[key].sent, rows[key].cycle) for key, count in calls.items() if key in rows
    }


async def until(ask: Callable[[], Awaitable[bool]]) -> bool:
    """Whether something comes true while it is waited for."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if await ask():
            return True
        await asyncio.sleep(0.05)
    return False


async def followed(home: Path, store: MemoryStore) -> "asyncio.Task[None]":
    """A monitor that follows the files below a home folder."""
    places = Places(home=home, env={})
    monitor = Monitor(store, time.time)
    task = asyncio.create_task(Following(places, monitor, 0.0, LOOK_EVERY).run())
    await asyncio.sleep(0.05)
    return task


async def ended(task: "asyncio.Task[None]") -> None:
    """End a following."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def grow(source: Path, target: Path, part: float) -> None:
    """Write so much of a file as a client would: in place, perhaps in the middle of a line."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".jsonl":
        data = source.read_bytes()
        with target.open("ab") as file:
            file.write(data[target.stat().st_size : int(len(data) * part)])
    elif source.suffix == ".sql" and part == 1:
        with closing(sqlite3.connect(target.with_suffix(".db"))) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(source.read_text("utf-8"))
    elif part == 1:
        draft = target.with_name(f"{target.name}.draft")
        draft.write_bytes(source.read_bytes())
        draft.replace(target)


@pytest.mark.parametrize("scene", SCENES)
def test_files_are_followed(scene: str, tmp_path: Path) -> None:
    """Whatever a client wrote, in pieces, beside us: the store has just what the files tell."""

    async def go() -> None:
        recorded, home = FIXTURES / scene / "home", tmp_path / "home"
        home.mkdir()
        store = MemoryStore()
        task = await followed(home, store)
        files = [path for path in sorted(recorded.rglob("*")) if path.is_file()]
        for part in (0.3, 0.7, 1):
            for path in files:
                grow(path, home / path.relative_to(recorded), part)
            await asyncio.sleep(0.2)
        expected = told(Places(home=home, env={}))
        assert expected

        async def equal() -> bool:
            have = await kept(store)
            return {key: have.get(key) for key in expected} == expected

        same = await until(equal)
        have = await kept(store)
        await ended(task)
        assert same, {key: (have.get(key), figures) for key, figures in expected.items()}

    run(go())


def test_old_sessions_are_left_alone(tmp_path: Path) -> None:
    """Transcripts from before the span that is asked for are not read."""

    async def go() -> None:
        home = tmp_path / "home"
        shutil.copytree(FIXTURES / "claude" / "tool-loop" / "home", home)
        for path in home.rglob("*.jsonl"):
            os.utime(path, (1_000.0, 1_000.0))
        store = MemoryStore()
        monitor = Monitor(store, time.time)
        following = Following(Places(home=home, env={}), monitor, 2_000.0, LOOK_EVERY)
        task = asyncio.create_task(following.run())
        await asyncio.sleep(0.5)
        assert await store.sessions() == []
        path = next(home.rglob("*.jsonl"))
        with path.open("ab") as file:
            file.write(b"\n")

        async def seen() -> bool:
            return len(await store.sessions()) == 1

        assert await until(seen)
        await ended(task)

    run(go())


def test_agent_that_comes_later(tmp_path: Path) -> None:
    """An agent whose first session comes while the daemon runs is found."""

    async def go() -> None:
        home = tmp_path / "home"
        home.mkdir()
        store = MemoryStore()
        task = await followed(home, store)
        await asyncio.sleep(2 * LOOK_EVERY)
        shutil.copytree(FIXTURES / "codex" / "one-call" / "home", home, dirs_exist_ok=True)

        async def seen() -> bool:
            rows = await store.threads()
            return [row.thread for row in rows if row.calls] == [MAIN]

        assert await until(seen)
        await ended(task)

    run(go())


def test_file_that_is_taken_away(tmp_path: Path) -> None:
    """A transcript that is deleted, or replaced by a shorter one, breaks nothing."""

    async def go() -> None:
        home = tmp_path / "home"
        shutil.copytree(FIXTURES / "claude" / "tool-loop" / "home", home)
        store = MemoryStore()
        task = await followed(home, store)

        async def seen() -> bool:
            return bool(await store.sessions())

        assert await until(seen)
        path = next(home.rglob("*.jsonl"))
        data = path.read_bytes()
        path.unlink()
        await asyncio.sleep(0.7)
        path.write_bytes(data[: len(data) // 2])
        await asyncio.sleep(0.7)
        assert not task.done()
        await ended(task)

    run(go())
