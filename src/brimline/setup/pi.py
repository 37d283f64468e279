"""Pi: an extension, which names what happens as the other clients name their hooks.

Before 0.87 nothing is told as a turn ends: what was sent then waits for the next prompt.
"""

from pathlib import Path

from brimline.agents.pi.paths import agent_folder
from brimline.setup.extension import EVENTS
from brimline.setup.recipe import Recipe
from brimline.transcripts.source import Places


def _file(places: Places) -> Path:
    return agent_folder(places) / "extensions" / "brimline.js"


RECIPE = Recipe(
    agent="pi",
    user=_file,
    project=".pi/extensions/brimline.js",
    events=EVENTS,
    extension=True,
    then="Sessions that are open take it up with /reload.",
)
