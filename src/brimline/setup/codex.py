"""Codex: hooks.json, which holds hooks and nothing else.

It reads plain JSON and gives the command to a shell. A hook is not run before the user has trusted
it, and not any more when it has changed.
"""

from pathlib import Path

from brimline.agents.codex.paths import home
from brimline.jsonc import Dialect
from brimline.setup.recipe import Recipe
from brimline.transcripts.source import Places

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Stop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)


def _file(places: Places) -> Path:
    return home(places) / "hooks.json"


RECIPE = Recipe(
    agent="codex",
    user=_file,
    project=".codex/hooks.json",
    dialect=Dialect(),
    events=EVENTS,
    then="Codex runs no hook before you trust it: start codex, type /hooks, and trust ours.",
)
