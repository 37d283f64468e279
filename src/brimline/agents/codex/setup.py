"""Codex: hooks.json, which holds hooks and nothing else.

It reads plain JSON and gives the command to a shell. A hook is not run before the user has trusted
it, and not any more when it has changed.
"""

from pathlib import Path

from brimline.agents.codex.paths import home
from brimline.agents.install_spec import InstallSpec
from brimline.jsonc import Dialect
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


def _user_file(places: Places) -> Path:
    return home(places) / "hooks.json"


INSTALL_SPEC = InstallSpec(
    agent="codex",
    user_file=_user_file,
    project_file=".codex/hooks.json",
    dialect=Dialect(),
    events=EVENTS,
    next_step="Codex runs hooks once you trust them: start codex, type /hooks, and trust them.",
)
