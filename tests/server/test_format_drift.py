"""Every surface says that a client's format is not understood, for each agent."""

import json
import os
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
            "status": daemon.answered("status").stderr,
            "report": daemon.answered("report").stderr,
            "doctor": daemon.answered("doctor").stdout,
            "inspect": "".join(daemon.answered("inspect", path).stderr for path in paths.values()),
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


DEEP = b"[" * 3_000 + b"]" * 3_000
FIRST_LINES = {
    "a byte that is no text": b'{"type":"session_meta","payload":{"id":"\xe9"',
    "nested 3,000 deep": b'{"type":"session_meta","payload":{"id":'
    + b"[" * 3_000
    + b"]" * 3_000
    + b"}}",
    "another shape": b'{"type":"session_meta","payload":7}',
}


@pytest.mark.parametrize("first_line", FIRST_LINES.values(), ids=FIRST_LINES)
def test_damaged_file_hides_others_or_is_not_named(tmp_path: Path, first_line: bytes) -> None:
    """It is named once by each surface, with the reason, and its other records are read."""
    daemon = Running(tmp_path)
    paths = [write_home(agent, daemon.home, None) for agent in RECORDED]
    (recorded,) = (path for path in paths if path.name.startswith("rollout-"))
    thread = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
    damaged = recorded.with_name(f"rollout-2026-01-02T03-04-05-{thread}.jsonl")
    _, _, others = recorded.read_bytes().partition(b"\n")
    damaged.write_bytes(first_line + b"\n" + others)
    os.utime(damaged, (time.time() + 1, time.time() + 1))  # doctor reads an agent's newest file
    daemon.start()
    try:
        end = time.monotonic() + MAX_WAIT_S
        problems: dict[str, str | None] = {}
        while len(problems) <= len(RECORDED) and time.monotonic() < end:
            time.sleep(0.1)
            rows = [view["session"] for view in daemon.get("/v1/sessions")]
            problems = {row["id"]: row["problem"] for row in rows}
        printed = [daemon.command(name, "--json") for name in ("status", "status", "report")]
        doctor = daemon.answered("doctor").stdout
    finally:
        daemon.close()
    reason = f"{damaged}: 1 record cannot be read (before byte {len(first_line) + 1}: "
    assert (problems.pop(thread) or "").startswith(reason)
    assert list(problems.values()) == [None] * len(RECORDED)
    for command in printed:
        assert command.returncode == 0
        assert [reason in line for line in command.stderr.splitlines()] == [True]
    assert doctor.count(reason) == 1
    for status in printed[:2]:
        rows = json.loads(status.stdout)
        assert len(rows) == len(RECORDED) + 1
        assert thread in {row["session_id"] for row in rows}
