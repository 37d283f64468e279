"""opencode's hooks, which are our own plugin's (extension.js), with the events of other clients.

The plugin reports before each request. After a compaction the first such report gets the handoff,
since the compaction is then in the database. The ends of turns and compactions are reported too,
and cannot be answered.

opencode loads plugins only after it has downloaded a package of its own, which it does once, at its
first start with a network. Without it, 1.18.34 waits a minute or more at each start with a plugin.
"""

from pathlib import Path

import msgspec

from brimline.agents.hook_adapter import ExtensionHooks, HookRequest
from brimline.agents.install_spec import InstallSpec
from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Places, Transcript


class OpencodeHooks(ExtensionHooks):
    """The transcript of a hook is the database, which holds all sessions."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        observation = super().observe(request, at, late)
        if observation is None or observation.transcript is None:
            return observation
        session, project = observation.session, observation.project
        file = Transcript("opencode", observation.transcript, at, 0, session, project=project)
        return msgspec.structs.replace(observation, transcript=None, file=file)


HOOKS = OpencodeHooks(unanswerable=frozenset({"PostCompact", "Stop"}))


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
