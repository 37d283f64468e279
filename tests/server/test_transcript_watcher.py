"""Transcripts that are followed while clients write them: the store matches the files."""

import asyncio
import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from watchfiles.main import FileChange

from brimline.agents.transcripts.source import Places, Transcript
from brimline.context.events import MAIN, is_compaction_thread
from brimline.daemon import transcript_watcher
from brimline.daemon.transcript_watcher import TranscriptWatcher
from brimline.errors import StoreFailed
from brimline.monitor.monitor import Monitor
from brimline.sessions.files import find_transcripts, group_by_session, load_session
from brimline.store.base import PutSession, Write
from brimline.store.sqlite import MemoryStore

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent.parent / "fixtures"
SCENES = sorted(str(home.parent.relative_to(FIXTURES)) for home in FIXTURES.glob("*/*/home"))
SCAN_INTERVAL_S = 0.3
MAX_WAIT_S = 60.0

Figures = dict[tuple[str, str], tuple[int, int | None, int]]


def threads_in_files(places: Places) -> Figures:
    """Read the files whole: calls, sent tokens of the last, cycle of each thread."""
    threads: Figures = {}
    for files in group_by_session(find_transcripts(places)):
        for name, thread in load_session(files).session.threads.items():
            sent = thread.current_call.usage.sent if thread.current_call else None
            threads[files.session, name] = (len(thread.calls), sent, thread.cycle)
    return {
        key: each for key, each in threads.items() if each[0] and not is_compaction_thread(key[1])
    }


async def threads_in_store(store: MemoryStore) -> Figures:
    calls: dict[tuple[str, str], int] = {}
    for row in await store.sessions():
        for call in await store.calls(row.id):
            calls[row.id, call.thread] = calls.get((row.id, call.thread), 0) + 1
    rows = {(row.session, row.thread): row for row in await store.threads()}
    return {
        key: (count, rows[key].sent, rows[key].cycle) for key, count in calls.items() if key in rows
    }


async def becomes_true(ask: Callable[[], Awaitable[bool]]) -> bool:
    """Whether a condition becomes true in time."""
    end = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < end:
        if await ask():
            return True
        await asyncio.sleep(0.05)
    return False


class RefusingStore(MemoryStore):
    """Refuses a session a number of times, and records the attempts."""

    def __init__(self, session: str, times: int, hint: str | None = "Free some space.") -> None:
        super().__init__()
        self._session, self.times, self._hint = session, times, hint

    async def write(self, writes: Sequence[Write]) -> list[bool]:
        rows = [write.row for write in writes if isinstance(write, PutSession)]
        if self.times and any(row.id == self._session for row in rows):
            self.times -= 1
            raise StoreFailed("brimline.db", "it does not take this", self._hint)
        return await super().write(writes)

    async def has_refused(self) -> bool:
        """Whether it accepts the session from now on."""
        return self.times == 0

    async def has(self, *sessions: str) -> bool:
        """Whether it contains exactly these sessions."""
        return {row.id for row in await self.sessions()} == set(sessions)


FIRST, SECOND, THIRD = (f"{n}" * 8 + "-1111-4111-8111-111111111111" for n in (1, 2, 3))


def write_call(home: Path, session: str, number: int = 1) -> Path:
    """Append a call to a Claude Code transcript."""
    path = home / f".claude/projects/-project/{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    usage = {"input_tokens": 1_000 * number, "output_tokens": 5}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    when = {"timestamp": "2026-11-15T10:00:00.000Z", "version": "2.1.325"}
    record = {"type": "assistant", "sessionId": session, **when, "message": message}
    with path.open("ab") as file:
        file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    return path


async def start_watcher(home: Path, store: MemoryStore) -> "asyncio.Task[None]":
    """Start a watcher of the transcripts below a home folder."""
    places = Places(home=home, env={})
    monitor = Monitor(store, time.time)
    task = asyncio.create_task(TranscriptWatcher(places, monitor, 0.0, SCAN_INTERVAL_S).run())
    await asyncio.sleep(0.05)
    return task


