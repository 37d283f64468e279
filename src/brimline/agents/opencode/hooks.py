"""opencode's hooks, which are our own plugin's (extension.js).

The plugin reports before each request. After a compaction the first such report gets the handoff,
since the compaction is then in the database. The ends of turns and compactions are reported too,
and cannot be answered.
"""

import msgspec

from brimline.agents.hook_adapter import ExtensionHooks, HookRequest
from brimline.agents.observations import Observation
from brimline.agents.transcripts.source import Transcript


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
