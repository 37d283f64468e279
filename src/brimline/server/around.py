"""What the monitor asks of this machine: the clients' settings, our hooks, and who is told."""

import os
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from brimline.errors import InvalidSettings
from brimline.hooks import asking
from brimline.monitor.heard import Environment
from brimline.monitor.surroundings import Surroundings
from brimline.monitor.watched import Watched
from brimline.settings import load as load_settings
from brimline.setup.kept import NAME, load
from brimline.sources import AGENTS, source
from brimline.sources.base import Places
from brimline.store.rows import SignalRow
from brimline.windows import UNTOLD, ClientSettings

MINUTE = 60.0

GOES_BY = frozenset(name.decode() for name in asking.GOES_BY)
"""Variables of an agent that tell where its client compacts, or where its settings are; the daemon
has others, or none."""


class Machine(Surroundings):
    """This machine; what it says is asked again when a minute has passed."""

    def __init__(
        self,
        places: Places,
        state: Path,
        told: Callable[[SignalRow, Watched], None],
        silent: Callable[[str], bool],
    ) -> None:
        self._told = told
        self._silent = silent
        self._settings = lru_cache(maxsize=256)(_settings_of(places))
        self._hooked = lru_cache(maxsize=256)(_hooked_of(state))

    def settings(self, agent: str, project: str | None, env: Environment | None) -> ClientSettings:
        """What the user told an agent's client, also by these variables; None: by the daemon's."""
        return self._settings(agent, project, env, time.time() // MINUTE)

    def hooked_since(self, agent: str, project: str | None) -> float | None:
        """When hooks were installed for an agent, or were last changed."""
        return self._hooked(agent, project, time.time() // MINUTE)

    def silent(self, session: str) -> bool:
        """Whether a session is being cleared: what waits for it waits until after that."""
        return self._silent(session)

    def signalled(self, signal: SignalRow, watched: Watched) -> None:
        """A signal is new."""
        self._told(signal, watched)


def parents(places: Places) -> Callable[[str | None], str | None]:
    """Who is told of a project's sessions, by the settings that are for it."""

    @lru_cache(maxsize=256)
    def read(project: str | None, minute: float) -> str | None:
        try:
            return load_settings(places.env, places.home, Path(project or "/")).parent
        except InvalidSettings:
            return None

    return lambda project: read(project, time.time() // MINUTE)


def _settings_of(
    places: Places,
) -> Callable[[str, str | None, Environment | None, float], ClientSettings]:
    others = {name: value for name, value in places.env.items() if name not in GOES_BY}

    def read(
        agent: str, project: str | None, env: Environment | None, minute: float
    ) -> ClientSettings:
        if agent not in AGENTS:
            return UNTOLD
        told = places.env if env is None else {**others, **dict(env)}
        return source(agent).settings(Places(home=places.home, env=told), project)

    return read


def _hooked_of(state: Path) -> Callable[[str, str | None, float], float | None]:
    def read(agent: str, project: str | None, minute: float) -> float | None:
        try:
            files = load(state)
            since = os.stat(state / NAME).st_mtime
        except (InvalidSettings, OSError):
            return None
        root = os.path.realpath(project) if project else None
        own = [
            path
            for path, kept in files.items()
            if kept.agent == agent
            and (kept.scope == "user" or str(Path(path).parent.parent) == root)
        ]
        return since if own else None

    return read
