"""Codex: hooks.json, which holds hooks and nothing else.

It is plain JSON, and commands are run by a shell. Codex runs a hook only after the user has trusted
it, and asks again when it has changed.
"""

from pathlib import Path

from brimline.agents.codex.paths import home
from brimline.agents.install_spec import InstallSpec
from brimline.agents.transcripts.source import Places


def _user_file(places: Places) -> Path:
    return home(places) / "hooks.json"


INSTALL_SPEC = InstallSpec(
    agent="codex",
    user_file=_user_file,
    project_file=".codex/hooks.json",
    next_step="Codex runs hooks once you trust them: start codex, type /hooks, and trust them.",
)
