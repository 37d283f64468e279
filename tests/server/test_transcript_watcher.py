"""Transcripts that are followed while they are written: the store has what the files tell."""

import asyncio
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from watchfiles.main import FileChange

from brimline.events import MAIN, is_compaction_thread
from brimline.monitor.monitor import Monitor
from brimline.server import transcript_watcher
from brimline.server.transcript_watcher import TranscriptWatcher
from brimline.store.base import PutSession, Write
from brimline.store.failures import StoreFailed
from brimline.store.memory import MemoryStore
from brimline.survey.files import find_transcripts, group_by_session, load_session
from brimline.transcripts.source import Places, Transcript

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
    for files in group_by_session(find_transcripts(places)):
        for name, thread in load_session(files).session.threads.items():
            sent = thread.current_call.usage.sent if thread.current_call else None
            found[files.session, name] = (len(thread.calls), sent, thread.cycle)
    return {
        key: each for key, each in found.items() if each[0] and not is_compaction_thread(key[1])
    }


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


class Refusing(MemoryStore):
    """A store that does not take a session, so many times; and keeps what it was asked for."""

    def __init__(self, session: str, times: int, hint: str | None = "Free some space.") -> None:
        super().__init__()
        self._session, self.times, self._hint = session, times, hint

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        """Refuse it."""
        rows = [write.row for write in writes if isinstance(write, PutSession)]
        if self.times and any(row.id == self._session for row in rows):
            self.times -= 1
            raise StoreFailed("brimline.db", "it does not take this", self._hint)
        return await super().write(writes)

    async def has(self, *sessions: str) -> bool:
        """Whether it has just these."""
        return {row.id for row in await self.sessions()} == set(sessions)


FIRST, SECOND, THIRD = (f"{n}" * 8 + "-1111-4111-8111-111111111111" for n in (1, 2, 3))


def write_call(home: Path, session: str, number: int = 1) -> Path:
    """Let Claude Code write a call of a session into its transcript."""
    path = home / f".claude/projects/-project/{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    usage = {"input_tokens": 1_000 * number, "output_tokens": 5}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    when = {"timestamp": "2026-11-15T10:00:00.000Z", "version": "2.1.325"}
    told = {"type": "assistant", "sessionId": session, **when, "message": message}
    with path.open("ab") as file:
        file.write(json.dumps(told, separators=(",", ":")).encode() + b"\n")
    return path


async def followed(home: Path, store: MemoryStore) -> "asyncio.Task[None]":
    """A monitor that follows the files below a home folder."""
    places = Places(home=home, env={})
    monitor = Monitor(store, time.time)
    task = asyncio.create_task(TranscriptWatcher(places, monitor, 0.0, LOOK_EVERY).run())
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
        late = TranscriptWatcher(Places(home=home, env={}), monitor, 2_000.0, LOOK_EVERY)
        task = asyncio.create_task(late.run())
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


def test_one_that_cannot_be_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A transcript that the store refuses holds up no other; it is tried again when it changes."""

    async def go() -> None:
        home, store = tmp_path / "home", Refusing(SECOND, times=1)
        for session in (FIRST, SECOND):
            write_call(home, session)
        task = await followed(home, store)
        assert await until(lambda: store.has(FIRST))
        write_call(home, THIRD)
        assert await until(lambda: store.has(FIRST, THIRD))
        write_call(home, SECOND, 2)
        assert await until(lambda: store.has(FIRST, SECOND, THIRD))
        assert [row.input for row in await store.calls(SECOND)] == [1_000, 2_000]
        await ended(task)

    run(go())
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"cannot process {tmp_path}/home/.claude/projects/-project/{SECOND}.jsonl, will retry"
    ]


def test_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again also where it does not change, and the trouble is said once."""
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)

    async def go() -> None:
        home, store = tmp_path / "home", Refusing(FIRST, times=3)
        write_call(home, FIRST)
        task = await followed(home, store)
        assert await until(lambda: store.has(FIRST))
        await ended(task)

    run(go())
    assert len(caplog.records) == 1


