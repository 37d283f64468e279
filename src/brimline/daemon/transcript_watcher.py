"""Watch the folders of transcripts, so that agents without hooks are monitored too."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from brimline.agents import agents_present, source
from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Places, Transcript, begun_at
from brimline.daemon.log_limit import RateLimitedLog
from brimline.daemon.retry import is_transient
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.monitor.monitor import Monitor
from brimline.sessions.files import find_transcripts, group_by_session

WATCH_STEP_MS, DEBOUNCE_MS = 100, 400
FOLDER_CHECK_S = 5.0  # look for new folders: an agent's first session
POLL_INTERVAL_S = 2.0  # of all folders, if they cannot be watched
WATCH_RETRY_S = 60.0  # after a failure: no watches left, or a name that is not UTF-8
OBSERVE_RETRY_S = 5.0  # after a failure, unless the transcript changes first
HEAD_WAIT_S = 1.0  # for the beginning of a file, on a file system that may hang

TranscriptKey: TypeAlias = tuple[str, str | None, str]  # path, session, thread
FileVersion: TypeAlias = tuple[int, float]  # size, time of the last write


class TranscriptWatcher:
    """Reports the transcripts of every session that was active after `since` to a monitor."""

    def __init__(
        self,
        places: Places,
        monitor: Monitor,
        since: float,
        folder_check_s: float = FOLDER_CHECK_S,
        threads: ReadThreads = SHARED_READS,
    ) -> None:
        self._places, self._monitor, self._since = places, monitor, since
        self._folder_check_s, self._threads = folder_check_s, threads
        self._known: dict[TranscriptKey, FileVersion] = {}
        self._failed: dict[TranscriptKey, tuple[FileVersion, float]] = {}
        self._files: dict[str, Transcript] = {}
        self._watch_again_at = 0.0
        self._log = RateLimitedLog()

    async def run(self) -> None:
        while True:
            folders = await self._threads.run(self._find_folders)
            await self._observe_agents(set(folders.values()))
            is_first = True
            async for paths in self._changes(folders):
                if is_first:  # files written before the watch began
                    await self._observe_agents(set(folders.values()))
                    is_first = False
                await self._process_changes(folders, paths)
                await self._retry_failed(folders)

    def _find_folders(self) -> dict[str, str]:
        """Return existing folders and their agents; a folder inside another is watched with it."""
        folders = {
            os.path.realpath(folder): agent
            for agent in agents_present(self._places)
            for folder in source(agent).folders(self._places)
            if Path(folder).is_dir()
        }
        return {
            path: agent
            for path, agent in folders.items()
            if not any(_is_below(path, other) for other in folders)
        }

    async def _changes(self, folders: Iterable[str]) -> AsyncIterator[set[str]]:
        """Yield changed paths until the folders changed, or cannot be watched."""
        watched, stop = sorted(folders), threading.Event()
        if not watched or time.monotonic() < self._watch_again_at:
            pause_s = POLL_INTERVAL_S if watched else self._folder_check_s
            await asyncio.sleep(min(pause_s, self._folder_check_s))
            return
        end = time.monotonic() + self._folder_check_s
        try:
            changes = self._watch(watched, stop)
            while (batch := await asyncio.to_thread(next, changes, None)) is not None:
                yield {path for _, path in batch}
                if time.monotonic() > end:
                    folders = await self._threads.run(self._find_folders)
                    if set(folders) != set(watched):
                        return
        except Exception as error:  # noqa: BLE001 - no watches left, or a name that is not UTF-8
            what = f"cannot watch transcripts, polling every {POLL_INTERVAL_S:g} s"
            self._log.warn(what, error, is_expected=True)
            self._watch_again_at = time.monotonic() + WATCH_RETRY_S
        finally:
            stop.set()

    def _watch(self, folders: list[str], stop: threading.Event) -> Iterator[set[tuple[Any, str]]]:
        from watchfiles import watch

        return watch(
            *folders,
            watch_filter=None,
            step=WATCH_STEP_MS,
            debounce=DEBOUNCE_MS,
            stop_event=stop,
            rust_timeout=int(self._folder_check_s * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,  # its polling fails on a name that is not UTF-8
        )

    async def _process_changes(self, folders: dict[str, str], paths: set[str]) -> None:
        """Observe known files; for others, look through the agent's transcripts."""
        for path in paths & self._files.keys():
            await self._observe_file(path)
        others = paths - self._files.keys()
        agents = {
            agent for path in others for top, agent in folders.items() if _is_below(path, top)
        }
        await self._observe_agents(agents)

    async def _retry_failed(self, folders: dict[str, str]) -> None:
        """Look again for transcripts whose observation failed a while ago."""
        now = time.monotonic()
        due = [key for key, (_, at) in self._failed.items() if at <= now]
        for key in due:
            del self._failed[key]
        if due:
            await self._observe_agents(set(folders.values()))

    async def _observe_agents(self, agents: set[str]) -> None:
        transcripts = [
            transcript
            for agent in sorted(agents)
            for transcript in await self._find_transcripts(agent)
        ]
        # All files of an active session, as in `status`: a subagent may run for longer than
        # `since` without a call of the main thread.
        active = [f for f in group_by_session(transcripts) if f.modified >= self._since]
        changed = [files for files in active if any(map(self._is_new, files.transcripts))]
        # The first session that has a call owns it: originals come before their forks.
        begun = [(await self._begun_at(files.transcripts[0]), files) for files in changed]
        for _, files in sorted(begun, key=lambda each: (each[0], each[1].transcripts[0].size)):
            # The main one first: a subagent's would give the session its project.
            for transcript in files.transcripts:
                await self._observe(transcript)

    def _is_new(self, transcript: Transcript) -> bool:
        return self._known.get(_key(transcript)) != _version(transcript)

    async def _begun_at(self, transcript: Transcript) -> float:
        """Return when a file was begun, else when it was modified."""
        begun = None
        if transcript.size:
            read = partial(begun_at, transcript.path)
            with suppress(TimeoutError):
                begun = await self._threads.run(read, HEAD_WAIT_S)
        return transcript.modified if begun is None else begun

    async def _find_transcripts(self, agent: str) -> list[Transcript]:
        """Return an agent's transcripts; none if they cannot be listed now."""
        try:
            return await self._threads.run(partial(find_transcripts, self._places, [agent]))
        except Exception as error:  # noqa: BLE001 - other agents are not affected
            self._log.warn(f"cannot list the transcripts of {agent}, will retry", error)
            return []

    async def _observe_file(self, path: str) -> None:
        try:
            status = await self._threads.run(partial(os.stat, path))
        except OSError:
            return
        size, modified = status.st_size, status.st_mtime
        await self._observe(
            msgspec.structs.replace(self._files[path], size=size, modified=modified)
        )

    async def _observe(self, transcript: Transcript) -> None:
        session = transcript.session
        if session is None:
            return
        key, version = _key(transcript), _version(transcript)
        failed, retry_at = self._failed.get(key, (None, 0.0))
        is_postponed = failed == version and time.monotonic() < retry_at
        if not self._is_new(transcript) or is_postponed:
            return
        if transcript.size:
            real_path = await self._threads.run(partial(os.path.realpath, transcript.path))
            self._files[real_path] = transcript
        try:
            await self._monitor.observe(_observation(transcript, session))
            must_retry = self._monitor.is_behind(session)
        except Exception as error:  # noqa: BLE001 - other transcripts are not affected
            self._log.warn(f"cannot process {transcript.path}, will retry", error)
            must_retry = is_transient(error)
        if must_retry:
            self._failed[key] = version, time.monotonic() + OBSERVE_RETRY_S
        else:  # observed again when it changes
            self._failed.pop(key, None)
            self._known[key] = version


def _key(transcript: Transcript) -> TranscriptKey:
    return transcript.path, transcript.session, transcript.thread


def _version(transcript: Transcript) -> FileVersion:
    return transcript.size, transcript.modified


def _observation(transcript: Transcript, session: str) -> Observation:
    return Observation(
        id=f"{transcript.path} {transcript.thread} {transcript.size} {transcript.modified}",
        agent=transcript.agent,
        session=session,
        kind="wrote",
        at=transcript.modified,
        file=transcript,
        project=transcript.project,
    )


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)
