"""Otter's hooks are in `hooks.json`."""

from pathlib import Path

from brimline.agents.install_spec import InstallSpec
from brimline.agents.transcripts.source import Places


def _user_file(places: Places) -> Path:
    return places.folder("OTTER_HOME", ".otter") / "hooks.json"


INSTALL_SPEC = InstallSpec(
    agent="otter",
    user_file=_user_file,
    project_file=".otter/hooks.json",
    events=("SessionStart", "PostToolUse", "Stop"),
)
