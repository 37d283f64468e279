"""What stays after the compactions of sessions that compact again and again."""

import asyncio

from brimline.agents.transcripts.source import Places
from brimline.api.transcripts import find_session_files
from brimline.context.need import KeptPart
from brimline.files.bounded_dict import BoundedDict
from brimline.files.bounded_reads import ReadThreads
from brimline.sessions.ledger.kept_part import read_kept_part
from brimline.store.rows import SessionRow, ThreadRow

READ_WAIT_S = 2.0  # until then a view waits for it; the next one has it
MAX_SESSIONS = 100


class KeptPartReader:
    """Reads the transcript of a session once per cycle."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._threads = ReadThreads(1)
        self._reads = BoundedDict[tuple[str, int], asyncio.Future[KeptPart | None]](MAX_SESSIONS)

    async def read(self, row: SessionRow, main: ThreadRow) -> KeptPart | None:
        """Return the largest part of what the main thread kept; None if it is not read yet."""
        key = row.id, main.cycle
        if key not in self._reads:
            try:
                self._reads[key] = self._threads.start(lambda: self._read(row))
            except TimeoutError:
                return None
        pending = self._reads[key]
        await asyncio.wait([pending], timeout=READ_WAIT_S)
        # A transcript that cannot be read must not hide the list of all sessions.
        return pending.result() if pending.done() and not pending.exception() else None

    def _read(self, row: SessionRow) -> KeptPart | None:
        files = find_session_files(self._places, row)
        return read_kept_part(files, self._places) if files else None
