"""The agents' transcripts, followed beside the hooks: what has no hooks is watched too."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec

from brimline.monitor.heard import Heard
from brimline.monitor.monitor import Monitor
from brimline.sources import present, source
from brimline.sources.base import Places, Transcript
from brimline.survey.files import transcripts

LOGGER = logging.getLogger("brimline.server")
STEP, TOGETHER = 100, 400
"""Milliseconds: how often the system is asked for changes, and how long they are collected."""

LOOK_EVERY = 5.0
"""So many seconds until it is looked for folders that were not there: an agent's first session."""

POLLED = 2_000
"""How often, in milliseconds, folders are looked through where the system watches no more."""


class Following:
    """Tells a monitor of every transcript that is written, from those of late on."""

    def __init__(
        self, places: Places, monitor: Monitor, since: float, look_every: float = LOOK_EVERY
    ) -> None:
        self._places = places
        self._monitor = monitor
        self._since = since
        self._every = look_every
        self._known: dict[tuple[str, str | None, str], tuple[int, float]] = {}
        self._files: dict[str, Transcript] = {}
        self._polled = False

    async def run(self) -> None:
        """Follow until it is cancelled."""
        while True:
            folders = self._folders()
            await self._look(set(folders.values()))
            async for paths in self._changes(folders):
                await self._changed(folders, paths)

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
        """What changed, until it is time to look for new folders."""
        from watchfiles import watch

        watched, stop = sorted(folders), threading.Event()
        if not watched:
            await asyncio.sleep(self._every)
            return
        changes = watch(
            *watched,
            watch_filter=None,
            step=STEP,
            debounce=TOGETHER,
            stop_event=stop,
            rust_timeout=int(self._every * 1_000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=self._polled,
            poll_delay_ms=POLLED,
        )
        end = time.monotonic() + self._every
        try:
            while (found := await asyncio.to_thread(next, changes, None)) is not None:
                yield {path for _, path in found}
                if time.monotonic() > end and set(self._folders()) != set(watched):
                    return
        except OSError as error:  # no more watches to be had: a limit of the system's
            LOGGER.warning("transcripts are looked through every 2 s: %s", error)
            self._polled = True
        finally:
            stop.set()

    async def _changed(self, folders: dict[str, str], paths: set[str]) -> None:
        """Hear of files that are known at once; another may be a new one, or a database's."""
        for path in paths & self._files.keys():
            await self._file(path)
        others = paths - self._files.keys()
        agents = {agent for path in others for top, agent in folders.items() if _below(path, top)}
        await self._look(agents)

    async def _look(self, agents: set[str]) -> None:
        if agents:
            found = await asyncio.to_thread(lambda: transcripts(self._places, sorted(agents)))
            for transcript in sorted(found, key=lambda each: each.modified):
                await self._hear(transcript)

    async def _file(self, path: str) -> None:
        known = self._files[path]
        try:
            status = os.stat(path)
        except OSError:
            return
        size, modified = status.st_size, status.st_mtime
        await self._hear(msgspec.structs.replace(known, size=size, modified=modified))

    async def _hear(self, found: Transcript) -> None:
        if found.modified < self._since or found.session is None:
            return
        key, now = (found.path, found.session, found.thread), (found.size, found.modified)
        if self._known.get(key) == now:
            return
        self._known[key] = now
        if found.size:
            self._files[os.path.realpath(found.path)] = found
        await self._monitor.hear(
            Heard(
                id=f"{found.path} {found.thread} {found.size} {found.modified}",
                agent=found.agent,
                session=found.session,
                what="wrote",
                at=found.modified,
                file=found,
                project=found.project,
            )
        )


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(_below(path, other) for other in folders)
