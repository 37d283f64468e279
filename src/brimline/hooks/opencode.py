"""opencode's hooks, which are our own plugin's (setup/extensions/opencode.js).

It tells before each request; the first one after a compaction brings the document, as what is told
then finds the compaction in the database. A turn's end and a compaction's are told beside, and
cannot be answered.
"""

import msgspec

from brimline.hooks.dialect import EVENTS, STARTS, Dialect
from brimline.hooks.extension import ExtensionInput, decoded, reported
from brimline.hooks.protocol import Request
from brimline.observations import Observation, Reply
from brimline.transcripts.source import Transcript

DIALECT = Dialect(EVENTS, STARTS, mute=frozenset({"PostCompact", "Stop"}))


class Opencode:
    """opencode's hooks."""

    def heard(self, request: Request, at: float, late: bool = False) -> Observation | None:
        """What a hook tells; the session is in a database with all the others."""
        told = decoded(request)
        heard = DIALECT.main(request, told, at, late)
        if heard is None:
            return None
        file, events = _file(told, at), reported(told)
        return msgspec.structs.replace(heard, transcript=None, file=file, events=events)

    def answer(self, request: Request, reply: Reply) -> bytes:
        """A reply: what is to be read goes into the request that waits for it."""
        return DIALECT.answer(request, reply)


def _file(told: ExtensionInput, at: float) -> Transcript | None:
    """The session in the database, as of now."""
    if told.transcript_path is None:
        return None
    session, project = told.session_id, told.cwd
    return Transcript("opencode", told.transcript_path, at, 0, session, project=project)


HOOKS = Opencode()
