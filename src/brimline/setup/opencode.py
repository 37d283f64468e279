"""opencode: a plugin, which names what happens as the other clients name their hooks.

opencode waits for a package of its own before it loads any plugin. It fetches that once, when it is
first started with a network.
"""

from pathlib import Path

from brimline.setup.extension import EVENTS
from brimline.setup.recipe import Recipe
from brimline.transcripts.source import Places


def _file(places: Places) -> Path:
    folder = places.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    return folder / "plugins" / "brimline.js"


RECIPE = Recipe(
    agent="opencode",
    user=_file,
    project=".opencode/plugins/brimline.js",
    events=EVENTS,
    extension=True,
    then="Sessions that are open have to be started anew.",
)
