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
        told = decode_extension_input(request)
        heard = STANDARD_HOOKS.observe_main(request, told, at, late)
        if heard is None:
            return None
        file, events = _session_transcript(told, at), reported_window(told)
        return msgspec.structs.replace(heard, transcript=None, file=file, events=events)

    def may_read_files(self, request: HookRequest) -> bool:
        return False

    def encode_reply(self, request: HookRequest, reply: Reply) -> bytes:
        """A reply: what is to be read goes into the request that waits for it."""
        return STANDARD_HOOKS.encode_reply(request, reply)


def _session_transcript(told: ExtensionInput, at: float) -> Transcript | None:
    """The session in the database, as of now."""
    if told.transcript_path is None:
        return None
    session, project = told.session_id, told.cwd
    return Transcript("opencode", told.transcript_path, at, 0, session, project=project)


HOOKS = OpencodeHooks()
