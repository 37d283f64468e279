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

from brimline.agents import present, source
from brimline.bounded_reads import SHARED_READS, ReadThreads
from brimline.monitor.monitor import Monitor
from brimline.observations import Observation
from brimline.server.retry import RateLimitedLog, is_transient
from brimline.survey.files import find_transcripts
from brimline.transcripts.source import Places, Transcript

if TYPE_CHECKING:
    from watchfiles.main import FileChange

STEP, TOGETHER = 100, 400
"""Milliseconds: how often the system is asked for changes, and how long they are collected."""

LOOK_EVERY = 5.0
"""So many seconds until it is looked for folders that were not there: an agent's first session."""

POLLED = 2.0
"""Seconds between two looks through all folders, where they cannot be watched."""

WATCH_AGAIN = 60.0
"""After so many seconds of that it is tried to watch them again."""

HEAR_AGAIN = 5.0
"""So many seconds until it is tried again to hear of a transcript, unless it changes before."""

Key: TypeAlias = tuple[str, str | None, str]
"""A transcript: its path, session and thread."""

Version: TypeAlias = tuple[int, float]
"""Its size, and when it was last written."""


class TranscriptWatcher:
    """Tells a monitor of every transcript that is written, from those of late on."""

    def __init__(
        self,
        places: Places,
        monitor: Monitor,
        since: float,
        look_every: float = LOOK_EVERY,
        threads: ReadThreads = SHARED_READS,
    ) -> None:
        self._places = places
        self._threads = threads
        self._monitor = monitor
        self._since = since
        self._every = look_every
        self._known: dict[Key, Version] = {}
        self._failed: dict[Key, tuple[Version, float]] = {}
        self._files: dict[str, Transcript] = {}
        self._watch_at = 0.0
        self._troubles = RateLimitedLog()

    async def run(self) -> None:
        """Follow until it is cancelled."""
        while True:
            folders = await self._threads.run(self._folders)
            await self._look(set(folders.values()))
            is_first = True
            async for paths in self._changes(folders):
                if is_first:  # nobody told of what was written before the watch began
                    await self._look(set(folders.values()))
                    is_first = False
                await self._changed(folders, paths)
                await self._again(folders)

    def _folders(self) -> dict[str, str]:
        """Whose folders are there; one inside another is watched with it."""
        found = {
            os.path.realpath(folder): agent
            for agent in present(self._places)
            for folder in source(agent).folders(self._places)
            if Path(folder).is_dir()
        }
        return {path: agent for path, agent in found.items() if not _inside(path, found)}

    async def _changes(self, folders: Iterable[str]) -> AsyncIterator[set[str]]:
        """What changed, until it is time to look for new folders, or through all of them."""
        watched, stop = sorted(folders), threading.Event()
        if not watched or time.monotonic() < self._watch_at:
            await asyncio.sleep(min(POLLED, self._every) if watched else self._every)
            return
        end = time.monotonic() + self._every
        try:
            changes = self._watch(watched, stop)
            while (found := await asyncio.to_thread(next, changes, None)) is not None:
                yield {path for _, path in found}
                if time.monotonic() > end:
                    folders = await self._threads.run(self._folders)
                    if set(folders) != set(watched):
                        return
        except Exception as error:  # noqa: BLE001 - no more watches, a name that is no UTF-8
            what = f"transcripts are looked through every {POLLED:g} s"
            self._troubles.warn(what, error, foreseen=True)
            self._watch_at = time.monotonic() + WATCH_AGAIN
        finally:
            stop.set()

    def _watch(self, folders: list[str], stop: threading.Event) -> "Iterator[set[FileChange]]":
        from watchfiles import watch

        return watch(
            *folders,
            watch_filter=None,
            step=STEP,
            debounce=TOGETHER,
            stop_event=stop,
            rust_timeout=int(self._every * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,  # its own looks would end by a name that is no UTF-8, too
        )

    async def _changed(self, folders: dict[str, str], paths: set[str]) -> None:
        """Hear of files that are known at once; another may be a new one, or a database's."""
        for path in paths & self._files.keys():
            await self._file(path)
        others = paths - self._files.keys()
        agents = {agent for path in others for top, agent in folders.items() if _below(path, top)}
        await self._look(agents)

    async def _again(self, folders: dict[str, str]) -> None:
        """Hear again of those that could not be heard of a while ago."""
        now = time.monotonic()
        due = [key for key, (_, at) in self._failed.items() if at <= now]
        for key in due:
            del self._failed[key]
        if due:
            await self._look(set(folders.values()))

    async def _look(self, agents: set[str]) -> None:
        found = [each for agent in sorted(agents) for each in await self._transcripts(agent)]
        for transcript in sorted(found, key=lambda each: each.modified):
            await self._hear(transcript)

    async def _transcripts(self, agent: str) -> list[Transcript]:
        """All of an agent; none for now where they cannot be looked for."""
        try:
            return await self._threads.run(partial(find_transcripts, self._places, [agent]))
        except Exception as error:  # noqa: BLE001 - the other agents' are followed all the same
            self._troubles.warn(f"the transcripts of {agent} are not followed for now", error)
            return []

    async def _file(self, path: str) -> None:
        known = self._files[path]
        try:
            status = await self._threads.run(partial(os.stat, path))
        except OSError:
            return
        size, modified = status.st_size, status.st_mtime
        await self._hear(msgspec.structs.replace(known, size=size, modified=modified))

    async def _hear(self, found: Transcript) -> None:
        if found.modified < self._since or found.session is None:
            return
        key, now = (found.path, found.session, found.thread), (found.size, found.modified)
        if self._known.get(key) == now or self._is_put_off(key, now):
            return
        if found.size:
            real_path = await self._threads.run(partial(os.path.realpath, found.path))
            self._files[real_path] = found
        try:
            await self._monitor.observe(_heard(found, found.session))
        except Exception as error:  # noqa: BLE001 - its own fault or the store's: others go on
            self._troubles.warn(f"what {found.path} tells is not kept yet", error)
            if is_transient(error):
                self._failed[key] = now, time.monotonic() + HEAR_AGAIN
            else:  # it is heard of again when it changes
                self._known[key] = now
        else:
            self._failed.pop(key, None)
            if self._monitor.is_behind(found.session):
                self._failed[key] = now, time.monotonic() + HEAR_AGAIN
            else:
                self._known[key] = now

    def _is_put_off(self, key: Key, version: Version) -> bool:
        """Whether it is as it was when it could not be heard of, and that was just now."""
        failed, until = self._failed.get(key, (None, 0.0))
        return failed == version and time.monotonic() < until


def _heard(found: Transcript, session: str) -> Observation:
    return Observation(
        id=f"{found.path} {found.thread} {found.size} {found.modified}",
        agent=found.agent,
        session=session,
        what="wrote",
        at=found.modified,
        file=found,
        project=found.project,
    )


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(_below(path, other) for other in folders)
