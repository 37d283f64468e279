"""The agents that we know, each a folder with its paths, its wire types and its events."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from brimline.errors import UnknownAgent

if TYPE_CHECKING:
    from brimline.transcripts.source import Places, Source

AGENTS: dict[str, str] = {
    "claude": "Claude Code",
    "codex": "Codex",
    "pi": "Pi",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
}
"""Our name of an agent, and its own."""


SIGNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "claude": (("CLAUDE_CONFIG_DIR",), (".claude", ".config/claude")),
    "codex": (("CODEX_HOME",), (".codex",)),
    "pi": (("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"), (".pi",)),
    "gemini": (("GEMINI_CLI_HOME",), (".gemini",)),
    "opencode": (("XDG_DATA_HOME", "OPENCODE_DB"), (".local/share/opencode",)),
}
"""What tells that an agent may be here: a variable that moves its files, or a folder in home."""


def present(places: "Places") -> list[str]:
    """The agents that may have files here; the others need not even be imported."""
    return [
        agent
        for agent, (variables, folders) in SIGNS.items()
        if any(places.env.get(name) for name in variables)
        or any((places.home / folder).exists() for folder in folders)
    ]


def known(agent: str) -> str:
    """The name, if it is an agent's; UnknownAgent otherwise."""
    if agent not in AGENTS:
        raise UnknownAgent(agent, AGENTS)
    return agent


def source(agent: str) -> "Source":
    """The source of an agent by its name; imported when it is asked for."""
    return cast("Source", import_module(f"brimline.agents.{known(agent)}.source").SOURCE)
