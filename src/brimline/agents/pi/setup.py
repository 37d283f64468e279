"""Pi: an extension, which names its events as the other clients name their hooks.

Before 0.87 Pi has no event for the end of a turn: messages then wait for the next prompt.
"""

from pathlib import Path

from brimline.agents.install_spec import InstallSpec
from brimline.agents.pi.paths import agent_folder
from brimline.agents.transcripts.source import Places


def _user_file(places: Places) -> Path:
    return agent_folder(places) / "extensions" / "brimline.js"


INSTALL_SPEC = InstallSpec(
    agent="pi",
    user_file=_user_file,
    project_file=".pi/extensions/brimline.js",
    is_extension=True,
    next_step="Open sessions load it with /reload.",
)
