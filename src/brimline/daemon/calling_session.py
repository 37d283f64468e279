"""The session that a process belongs to: of its client, its environment, its pane, its folder."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from brimline.agents import all_agents
from brimline.agents.observations import Pane
from brimline.daemon.hook_requests.contacts import SessionContacts
from brimline.daemon.process_tree import find_ancestors, find_folder, iter_environments

SESSION_VARIABLE = "BRIMLINE_SESSION"

FoundBy: TypeAlias = Literal["process", "environment", "pane", "folder"]


class CallingProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that asks for its session; `named` is the session that its environment names.

    `agent` is the agent that runs it, None if unknown, `folder` the one in which it works.
    """

    pid: int
    named: str | None = None
    agent: str | None = None
    pane: Pane | None = None
    folder: str | None = None


def session_variables() -> dict[str, str | None]:
    """Return the variables that name a session, and their agents; None for one of any agent."""
    found: dict[str, str | None] = {SESSION_VARIABLE: None}
    for agent in all_agents():
        found.update(dict.fromkeys(agent.capabilities.session_id_variables, agent.name))
    return found


def find_by_process(caller: CallingProcess, contacts: SessionContacts) -> list[str]:
    """Return the sessions that the nearest client above a process runs.

    Its environment decides between several. It also wins if it names a session without hooks, of
    an agent inside that client; the id that a client gave to a process before a clear, or that the
    client itself was started with, does not count. Blocks while it reads other processes.
    """
    for process in find_ancestors(caller.pid):
        if sessions := contacts.in_process(process):
            break
    else:
        return []
    named = caller.named
    if named is None or named in sessions:
        return [named] if named else sessions
    if named in contacts:
        return sessions
    outer = [*iter_environments(process.pid, session_variables())][:1]
    return sessions if any(named in each.values() for each in outer) else [named]


def complete_caller(pid: int, env: Mapping[str, str]) -> CallingProcess:
    """Return what is known of a process by its id and some of its variables.

    Blocks while it reads other processes.
    """
    above = list(iter_environments(pid, session_variables()))
    own = {**(above[0] if above else {}), **env}
    named = {name: own[name] for name in session_variables() if own.get(name)}
    nearest = min(
        named, key=lambda name: sum(each.get(name) == own[name] for each in above), default=None
    )
    return CallingProcess(
        pid=pid, named=named[nearest] if nearest else None, folder=find_folder(pid)
    )
