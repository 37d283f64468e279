"""The monitor's view of this machine: client settings and installed hooks."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from brimline.agents import agent_names, source
from brimline.agents.observations import EnvironmentVariables
from brimline.agents.transcripts.source import Places
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings
from brimline.daemon.tmux.pane import find_pane
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.files.bounded_reads import READ_WAIT_S, SHARED_READS, CachedReads
from brimline.files.project_folder import resolve_path
from brimline.handoff.pins import Pin, PinFile, make_pin
from brimline.hooks.client import exchange
from brimline.install.manifest import MANIFEST_NAME, load_manifest
from brimline.monitor.machine_environment import MonitorEnvironment
from brimline.monitor.session_state import SessionState
from brimline.store.rows import SignalRow

LOGGER = logging.getLogger("brimline.pins")

CHANNEL_WAIT_S = 1.0  # for tmux, to find the pane of an agent without hooks

SettingsKey: TypeAlias = tuple[str, str | None, EnvironmentVariables | None]
_HooksKey: TypeAlias = tuple[str, str | None]

# Variables that change where an agent's client compacts or where its settings are; the daemon's own
# differ.
CLIENT_ENV_VARS = frozenset(name.decode() for name in exchange.SETTINGS_VARIABLES)


class LocalEnvironment(MonitorEnvironment):
    """Reads settings files in threads, and again after a minute."""

    def __init__(
        self,
        places: Places,
        state: Path,
        on_signal: Callable[[SignalRow, SessionState], None],
        suppresses: Callable[[str], bool],
    ) -> None:
        self._places, self._state = places, state
        self._pins = PinFile(state)
        self._on_signal, self._suppresses = on_signal, suppresses
        self._settings = CachedReads(settings_reader(places), NO_CLIENT_SETTINGS)
        self._hooked: CachedReads[_HooksKey, float | None] = CachedReads(
            lambda key: hooks_installed_at(state, *key), None
        )

    async def refresh(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> None:
        """Read files again after a minute; wait only as long as a hook may take."""
        await self._settings.refresh((agent, project, env))
        await self._hooked.refresh((agent, project))

    def settings(
        self, agent: str, project: str | None, env: EnvironmentVariables | None
    ) -> ClientSettings:
        """Return a client's settings for these variables; None: the daemon's own."""
        return self._settings.get((agent, project, env))

    def hooks_installed_at(self, agent: str, project: str | None) -> float | None:
        return self._hooked.get((agent, project))

    async def can_deliver(self, agent: str, project: str | None, is_document: bool) -> bool:
        """Look at the files now: `brimline setup` may just have run. True if that takes too long.

        Messages can also be typed into a pane.
        """
        read = partial(_can_deliver, self._places, self._state, agent, project, is_document)
        with suppress(TimeoutError):
            return await SHARED_READS.run(read, CHANNEL_WAIT_S)
        return True

    def is_muted(self, session: str) -> bool:
        """Whether a session is being cleared, and its messages have to wait."""
        return self._suppresses(session)

    async def pins_of(self, session: str, project: str | None) -> Sequence[Pin] | None:
        try:
            read = partial(self._pins.load_for, session, project)
            return await SHARED_READS.run(read, READ_WAIT_S)
        except TimeoutError:
            return None
        except InvalidRequest as error:
            LOGGER.warning("no pins are injected: %s", error)
            return ()

    async def add_pins(self, session: str, texts: Sequence[str], at: float) -> Sequence[str]:
        problems: list[str] = []
        for text in texts:
            add = partial(self._add_pin, session, text, at)
            try:
                await SHARED_READS.run(add, READ_WAIT_S)
            except TimeoutError:
                pass  # it goes on in its thread
            except InvalidRequest as error:
                problems.append(error.error)
        return problems

    def _add_pin(self, session: str, text: str, at: float) -> None:
        self._pins.add(make_pin(text, at, "user", session=session))

    async def continue_pins(self, session: str, other: str) -> None:
        move = partial(self._pins.continue_session, session, other)
        try:
            await SHARED_READS.run(move, READ_WAIT_S)
        except TimeoutError:
            pass  # it goes on in its thread
        except InvalidRequest as error:
            LOGGER.warning("pins of a cleared session stay with it: %s", error)

    def on_signal(self, signal: SignalRow, state: SessionState) -> None:
        self._on_signal(signal, state)


def _can_deliver(
    places: Places, state: Path, agent: str, project: str | None, is_document: bool
) -> bool:
    if agent not in agent_names():
        return False
    if hooks_installed_at(state, agent, project) is not None:
        return True
    return not is_document and find_pane(agent, project, places.env, os.getuid()) is not None


def settings_reader(places: Places) -> Callable[[SettingsKey], ClientSettings]:
    """Return a function that reads a client's settings files; it blocks on them."""
    others = {name: value for name, value in places.env.items() if name not in CLIENT_ENV_VARS}

    def read(key: SettingsKey) -> ClientSettings:
        agent, project, env = key
        if agent not in agent_names():
            return NO_CLIENT_SETTINGS
        variables = places.env if env is None else {**others, **dict(env)}
        return source(agent).settings(Places(home=places.home, env=variables), project)

    return read


def hooks_installed_at(state: Path, agent: str, project: str | None) -> float | None:
    """Return when hooks were installed for an agent in a project; blocks on files."""
    try:
        files = load_manifest(state)
        since = os.stat(state / MANIFEST_NAME).st_mtime
    except (InvalidSettings, OSError):
        return None
    root = resolve_path(project) if project else None
    is_installed = any(
        entry.agent == agent and (entry.scope == "user" or str(Path(path).parent.parent) == root)
        for path, entry in files.items()
    )
    return since if is_installed else None
