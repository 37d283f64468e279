"""The routes that read a session's transcripts: what fills its contexts, a draft of a handoff."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from brimline.agents import agent_names
from brimline.agents.fresh_session import answers_changed_at
from brimline.agents.transcripts.source import Places, Transcript
from brimline.api.openapi import Endpoint
from brimline.api.responses import RETRY_HINT, RequestRefused, json_response, read_flag
from brimline.api.sessions import SESSION_PATH
from brimline.context.client_report import ReportedMiss, decode_report
from brimline.errors import UnknownSession
from brimline.files.bounded_dict import BoundedDict
from brimline.files.bounded_reads import SHARED_READS, ReadThreads
from brimline.monitor.monitor import Monitor
from brimline.sessions.files import READ_ERRORS, SessionFiles, describe_read_error, find_session
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.explain import Explanation, explain
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT, read_ledgers
from brimline.store.rows import HandoffRow, SessionRow

EXPLANATION_WAIT_S = 30.0  # a 100 MB transcript takes 1 to 4 s
# Threads of their own, and few: each keeps the memory that its largest read needed.
EXPLANATION_THREADS = 1
MAX_CACHED_EXPLANATIONS = 4
MAX_CACHED_BYTES = 4 << 20  # of one explanation with its series; that of 5,000 calls has 1 MB


class EncodedExplanation(msgspec.Struct, frozen=True):
    """An explanation as JSON, with and without the series, of files with these versions.

    `reported` are the cache misses that the client had reported by then, `answered` is when an
    answer about fresh sessions was last kept.
    """

    versions: tuple[tuple[str, int, float], ...]
    reported: tuple[ReportedMiss, ...]
    answered: float | None
    whole: bytes
    without_series: bytes


def find_session_files(places: Places, row: SessionRow) -> SessionFiles | None:
    """Return the transcripts of a session: those in its agent's folders, else that of its hooks."""
    if row.agent in agent_names():
        with suppress(UnknownSession):
            files = find_session(places, row.id, [row.agent])
            if files.session == row.id:
                return files
    try:
        status = os.stat(row.transcript or "")
    except (OSError, ValueError):
        return None
    own = Transcript(row.agent, row.transcript or "", status.st_mtime, status.st_size)
    return SessionFiles(row.agent, row.id, (own,))


class TranscriptRoutes:
    endpoints = (
        Endpoint("GET", f"{SESSION_PATH}/explanation", "explanation",
                 "Get what fills a session's contexts, with series=1 also at each call.",
                 Explanation, needs_session=True, query=("series",)),
        Endpoint("POST", f"{SESSION_PATH}/handoff/draft", "draft_handoff",
                 "Draft a handoff from the transcript; it is saved unless the agent wrote one.",
                 HandoffRow, status=201, needs_session=True),
    )  # fmt: skip

    def __init__(
        self,
        monitor: Monitor,
        places: Places,
        wait_s: float = EXPLANATION_WAIT_S,
        find_files: Callable[[Places, SessionRow], SessionFiles | None] = find_session_files,
        cache: Path | None = None,
    ) -> None:
        self._monitor, self._places = monitor, places
        self._wait_s, self._find_files, self._cache = wait_s, find_files, cache
        self._threads = ReadThreads(EXPLANATION_THREADS, hung_after_s=wait_s)
        self._pending: dict[str, asyncio.Future[EncodedExplanation]] = {}
        self._read = BoundedDict[str, EncodedExplanation](MAX_CACHED_EXPLANATIONS)

    async def explanation(self, request: Request, row: SessionRow) -> Response:
        """Read the transcripts if they changed; requests for a session share one read."""
        series = read_flag(request, "series")
        pending = self._pending.get(row.id) or self._start(row)
        await asyncio.wait([pending], timeout=self._wait_s)
        if not pending.done():
            reason = f"the transcript is not read after {self._wait_s:g} s"
            raise RequestRefused(503, reason, RETRY_HINT)
        encoded = pending.result()
        body = encoded.whole if series else encoded.without_series
        return Response(body, media_type="application/json")

    def _start(self, row: SessionRow) -> "asyncio.Future[EncodedExplanation]":
        def finish(done: "asyncio.Future[EncodedExplanation]") -> None:
            del self._pending[row.id]
            if not done.exception() and len(done.result().whole) <= MAX_CACHED_BYTES:
                self._read[row.id] = done.result()

        try:
            pending = self._threads.start(partial(self._explain, row, self._read.get(row.id)))
        except TimeoutError as error:
            raise RequestRefused(503, str(error), RETRY_HINT) from error
        self._pending[row.id] = pending
        pending.add_done_callback(finish)
        return pending

    def _explain(self, row: SessionRow, known: EncodedExplanation | None) -> EncodedExplanation:
        """Explain a session in a thread; `known` is returned if nothing of it has changed."""
        files = self._find_files(self._places, row)
        if files is None:
            return _encode_problem(row, NO_TRANSCRIPT)
        versions = tuple((each.path, each.size, each.modified) for each in files.transcripts)
        reported = decode_report(row.client_report).misses
        answered = answers_changed_at(self._cache) if self._cache else None
        state = (versions, reported, answered)
        if known is not None and (known.versions, known.reported, known.answered) == state:
            return known
        try:
            ledgers = read_ledgers(files, self._places)
            explained = explain(ledgers, series=True, reported=reported, cache=self._cache)
        except READ_ERRORS as error:
            reason = describe_read_error(files.transcripts[0], error)
            return _encode_problem(row, reason.partition("\n")[0])
        whole = Explanation(row.agent, row.id, explained.category_names, explained.threads)
        threads = [msgspec.structs.replace(each, series=msgspec.UNSET) for each in whole.threads]
        encode, short = msgspec.json.encode, msgspec.structs.replace(whole, threads=threads)
        return EncodedExplanation(*state, encode(whole), encode(short))

    async def draft_handoff(self, request: Request, row: SessionRow) -> Response:
        try:
            files = await SHARED_READS.run(
                partial(self._find_files, self._places, row), self._wait_s
            )
            if files is None:
                raise RequestRefused(422, NO_TRANSCRIPT)
            path = files.transcripts[0].path
            handoff = await self._monitor.draft_handoff(row, path)
        except TimeoutError as error:
            raise RequestRefused(503, f"the transcript is {error}", RETRY_HINT) from error
        if handoff is None:
            raise RequestRefused(422, f"nothing to draft from in {path} yet")
        return json_response(handoff, 201)


def _encode_problem(row: SessionRow, reason: str) -> EncodedExplanation:
    none = Explanation(row.agent, row.id, CATEGORIES, [], reason)
    encoded = msgspec.json.encode(none)
    return EncodedExplanation((), (), None, encoded, encoded)
