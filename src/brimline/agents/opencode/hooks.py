"""opencode's hooks, which are our own plugin's (extension.js).

It tells before each request; the first one after a compaction brings the document, as what is told
then finds the compaction in the database. A turn's end and a compaction's are told beside, and
cannot be answered.
"""

import msgspec

from brimline.agents.extension_hooks import ExtensionInput, decode_extension_input, reported_window
from brimline.agents.hook_adapter import EVENTS, STARTS, HookRequest, StandardHooks
from brimline.observations import Observation, Reply
from brimline.transcripts.source import Transcript

STANDARD_HOOKS = StandardHooks(EVENTS, STARTS, unanswerable=frozenset({"PostCompact", "Stop"}))


class OpencodeHooks:
    """opencode's hooks."""

    def observe(self, request: HookRequest, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; the session is in a database with all the others."""
        hook_input = decode_extension_input(request)
        observation = STANDARD_HOOKS.observe_main(request, hook_input, at, late)
        if observation is None:
            return None
        file, events = _session_transcript(hook_input, at), reported_window(hook_input)
        return msgspec.structs.replace(observation, transcript=None, file=file, events=events)

    def may_read_files(self, request: HookRequest) -> bool:
        return False

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply: what is to be read goes into the request that waits for it."""
        return STANDARD_HOOKS.encode_reply(request, reply)


def _session_transcript(hook_input: ExtensionInput, at: float) -> Transcript | None:
    """The session in the database, as of now."""
    if hook_input.transcript_path is None:
        return None
    session, project = hook_input.session_id, hook_input.cwd
    return Transcript("opencode", hook_input.transcript_path, at, 0, session, project=project)


HOOKS = OpencodeHooks()
