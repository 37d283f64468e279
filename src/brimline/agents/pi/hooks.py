"""Pi's hooks, which are our own extension's (extension.js), with the events of other clients.

The end of a compaction is answered: the extension puts the document before the next request.
Before 0.87 Pi has no event for the end of a turn: messages then wait for the next prompt.
"""

from pathlib import Path

from brimline.agents.compaction_setting import CompactionSetting
from brimline.agents.hook_adapter import STARTS, ExtensionHooks
from brimline.agents.install_spec import InstallSpec
from brimline.agents.pi.paths import agent_folder
from brimline.agents.transcripts.source import Places
from brimline.context.window import ResolveContext

HOOKS = ExtensionHooks(starts={**STARTS, "new": "cleared"}, unanswerable=frozenset())

INSTALL_SPEC = InstallSpec(
    agent="pi",
    user_file=lambda places: agent_folder(places) / "extensions" / "brimline.js",
    project_file=".pi/extensions/brimline.js",
    is_extension=True,
    next_step="Open sessions load it with /reload.",
)


def compaction_setting(
    places: Places, project: str | None, known: ResolveContext
) -> CompactionSetting:
    """What it keeps free below the window of every model."""
    return CompactionSetting(
        field="reserve",
        key=("compaction", "reserveTokens"),
        file=(Path(project, ".pi") if project else agent_folder(places)) / "settings.json",
        is_shared=project is not None,
        note="Pi keeps as many tokens free below the window of every model",
    )
