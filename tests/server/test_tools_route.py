"""`GET /v1/tools`: what a project's sessions carried."""

import time

import pytest

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
