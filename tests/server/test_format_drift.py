"""Every surface says that a client's format is not understood, for each agent."""

import time
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import display_name
from drifted_homes import CHANGES, RECORDED, Change, write_home

from .running import MAX_WAIT_S, Running

pytestmark = pytest.mark.slow


def problems_in_api(daemon: Running) -> dict[str, Any]:
    """The problem of each agent's session, when all are there."""
    end = time.monotonic() + MAX_WAIT_S
    while True:
        rows = [view["session"] for view in daemon.get("/v1/sessions")]
        if len(rows) == len(RECORDED) or time.monotonic() > end:
            return {row["agent"]: row["problem"] for row in rows}
        time.sleep(0.1)


@pytest.mark.parametrize("change", CHANGES)
def test_changed_format_is_named_by_every_surface(tmp_path: Path, change: Change) -> None:
    daemon = Running(tmp_path)
    paths = {agent: str(write_home(agent, daemon.home, change)) for agent in RECORDED}
    daemon.start()
    try:
        in_api = problems_in_api(daemon)
        assert problems_in_api(daemon) == in_api
        daemon.stop()
        daemon.start()
        assert problems_in_api(daemon) == in_api
        said = {
            "API": "\n".join(in_api.values()),
            "status": daemon.command("status").stderr,
            "report": daemon.command("report").stderr,
            "doctor": daemon.command("doctor").stdout,
            "inspect": "".join(daemon.command("inspect", path).stderr for path in paths.values()),
        }
    finally:
        daemon.close()
    for agent, path in paths.items():
        expected = f"Brimline does not understand this version of {display_name(agent)}"
        for surface, text in said.items():
            lines = [line for line in text.splitlines() if expected in line and path in line]
            assert len(lines) == 1, f"{surface} on {agent}: {text}"


def test_known_format_is_named_by_no_surface(tmp_path: Path) -> None:
    daemon = Running(tmp_path)
    for agent in RECORDED:
        write_home(agent, daemon.home, None)
    daemon.start()
    try:
        assert problems_in_api(daemon) == dict.fromkeys(RECORDED)
        for command in ("status", "report", "doctor"):
            done = daemon.command(command)
            assert "does not understand" not in done.stdout + done.stderr
    finally:
        daemon.close()
