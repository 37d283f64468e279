"""Notices that a running daemon sends to the user."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .running import MAX_WAIT_S, Running
from .test_daemon import hook_input, status_input

pytestmark = pytest.mark.slow

KEEP = """
import sys
with open(sys.argv[1], "a") as file:
    file.write(sys.stdin.read() + "\\n")
"""


class NoticingDaemon:
    """A daemon whose notices go to a command that stores them in a file."""

    def __init__(self, folder: Path, of: str) -> None:
        self.daemon = Running(folder / "daemon")
        self._file = folder / "notices"
        command = json.dumps([sys.executable, "-c", KEEP, str(self._file)])
        config = self.daemon.home / ".config/brimline/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f"[notify]\nof = {of}\ncommand = {command}\n")
        self.daemon.start()

    def notices(self, count: int) -> list[dict[str, Any]]:
        """Wait for this many notices."""
        end = time.monotonic() + MAX_WAIT_S
        while len(lines := self._lines()) < count:
            assert time.monotonic() < end, lines
            time.sleep(0.05)
        return [json.loads(line) for line in lines]

    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


@pytest.fixture
def noticing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NoticingDaemon]:
    """A daemon with the parametrized notify settings."""
    noticing_daemon = NoticingDaemon(tmp_path, request.param)
    yield noticing_daemon
    noticing_daemon.daemon.close()


@pytest.mark.parametrize("noticing", ['["level"]'], indirect=True)
def test_only_the_last_level_is_noticed_and_once(noticing: NoticingDaemon) -> None:
    for sent in (110_000, 140_000, 141_000):
        noticing.daemon.hook(status_input(sent), "statusline")
    (notice,) = noticing.notices(1)
    assert (notice["kind"], notice["sent"], notice["window"]) == ("level", 140_000, 200_000)
    assert notice["text"] == (
        "Claude Code 11111111 in /project has reached level 65. Context: 70% (140K/200K)"
    )


@pytest.mark.parametrize("noticing", ['["any level", "compacting", "compacted"]'], indirect=True)
def test_all_events_are_noticed_in_order(noticing: NoticingDaemon) -> None:
    daemon = noticing.daemon
    daemon.hook(status_input(110_000), "statusline")
    assert [notice["kind"] for notice in noticing.notices(1)] == ["level"]
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    assert [notice["kind"] for notice in noticing.notices(2)][1:] == ["compacting"]
    daemon.hook(hook_input("SessionStart", source="compact"))
    assert [notice["kind"] for notice in noticing.notices(3)][2:] == ["compacted"]


def push_call(daemon: Running, session: str, at: float, **more: str) -> None:
    """Push a call of 150,000 tokens."""
    usage = {"input": 150_000, "cache_read": 0, "cache_write": 0, "output": 1}
    event = {"type": "Call", "id": f"c{at}", "usage": usage, "at": at,
             "model": "claude-sonnet-4-5", **more}  # fmt: skip
    row = {"id": f"e{at}", "session": session, "agent": "claude", "event": event}
    daemon.post("/v1/events", {"events": [row]})


@pytest.mark.parametrize("noticing", ['["any level"]'], indirect=True)
def test_notice_names_the_subagent(noticing: NoticingDaemon) -> None:
    push_call(noticing.daemon, "s", time.time(), thread="a1")
    (notice,) = noticing.notices(1)
    assert notice["text"].startswith("A subagent of Claude Code s has reached level 65.")


@pytest.mark.parametrize("noticing", ['["compacting", "compacted"]'], indirect=True)
def test_compaction_long_after_the_last_call_is_noticed(noticing: NoticingDaemon) -> None:
    session = hook_input("PreCompact")["session_id"]
    push_call(noticing.daemon, session, time.time() - 7_200)
    noticing.daemon.hook(hook_input("PreCompact", trigger="manual"))
    noticing.daemon.hook(hook_input("SessionStart", source="compact"))
    assert {notice["kind"] for notice in noticing.notices(2)} == {"compacting", "compacted"}


@pytest.mark.parametrize("noticing", ['["any level"]'], indirect=True)
def test_event_from_hours_ago_is_not_noticed(noticing: NoticingDaemon) -> None:
    for number, at in enumerate((time.time() - 7_200, time.time())):
        push_call(noticing.daemon, f"s{number}", at)
    assert [notice["session"] for notice in noticing.notices(1)] == ["s1"]
    assert len(noticing.daemon.get("/v1/sessions/s0/timeline")["signals"]) == 1
