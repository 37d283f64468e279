"""`GET /v1/tools`: what a project's sessions carried."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from starlette.requests import Request

from brimline.agents.transcripts.source import Places
from brimline.api.tools import ToolRoutes
from brimline.sessions.report import TranscriptSummary
from sessions.carried_session import carried_session

from .running import Running

PROJECT = "/home/u/carried"


@pytest.fixture
def carried(shared_daemon: Running) -> Running:
    """A daemon with a session that has the tools of two servers."""
    path = shared_daemon.home / ".claude" / "projects" / "-p" / "carried.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(carried_session("carried", time.time() - 3_600, PROJECT))
    return shared_daemon


def test_project_has_the_parts_of_its_sessions(carried: Running) -> None:
    report = carried.get(f"/v1/tools?project={PROJECT}")
    assert (report["project"], report["answered_at"]) == (PROJECT, None)
    (tides,) = (part for part in report["parts"] if part["name"] == "tides")
    assert (tides["kind"], tides["sessions"], tides["calls"]) == ("MCP server", 1, 0)
    assert tides["tokens"] > 5_000
    assert tides["advice"] is None


def test_project_without_sessions_has_no_parts(carried: Running) -> None:
    report = carried.get("/v1/tools?project=/nowhere")
    assert (report["sessions"], report["parts"]) == (0, [])


def request_for(project: str) -> Request:
    return Request({"type": "http", "query_string": f"project={project}".encode(), "headers": []})


def test_requests_for_one_project_share_one_read(tmp_path: Path) -> None:
    """Also those that come after the one that started it was given up."""
    reads: list[None] = []
    go_on = threading.Event()

    def read() -> list[TranscriptSummary]:
        reads.append(None)
        go_on.wait(10)
        return []

    async def ask() -> list[bytes | memoryview]:
        routes = ToolRoutes(read, Places(tmp_path, {}), tmp_path, wait_s=10.0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(routes.tools(request_for(PROJECT)), 0.05)
        waiting = [asyncio.ensure_future(routes.tools(request_for(PROJECT))) for _ in range(3)]
        await asyncio.sleep(0.05)
        go_on.set()
        return [(await each).body for each in waiting]

    bodies = asyncio.run(ask())
    assert (len(reads), len(set(bodies))) == (1, 1)
