"""Inside which agent a command runs, as its environment and the processes above it tell."""

import os
from collections.abc import Mapping

import msgspec

from brimline.agents import all_agents
from brimline.daemon.process_tree import iter_environments

SESSION_VARIABLE = "BRIMLINE_SESSION"


class CurrentSession(msgspec.Struct, frozen=True):
    """The agent and session that a command runs in; unknown is None."""

    agent: str | None
    session: str | None


def find_current_session(env: Mapping[str, str]) -> CurrentSession | None:
    """Return the nearest agent: of several, the one that the fewest ancestors have a variable of.

    If that is equal, it is the first in the registry's order.
    """
    sessions: dict[str, str | None] = {SESSION_VARIABLE: None}
    markers: dict[str, str | None] = {}
    for agent in all_agents():
        sessions.update(dict.fromkeys(agent.capabilities.session_id_variables, agent.name))
        markers.update(dict.fromkeys(agent.capabilities.marker_variables, agent.name))
    agents = {name: agent for name, agent in (sessions | markers).items() if env.get(name)}
    if not agents:
        return None
    above = list(iter_environments(os.getppid(), agents)) if len(set(agents.values())) > 1 else []
    nearest = min(agents, key=lambda name: sum(each.get(name) == env[name] for each in above))
    return CurrentSession(agents[nearest], env[nearest] if nearest in sessions else None)
