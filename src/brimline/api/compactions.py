"""The route that says what each compaction of a session left, by its transcript."""

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents.transcripts.source import Places
from brimline.api.openapi import Endpoint
from brimline.api.responses import RETRY_HINT, RequestRefused, json_response
from brimline.api.sessions import SESSION_PATH
from brimline.api.transcripts import find_session_files
from brimline.context.events import MAIN
from brimline.files.bounded_dict import BoundedDict
from brimline.files.bounded_reads import ReadThreads
from brimline.sessions.compaction_effects import (
    MeasuredCompaction,
    content_of,
    measure_compactions,
)
from brimline.sessions.files import SessionFiles, load_session
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT
from brimline.store.rows import SessionRow

COMPACTIONS_WAIT_S = 30.0  # a 100 MB transcript takes 2 to 3 s
COMPACTIONS_THREADS = 1  # of its own: it keeps the memory that its largest read needed
MAX_CACHED_SESSIONS = 16


class SessionCompactions(msgspec.Struct, frozen=True):
    """The compactions of a session's main thread; `problem` is why there are none."""

    compactions: list[MeasuredCompaction]
    problem: str | None = None


class CompactionRoutes:
    endpoints = (
        Endpoint("GET", f"{SESSION_PATH}/compactions", "compactions",
                 "Get what each compaction of a session left, by its transcript.",
                 SessionCompactions, needs_session=True),
    )  # fmt: skip

    def __init__(self, places: Places, wait_s: float = COMPACTIONS_WAIT_S) -> None:
        self._places, self._wait_s = places, wait_s
        self._threads = ReadThreads(COMPACTIONS_THREADS, hung_after_s=wait_s)
        # By the files' versions: what was read of them.
        self._read = BoundedDict[SessionFiles, SessionCompactions](MAX_CACHED_SESSIONS)

    async def compactions(self, request: Request, row: SessionRow) -> Response:
        try:
            return json_response(await self._threads.run(partial(self._measure, row), self._wait_s))
        except TimeoutError as error:
            reason = f"the transcript is not read after {self._wait_s:g} s"
            raise RequestRefused(503, reason, RETRY_HINT) from error

    def _measure(self, row: SessionRow) -> SessionCompactions:
        files = find_session_files(self._places, row)
        if files is None:
            return SessionCompactions([], NO_TRANSCRIPT)
        if files not in self._read:
            loaded = load_session(files)
            main = loaded.session.threads.get(MAIN)
            content = content_of(loaded) if main is not None and main.compactions else None
            measured = measure_compactions(main, content) if main is not None else []
            problem = loaded.problems[0] if loaded.problems and main is None else None
            self._read[files] = SessionCompactions(measured, problem)
        return self._read[files]
