"""The route that says what a project's MCP servers, skills and agents cost, by its transcripts."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from brimline.agents.transcripts.source import Places
from brimline.api.openapi import Endpoint
from brimline.api.responses import RETRY_HINT, RequestRefused, json_response
from brimline.files.bounded_reads import ReadThreads
from brimline.sessions.index import TAILS_ABOVE_BYTES
from brimline.sessions.report import TranscriptSummary
from brimline.sessions.thread_parts import TooMuchToRead
from brimline.sessions.tool_report import ToolReport, group_by_project, report_tools

TOOLS_WAIT_S = 30.0  # to read 100 MB takes 5 to 15 s; a read that takes longer goes on
TOOLS_THREADS = 1
COMMAND_HINT = (
    "Run `brimline tools` in the project: it reads them in several processes and caches the result."
)


class ToolRoutes:
    """`read` reads the summaries of all transcripts; it runs in a thread."""

    endpoints = (
        Endpoint("GET", "/v1/tools", "tools",
                 "Get what the MCP servers, memory files, skills and agents of a project (project) "
                 "cost in the last 30 days, and which were not called.",
                 ToolReport, query=("project",)),
    )  # fmt: skip

    def __init__(
        self,
        read: Callable[[], list[TranscriptSummary]],
        places: Places,
        cache: Path,
        wait_s: float = TOOLS_WAIT_S,
    ) -> None:
        self._read, self._places, self._cache, self._wait_s = read, places, cache, wait_s
        self._threads = ReadThreads(TOOLS_THREADS, hung_after_s=wait_s)
        self._pending: dict[str, asyncio.Future[ToolReport]] = {}

    async def tools(self, request: Request) -> Response:
        """Read what is unread of a project; requests for it share one read."""
        project = request.query_params.get("project", "")
        pending = self._pending.get(project) or self._start(project)
        await asyncio.wait([pending], timeout=self._wait_s)
        if not pending.done():
            reason = f"the transcripts are not read after {self._wait_s:g} s"
            raise RequestRefused(503, reason, RETRY_HINT)
        try:
            return json_response(pending.result())
        except TooMuchToRead as error:
            raise RequestRefused(503, str(error), COMMAND_HINT) from error

    def _start(self, project: str) -> "asyncio.Future[ToolReport]":
        def finish(done: "asyncio.Future[ToolReport]") -> None:
            del self._pending[project]
            done.exception()  # else asyncio logs it, if no request waits any more

        try:
            pending = self._threads.start(partial(self._report, project))
        except TimeoutError as error:
            raise RequestRefused(503, str(error), RETRY_HINT) from error
        self._pending[project] = pending
        pending.add_done_callback(finish)
        return pending

    def _report(self, project: str) -> ToolReport:
        items = group_by_project(self._read()).get(project, [])
        return report_tools(
            items, project, self._places, self._cache, time.time(), max_bytes=TAILS_ABOVE_BYTES
        )
