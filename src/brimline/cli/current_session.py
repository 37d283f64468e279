"""Inside which agent a command runs, as its environment and the processes above it tell."""

import os
from collections.abc import Mapping

import msgspec

from brimline.process_tree import upwards

SESSION = {
    "BRIMLINE_SESSION": None,
    "CLAUDE_CODE_SESSION_ID": "claude",
    "CODEX_SESSION_ID": "codex",
    "CODEX_THREAD_ID": "codex",
    "PI_SESSION_ID": "pi",
    "OPENCODE_SESSION_ID": "opencode",
}
"""Where an agent's own commands find the id of its session, and whose that is."""

MARKS = {
    "CLAUDECODE": "claude",
    "GEMINI_CLI": "gemini",
    "PI_CODING_AGENT": "pi",
    "OPENCODE": "opencode",
}
"""What agents tell their commands beside it: Gemini CLI tells no id at all."""


class Inside(msgspec.Struct, frozen=True):
    """The agent that a command runs in; what it does not tell is None."""

    agent: str | None
    session: str | None


def inside(env: Mapping[str, str]) -> Inside | None:
    """The nearest agent: of several, the one that the fewest processes above were told of.

    Where that cannot be told, the first of our own order.
    """
    agents = {name: agent for name, agent in (*SESSION.items(), *MARKS.items()) if env.get(name)}
    if not agents:
        return None
    above = list(upwards(os.getppid(), agents)) if len(set(agents.values())) > 1 else []
    nearest = min(agents, key=lambda name: sum(each.get(name) == env[name] for each in above))
    return Inside(agents[nearest], env[nearest] if nearest in SESSION else None)