async def stop_watcher(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def grow(source: Path, target: Path, part: float) -> None:
    """Append as a client does: in place, perhaps in the middle of a line."""
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
async def test_store_matches_the_files_after_growth_in_pieces(scene: str, tmp_path: Path) -> None:
    recorded, home = FIXTURES / scene / "home", tmp_path / "home"
    home.mkdir()
    store = MemoryStore()
    task = await start_watcher(home, store)
    files = [path for path in sorted(recorded.rglob("*")) if path.is_file()]
    for part in (0.3, 0.7, 1):
        for path in files:
            grow(path, home / path.relative_to(recorded), part)
        await asyncio.sleep(0.2)
    expected = threads_in_files(Places(home=home, env={}))
    assert expected

    async def equal() -> bool:
        have = await threads_in_store(store)
        return {key: have.get(key) for key in expected} == expected

    same = await becomes_true(equal)
    have = await threads_in_store(store)
    await stop_watcher(task)
    assert same, {key: (have.get(key), figures) for key, figures in expected.items()}


async def test_transcripts_before_the_span_are_not_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "claude" / "tool-loop" / "home", home)
    for path in home.rglob("*.jsonl"):
        os.utime(path, (1_000.0, 1_000.0))
    store = MemoryStore()
    monitor = Monitor(store, time.time)
    late = TranscriptWatcher(Places(home=home, env={}), monitor, 2_000.0, SCAN_INTERVAL_S)
    task = asyncio.create_task(late.run())
    await asyncio.sleep(0.5)
    assert await store.sessions() == []
    path = next(home.rglob("*.jsonl"))
    with path.open("ab") as file:
        file.write(b"\n")

    async def seen() -> bool:
        return len(await store.sessions()) == 1

    assert await becomes_true(seen)
    await stop_watcher(task)


async def test_old_main_transcript_is_read_if_a_subagent_is_active(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "claude" / "subagent-sync" / "home", home)
    main = next(path for path in home.rglob("*.jsonl") if path.parent.name != "subagents")
    os.utime(main, (1_000.0, 1_000.0))
    store = MemoryStore()
    watcher = TranscriptWatcher(
        Places(home=home, env={}), Monitor(store, time.time), 2_000.0, SCAN_INTERVAL_S
    )
    task = asyncio.create_task(watcher.run())

    async def both() -> bool:
        return [row.sent is not None for row in await store.threads()] == [True, True]

    assert await becomes_true(both)
    await stop_watcher(task)


async def test_calls_of_a_fork_belong_to_its_original_though_that_was_written_later(
    tmp_path: Path,
) -> None:
    """The daemon is new, and its first look finds both files."""
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "claude" / "fork" / "home", home)
    original, fork = sorted(home.rglob("*.jsonl"))
    later = fork.stat().st_mtime + 60
    os.utime(original, (later, later))
    store = MemoryStore()
    task = await start_watcher(home, store)
    counts: dict[str, tuple[int, int]] = {}

    async def both() -> bool:
        for path in (original, fork):
            rows = await store.calls(path.stem)
            counts[path.stem] = len(rows), sum(row.counted for row in rows)
        return all(count for count, _ in counts.values())

    assert await becomes_true(both)
    assert counts == {original.stem: (3, 3), fork.stem: (5, 2)}
    await stop_watcher(task)


async def test_transcript_without_a_call_is_no_session(tmp_path: Path) -> None:
    """`status` does not list it either."""
    folder = tmp_path / "home/.claude/projects/-project"
    folder.mkdir(parents=True)
    (folder / "s1.jsonl").write_bytes(b'{"type":"user","sessionId":"s1"}\n')
    (folder / "s2.jsonl").write_bytes(b"")
    shutil.copytree(FIXTURES / "claude" / "tool-loop" / "home", tmp_path / "home",
                    dirs_exist_ok=True)  # fmt: skip
    store = MemoryStore()
    task = await start_watcher(tmp_path / "home", store)

    async def is_read() -> bool:
        return bool(await store.sessions())

    assert await becomes_true(is_read)
    assert len(await store.sessions()) == 1
    await stop_watcher(task)


