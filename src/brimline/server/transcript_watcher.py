"""The agents' transcripts, followed beside the hooks: what has no hooks is watched too."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from brimline.agents import agents_present, source
from brimline.bounded_reads import SHARED_READS, ReadThreads
from brimline.monitor.monitor import Monitor
from brimline.observations import Observation
from brimline.server.retry import RateLimitedLog, is_transient
from brimline.survey.files import find_transcripts
from brimline.transcripts.source import Places, Transcript

if TYPE_CHECKING:
    from watchfiles.main import FileChange

WATCH_STEP_MS, DEBOUNCE_MS = 100, 400
"""Milliseconds: how often the system is asked for changes, and how long they are collected."""

FOLDER_CHECK_S = 5.0
"""So many seconds until it is looked for folders that were not there: an agent's first session."""

POLL_INTERVAL_S = 2.0
"""Seconds between two looks through all folders, where they cannot be watched."""

WATCH_RETRY_S = 60.0
"""After so many seconds of that it is tried to watch them again."""

OBSERVE_RETRY_S = 5.0
"""So many seconds until it is tried again to hear of a transcript, unless it changes before."""

TranscriptKey: TypeAlias = tuple[str, str | None, str]
"""A transcript: its path, session and thread."""

FileVersion: TypeAlias = tuple[int, float]
"""Its size, and when it was last written."""


class TranscriptWatcher:
    """Tells a monitor of every transcript that is written, from those of late on."""

    def __init__(
        self,
        places: Places,
        monitor: Monitor,
        since: float,
        folder_check_s: float = FOLDER_CHECK_S,
        threads: ReadThreads = SHARED_READS,
    ) -> None:
        self._places = places
        self._threads = threads
        self._monitor = monitor
        self._since = since
        self._folder_check_s = folder_check_s
        self._known: dict[TranscriptKey, FileVersion] = {}
        self._failed: dict[TranscriptKey, tuple[FileVersion, float]] = {}
        self._files: dict[str, Transcript] = {}
        self._watch_again_at = 0.0
        self._log = RateLimitedLog()

    async def run(self) -> None:
        """Follow until it is cancelled."""
        while True:
            folders = await self._threads.run(self._find_folders)
            await self._observe_agents(set(folders.values()))
            is_first = True
            async for paths in self._changes(folders):
                if is_first:  # nobody told of what was written before the watch began
                    await self._observe_agents(set(folders.values()))
                    is_first = False
                await self._process_changes(folders, paths)
                await self._retry_failed(folders)

    def _find_folders(self) -> dict[str, str]:
        """Whose folders are there; one inside another is watched with it."""
        found = {
            os.path.realpath(folder): agent
            for agent in agents_present(self._places)
            for folder in source(agent).folders(self._places)
            if Path(folder).is_dir()
        }
        return {path: agent for path, agent in found.items() if not _is_inside_any(path, found)}

    async def _changes(self, folders: Iterable[str]) -> AsyncIterator[set[str]]:
        """What changed, until it is time to look for new folders, or through all of them."""
        watched, stop = sorted(folders), threading.Event()
        if not watched or time.monotonic() < self._watch_again_at:
            await asyncio.sleep(
                min(POLL_INTERVAL_S, self._folder_check_s) if watched else self._folder_check_s
            )
            return
        end = time.monotonic() + self._folder_check_s
        try:
            changes = self._watch(watched, stop)
            while (found := await asyncio.to_thread(next, changes, None)) is not None:
                yield {path for _, path in found}
                if time.monotonic() > end:
                    folders = await self._threads.run(self._find_folders)
                    if set(folders) != set(watched):
                        return
        except Exception as error:  # noqa: BLE001 - no more watches, a name that is no UTF-8
            what = f"transcripts are looked through every {POLL_INTERVAL_S:g} s"
            self._log.warn(what, error, foreseen=True)
            self._watch_again_at = time.monotonic() + WATCH_RETRY_S
        finally:
            stop.set()

    def _watch(self, folders: list[str], stop: threading.Event) -> "Iterator[set[FileChange]]":
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
            force_polling=False,  # its own looks would end by a name that is no UTF-8, too
        )

    async def _process_changes(self, folders: dict[str, str], paths: set[str]) -> None:
        """Hear of files that are known at once; another may be a new one, or a database's."""
        for path in paths & self._files.keys():
            await self._observe_file(path)
        others = paths - self._files.keys()
        agents = {
            agent for path in others for top, agent in folders.items() if _is_below(path, top)
        }
        await self._observe_agents(agents)

    async def _retry_failed(self, folders: dict[str, str]) -> None:
        """Hear again of those that could not be heard of a while ago."""
        now = time.monotonic()
        due = [key for key, (_, at) in self._failed.items() if at <= now]
        for key in due:
            del self._failed[key]
        if due:
            await self._observe_agents(set(folders.values()))

    async def _observe_agents(self, agents: set[str]) -> None:
        found = [each for agent in sorted(agents) for each in await self._find_transcripts(agent)]
        for transcript in sorted(found, key=lambda each: each.modified):
            await self._observe(transcript)

    async def _find_transcripts(self, agent: str) -> list[Transcript]:
        """All of an agent; none for now where they cannot be looked for."""
        try:
            return await self._threads.run(partial(find_transcripts, self._places, [agent]))
        except Exception as error:  # noqa: BLE001 - the other agents' are followed all the same
            self._log.warn(f"the transcripts of {agent} are not followed for now", error)
            return []

    async def _observe_file(self, path: str) -> None:
        known = self._files[path]
        try:
            status = await self._threads.run(partial(os.stat, path))
        except OSError:
            return
        size, modified = status.st_size, status.st_mtime
        await self._observe(msgspec.structs.replace(known, size=size, modified=modified))

    async def _observe(self, transcript: Transcript) -> None:
        if transcript.modified < self._since or transcript.session is None:
            return
        key, now = (
            (transcript.path, transcript.session, transcript.thread),
            (transcript.size, transcript.modified),
        )
        if self._known.get(key) == now or self._is_postponed(key, now):
            return
        if transcript.size:
            real_path = await self._threads.run(partial(os.path.realpath, transcript.path))
            self._files[real_path] = transcript
        try:
            await self._monitor.observe(_observation(transcript, transcript.session))
        except Exception as error:  # noqa: BLE001 - its own fault or the store's: others go on
            self._log.warn(f"what {transcript.path} tells is not kept yet", error)
            if is_transient(error):
                self._failed[key] = now, time.monotonic() + OBSERVE_RETRY_S
            else:  # it is heard of again when it changes
                self._known[key] = now
        else:
            self._failed.pop(key, None)
            if self._monitor.is_behind(transcript.session):
                self._failed[key] = now, time.monotonic() + OBSERVE_RETRY_S
            else:
                self._known[key] = now

    def _is_postponed(self, key: TranscriptKey, version: FileVersion) -> bool:
        """Whether it is as it was when it could not be heard of, and that was just now."""
        failed, until = self._failed.get(key, (None, 0.0))
        return failed == version and time.monotonic() < until


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


def _is_inside_any(path: str, folders: Iterable[str]) -> bool:
    return any(_is_below(path, other) for other in folders)
