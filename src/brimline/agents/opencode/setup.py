"""opencode: a plugin, which names its events as the other clients name their hooks.

opencode loads plugins only after it has downloaded a package of its own, which it does once, at its
first start with a network.
"""

from pathlib import Path

from brimline.agents.install_spec import InstallSpec
from brimline.agents.transcripts.source import Places


def _user_file(places: Places) -> Path:
    folder = places.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    return folder / "plugins" / "brimline.js"


INSTALL_SPEC = InstallSpec(
    agent="opencode",
    user_file=_user_file,
    project_file=".opencode/plugins/brimline.js",
    is_extension=True,
    next_step="Open sessions need a restart.",
)
