"""opencode: a plugin, which names what happens as the other clients name their hooks.

opencode waits for a package of its own before it loads any plugin. It fetches that once, when it is
first started with a network.
"""

from pathlib import Path

from brimline.agents.install_spec import EXTENSION_EVENTS, InstallSpec
from brimline.transcripts.source import Places


def _user_file(places: Places) -> Path:
    folder = places.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    return folder / "plugins" / "brimline.js"


INSTALL_SPEC = InstallSpec(
    agent="opencode",
    user_file=_user_file,
    project_file=".opencode/plugins/brimline.js",
    events=EXTENSION_EVENTS,
    is_extension=True,
    next_step="Open sessions need a restart.",
)
