"""The route that searches a session's transcripts."""

from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from brimline.agents.transcripts.source import Places
from brimline.api.openapi import Endpoint
from brimline.api.responses import RETRY_HINT, RequestRefused, json_response, read_flag
from brimline.api.sessions import SESSION_PATH
from brimline.api.transcripts import find_session_files
from brimline.files.bounded_reads import ReadThreads
from brimline.sessions.files import find_transcripts, group_by_session
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT
from brimline.sessions.recall.query import RecallQuery, parse_text
from brimline.sessions.recall.search import (
    DEFAULT_HITS,
    FOLDER_NAME,
    MAX_HITS,
    Recall,
    find_earlier,
    search,
)
from brimline.store.base import Store
from brimline.store.rows import SessionRow

RECALL_WAIT_S = 10.0  # the first search of 100 MB takes longer: it goes on, and the next one waits
RECALL_THREADS = 1  # of its own: indexing takes as much memory as its largest record


class RecallRoutes:
    endpoints = (
        Endpoint("GET", f"{SESSION_PATH}/recall", "recall",
                 "Search a session's transcripts, and those that it continues, for the words in q; "
                 "with before_compaction=1 only what its last compaction or clear took away.",
                 Recall, needs_session=True, query=("q", "rows", "before_compaction")),
    )  # fmt: skip

    def __init__(
        self, store: Store, places: Places, cache: Path, wait_s: float = RECALL_WAIT_S
    ) -> None:
        self._store, self._places, self._folder = store, places, cache / FOLDER_NAME
        self._wait_s = wait_s
        self._threads = ReadThreads(RECALL_THREADS, hung_after_s=wait_s)

    async def recall(self, request: Request, row: SessionRow) -> Response:
        query = parse_text(request.query_params.get("q", ""))
        rows, before = _read_rows(request), read_flag(request, "before_compaction")
        cleared = {
            each.became: each.id for each in await self._store.sessions() if each.became is not None
        }
        find = partial(self._search, row, query, cleared, before, rows)
        try:
            return json_response(await self._threads.run(find, self._wait_s))
        except TimeoutError as error:
            reason = f"the transcript is still being indexed: {error}"
            raise RequestRefused(503, reason, RETRY_HINT) from error

    def _search(
        self,
        row: SessionRow,
        query: RecallQuery,
        cleared: dict[str, str],
        before_compaction: bool,
        rows: int,
    ) -> Recall:
        files = find_session_files(self._places, row)
        if files is None:
            return Recall([], problems=[NO_TRANSCRIPT])
        others = group_by_session(find_transcripts(self._places, [row.agent]))
        return search(
            find_earlier(files, others, cleared),
            query,
            self._folder,
            before_compaction=before_compaction,
            most=rows,
        )


def _read_rows(request: Request) -> int:
    text = request.query_params.get("rows", str(DEFAULT_HITS))
    if not (text.isdecimal() and text.isascii() and len(text) < 5 and 0 < int(text) <= MAX_HITS):
        raise RequestRefused(422, f"query, rows: expected 1 to {MAX_HITS}: got {text[:20]!r}")
    return int(text)
