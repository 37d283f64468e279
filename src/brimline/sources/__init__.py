"""The agents that we know, each a folder with its paths, its wire types and its events."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from brimline.errors import UnknownAgent

if TYPE_CHECKING:
    from brimline.sources.base import Source

AGENTS: dict[str, str] = {
    "claude": "Claude Code",
    "codex": "Codex",
    "pi": "Pi",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
}
"""Our name of an agent, and its own."""


def source(agent: str) -> "Source":
    """The source of an agent by its name; imported when it is asked for."""
    if agent not in AGENTS:
        raise UnknownAgent(agent, AGENTS)
    return cast("Source", import_module(f"brimline.sources.{agent}").SOURCE)