async def test_first_session_of_an_agent_is_found_while_running(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    store = MemoryStore()
    task = await start_watcher(home, store)
    await asyncio.sleep(2 * SCAN_INTERVAL_S)
    shutil.copytree(FIXTURES / "codex" / "one-call" / "home", home, dirs_exist_ok=True)

    async def seen() -> bool:
        rows = await store.threads()
        return [row.thread for row in rows if row.calls] == [MAIN]

    assert await becomes_true(seen)
    await stop_watcher(task)


async def test_deleted_or_shortened_transcript_is_harmless(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "claude" / "tool-loop" / "home", home)
    store = MemoryStore()
    task = await start_watcher(home, store)

    async def seen() -> bool:
        return bool(await store.sessions())

    assert await becomes_true(seen)
    path = next(home.rglob("*.jsonl"))
    data = path.read_bytes()
    path.unlink()
    await asyncio.sleep(0.7)
    path.write_bytes(data[: len(data) // 2])
    await asyncio.sleep(0.7)
    assert not task.done()
    await stop_watcher(task)


async def test_refused_transcript_blocks_no_other_and_is_retried_on_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", MAX_WAIT_S)
    home, store = tmp_path / "home", RefusingStore(SECOND, times=1)
    for session in (FIRST, SECOND):
        write_call(home, session)
    task = await start_watcher(home, store)
    assert await becomes_true(lambda: store.has(FIRST))
    write_call(home, THIRD)
    assert await becomes_true(lambda: store.has(FIRST, THIRD))
    write_call(home, SECOND, 2)
    assert await becomes_true(lambda: store.has(FIRST, SECOND, THIRD))
    assert [row.input for row in await store.calls(SECOND)] == [1_000, 2_000]
    await stop_watcher(task)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"cannot process {tmp_path}/home/.claude/projects/-project/{SECOND}.jsonl, will retry"
    ]


async def test_refused_transcript_is_retried_without_a_change_and_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)
    home, store = tmp_path / "home", RefusingStore(FIRST, times=3)
    write_call(home, FIRST)
    task = await start_watcher(home, store)
    assert await becomes_true(lambda: store.has(FIRST))
    await stop_watcher(task)
    assert len(caplog.records) == 1


async def test_permanently_refused_transcript_is_not_read_again_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)
    home, store = tmp_path / "home", RefusingStore(FIRST, times=1, hint=None)
    write_call(home, FIRST)
    task = await start_watcher(home, store)
    assert await becomes_true(store.has_refused)
    await asyncio.sleep(4 * SCAN_INTERVAL_S)
    assert await store.has()
    write_call(home, FIRST, 2)
    assert await becomes_true(lambda: store.has(FIRST))
    await stop_watcher(task)


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
async def test_name_that_is_no_utf8_falls_back_to_scans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transcript_watcher, "WATCH_RETRY_S", 1.0)
    home, store = tmp_path / "home", RefusingStore("", times=0)
    path = write_call(home, FIRST)
    task = await start_watcher(home, store)

    async def is_noticed() -> bool:
        """Whether the watcher, which may still be starting, has met such a name."""
        name = b"/caf\xe9-%d.txt" % len(list(path.parent.iterdir()))
        Path(os.fsdecode(os.fsencode(path.parent) + name)).touch()
        return "polling every 2 s" in caplog.text

    assert await becomes_true(is_noticed)
    write_call(home, SECOND)
    assert await becomes_true(lambda: store.has(FIRST, SECOND))
    await asyncio.sleep(1.0)
    write_call(home, THIRD)
    assert await becomes_true(lambda: store.has(FIRST, SECOND, THIRD))
    await stop_watcher(task)
    assert [record.exc_info for record in caplog.records] == [None]


async def test_failing_scan_of_one_agent_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(places: Places, agents: Sequence[str]) -> list[Transcript]:
        if "codex" in agents:
            raise OSError(5, "Input/output error")
        return find_transcripts(places, agents)

    monkeypatch.setattr(transcript_watcher, "find_transcripts", broken)
    home, store = tmp_path / "home", RefusingStore("", times=0)
    (home / ".codex/sessions").mkdir(parents=True)
    write_call(home, FIRST)
    task = await start_watcher(home, store)
    assert await becomes_true(lambda: store.has(FIRST))
    await stop_watcher(task)
    assert "cannot list the transcripts of codex" in caplog.text


class WritingBeforeWatch(TranscriptWatcher):
    """A watcher during whose start a call is written just before it watches."""

    home = Path()

    def _watch(self, folders: list[str], stop: threading.Event) -> Iterator[set[FileChange]]:
        write_call(self.home, FIRST, 2)
        return super()._watch(folders, stop)


async def test_call_written_between_scan_and_watch_is_read(tmp_path: Path) -> None:
    home, store = tmp_path / "home", MemoryStore()
    write_call(home, FIRST)
    watcher = WritingBeforeWatch(
        Places(home=home, env={}), Monitor(store, time.time), 0.0, SCAN_INTERVAL_S
    )
    watcher.home = home
    task = asyncio.create_task(watcher.run())

    async def has_both() -> bool:
        return [row.input for row in await store.calls(FIRST)] == [1_000, 2_000]

    assert await becomes_true(has_both)
    await stop_watcher(task)


class BehindAtFirst(Monitor):
    """A monitor whose reads take too long a number of times."""

    times = 3

    def is_behind(self, session: str) -> bool:
        self.times -= 1
        return self.times >= 0


async def test_transcript_whose_read_took_too_long_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_watcher, "OBSERVE_RETRY_S", 0.1)
    home, monitor = tmp_path / "home", BehindAtFirst(MemoryStore(), time.time)
    write_call(home, FIRST)
    watcher = TranscriptWatcher(Places(home=home, env={}), monitor, 0.0, SCAN_INTERVAL_S)
    task = asyncio.create_task(watcher.run())

    async def is_done() -> bool:
        return monitor.times < 0

    assert await becomes_true(is_done)
    await asyncio.sleep(3 * SCAN_INTERVAL_S)
    assert monitor.times == -1  # and not again after that
    await stop_watcher(task)
