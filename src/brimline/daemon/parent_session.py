"""The parent of a session: named by its project's settings, or the session that spawned it.

`install/setup_file.py` writes the setting.
"""

from pathlib import Path
from typing import TypeAlias

from brimline.agents import all_agents
from brimline.agents.transcripts.source import Places
from brimline.daemon.process_tree import iter_environments
from brimline.errors import InvalidSettings
from brimline.files.bounded_reads import CachedReads
from brimline.settings import load as load_settings

ParentSessions: TypeAlias = CachedReads[str | None, str | None]  # by project


def parent_sessions(places: Places) -> ParentSessions:
    """Return the parent session of each project, as its settings name it."""

    def read(project: str | None) -> str | None:
        try:
            return load_settings(places.env, places.home, Path(project or "/")).parent
        except InvalidSettings:
            return None

    return CachedReads(read, None)


def find_spawner(pid: int, session: str) -> str | None:
    """Return the session that spawned the one whose hook a process ran; None if there is none.

    An agent gives its session's id to every process that it runs, in a variable. A session that was
    started by such a process has that id in the environment that its own processes started with. If
    a process has the ids of two, the one that no process further up has is the nearer. Blocks while
    it reads other processes.
    """
    by_agent = [agent.capabilities.spawn_variables for agent in all_agents()]
    nearest: list[str] = []
    for environment in iter_environments(pid, [name for names in by_agent for name in names]):
        ids = [next(filter(None, map(environment.get, names)), "") for names in by_agent]
        # A variable may be set to anything; what is not printable is no id.
        spawners = [id for id in ids if id and id.isprintable() and id != session]
        inner = [id for id in nearest if id not in spawners]
        if inner:
            return inner[0]
        nearest = nearest or spawners
    return nearest[0] if nearest else None
