"""The session that spawned another, found in the environments of a hook's ancestors.

An agent gives its session's id to every process that it runs, in a variable. A session that was
started by such a process has that id in the environment that its own processes started with.
"""

from brimline.agents import all_agents
from brimline.daemon.process_tree import iter_environments


def find_spawner(pid: int, session: str) -> str | None:
    """Return the session that spawned the one whose hook a process ran; None if there is none.

    If a process has the ids of two, the one that no process further up has is the nearer. Blocks
    while it reads other processes.
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
