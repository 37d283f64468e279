"""Where a hook was run from: the session that spawned its own, and the tmux pane.

An agent tells its session's id to every process that it runs, in a variable; a session that was
started by such a process has the id in the environment that its own processes began with.
"""

import re
from collections.abc import Mapping

from brimline.agents import all_agents
from brimline.observations import Pane
from brimline.process_tree import iter_environments

_PANE = re.compile(r"%[0-9]+", re.ASCII)


def spawner(pid: int, session: str) -> str | None:
    """The session that spawned the one whose hook a process ran; None where none is found.

    Of two that a process was told of, the one that is not known further up is the nearer. It reads
    other processes, which may take some time.
    """
    variables = [name for agent in all_agents() if (name := agent.capabilities.spawn_variable)]
    near: list[str] = []
    for told in iter_environments(pid, variables):
        sessions = [told[name] for name in variables if _is_text(told.get(name))]
        known = [other for other in sessions if other != session]
        gone = [other for other in near if other not in known]
        if gone:
            return gone[0]
        near = near or known
    return near[0] if near else None


def _is_text(told: str | None) -> bool:
    """Whether it can be a session's id: anybody may set a variable to what is no text."""
    return bool(told) and told.isprintable()


def pane_of(env: Mapping[str, str]) -> Pane | None:
    """The tmux pane that a hook's environment tells of; None where it is in none."""
    pane = env.get("TMUX_PANE")
    if pane is None or not _PANE.fullmatch(pane):
        return None
    socket = env.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
    return Pane(socket, pane) if socket else None