def test_never_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store will never take is not read again before it changes."""
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)

    async def go() -> None:
        home, store = tmp_path / "home", Refusing(FIRST, times=1, hint=None)
        write_call(home, FIRST)
        task = await followed(home, store)
        await asyncio.sleep(4 * LOOK_EVERY)
        assert await store.has()
        write_call(home, FIRST, 2)
        assert await until(lambda: store.has(FIRST))
        await ended(task)

    run(go())


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_names_that_are_no_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A name that the watch cannot tell ends it; all is looked through until it watches again."""
    monkeypatch.setattr(transcript_watcher, "WATCH_RETRY_S", 1.0)

    async def go() -> None:
        home, store = tmp_path / "home", Refusing("", times=0)
        path = write_call(home, FIRST)
        task = await followed(home, store)
        await asyncio.sleep(2 * LOOK_EVERY)
        Path(os.fsdecode(os.fsencode(path.parent) + b"/caf\xe9.txt")).touch()
        assert await until(lambda: _has_said(caplog, "polling every 2 s"))
        write_call(home, SECOND)
        assert await until(lambda: store.has(FIRST, SECOND))
        await asyncio.sleep(1.0)
        write_call(home, THIRD)
        assert await until(lambda: store.has(FIRST, SECOND, THIRD))
        await ended(task)

    run(go())
    assert [record.exc_info for record in caplog.records] == [None]


async def _has_said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return text in caplog.text


def test_an_agent_that_cannot_be_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The transcripts of the other agents are followed."""

    def broken(places: Places, agents: Sequence[str]) -> list[Transcript]:
        if "codex" in agents:
            raise OSError(5, "Input/output error")
        return find_transcripts(places, agents)

    monkeypatch.setattr(transcript_watcher, "find_transcripts", broken)

    async def go() -> None:
        home, store = tmp_path / "home", Refusing("", times=0)
        (home / ".codex/sessions").mkdir(parents=True)
        write_call(home, FIRST)
        task = await followed(home, store)
        assert await until(lambda: store.has(FIRST))
        await ended(task)

    run(go())
    assert "cannot list the transcripts of codex" in caplog.text


class WritingFirst(TranscriptWatcher):
    """A following during which a call is written just before the watch begins."""

    home = Path()

    def _watch(self, folders: list[str], stop: threading.Event) -> Iterator[set[FileChange]]:
        write_call(self.home, FIRST, 2)
        return super()._watch(folders, stop)


def test_written_just_before_the_watch_begins(tmp_path: Path) -> None:
    """What is written between the first look and the watch is read without another change."""

    async def go() -> None:
        home, store = tmp_path / "home", MemoryStore()
        write_call(home, FIRST)
        made = WritingFirst(Places(home=home, env={}), Monitor(store, time.time), 0.0, LOOK_EVERY)
        made.home = home
        task = asyncio.create_task(made.run())

        async def has_both() -> bool:
            return [row.input for row in await store.calls(FIRST)] == [1_000, 2_000]

        assert await until(has_both)
        await ended(task)

    run(go())


class BehindAtFirst(Monitor):
    """A monitor for which a transcript takes too long, so many times."""

    times = 3

    def is_behind(self, session: str) -> bool:
        """Whether it is one of the first times."""
        self.times -= 1
        return self.times >= 0


def test_transcript_that_took_too_long_is_heard_of_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a slow read brings is taken in without another change of the file."""
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)

    async def go() -> None:
        home, monitor = tmp_path / "home", BehindAtFirst(MemoryStore(), time.time)
        write_call(home, FIRST)
        made = TranscriptWatcher(Places(home=home, env={}), monitor, 0.0, LOOK_EVERY)
        task = asyncio.create_task(made.run())

        async def is_done() -> bool:
            return monitor.times < 0

        assert await until(is_done)
        await asyncio.sleep(3 * LOOK_EVERY)
        assert monitor.times == -1  # and not again after that
        await ended(task)

    run(go())
