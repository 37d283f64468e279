"""The ledgers of a session, by its files."""

from typing import BinaryIO

from brimline.agents.transcripts.source import Places
from brimline.errors import UnreadableTranscript
from brimline.sessions.files import SessionFiles
from brimline.sessions.ledger.session_ledger import SessionLedger, read_ledger

NO_TRANSCRIPT = "this session has no transcript on this machine"


def read_ledgers(
    files: SessionFiles, places: Places, file: BinaryIO | None = None
) -> list[SessionLedger]:
    """Return the ledger of each transcript with a call; raises UnreadableTranscript if none has.

    `file` is read if the transcript has no path.
    """
    ledgers = [read_ledger(transcript, places, file) for transcript in files.transcripts]
    found = [each for each in ledgers if each.threads]
    if not found:
        path = files.transcripts[0].path
        raise UnreadableTranscript(path, "no model call in it", "It is explained from then on.")
    return found
