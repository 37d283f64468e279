"""What a user is told beside the agent, by a daemon that runs."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .running import PATIENCE, Running
from .test_daemon import hook_input, status_input

pytestmark = pytest.mark.slow

KEEP = """
import sys
with open(sys.argv[1], "a") as file:
    file.write(sys.stdin.read() + "\\n")
"""


class Noticed:
    """A daemon whose notices go to a command, which keeps them in a file."""

    def __init__(self, folder: Path, of: str) -> None:
        self.daemon = Running(folder / "daemon")
        self._file = folder / "notices"
        command = json.dumps([sys.executable, "-c", KEEP, str(self._file)])
        config = self.daemon.home / ".config/brimline/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f"[notify]\nof = {of}\ncommand = {command}\n")
        self.daemon.start()

    def notices(self, count: int) -> list[dict[str, Any]]:
        """So many notices, once they came."""
        end = time.monotonic() + PATIENCE
        while len(found := self._lines()) < count:
            assert time.monotonic() < end, found
            time.sleep(0.05)
        return [json.loads(line) for line in found]

    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


@pytest.fixture
def noticed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Noticed]:
    """One that tells of what a test wants to know."""
    made = Noticed(tmp_path, request.param)
    yield made
    made.daemon.close()


@pytest.mark.parametrize("noticed", ['["level"]'], indirect=True)
def test_last_level(noticed: Noticed) -> None:
    """The last level is told to the user, once, with whose it is; a lower one is not."""
    for sent in (110_000, 140_000, 141_000):
        noticed.daemon.hook(status_input(sent), "statusline")
    (told,) = noticed.notices(1)
    assert (told["kind"], told["sent"], told["window"]) == ("level", 140_000, 200_000)
    assert told["text"] == (
        "Claude Code 11111111 in /project has reached level 65. Context: 70% (140K/200K)"
    )


@pytest.mark.parametrize("noticed", ['["any level", "compacting", "compacted"]'], indirect=True)
def test_everything(noticed: Noticed) -> None:
    """Who wants to know more is told more, in the order in which it happened."""
    daemon = noticed.daemon
    daemon.hook(status_input(110_000), "statusline")
    assert [told["kind"] for told in noticed.notices(1)] == ["level"]
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    assert [told["kind"] for told in noticed.notices(2)][1:] == ["compacting"]
    daemon.hook(hook_input("SessionStart", source="compact"))
    assert [told["kind"] for told in noticed.notices(3)][2:] == ["compacted"]


def called(daemon: Running, session: str, at: float, **more: str) -> None:
    """A program's agent made a call of 150,000 tokens."""
    usage = {"input": 150_000, "cache_read": 0, "cache_write": 0, "output": 1}
    event = {"type": "Call", "id": f"c{at}", "usage": usage, "at": at,
             "model": "claude-sonnet-4-5", **more}  # fmt: skip
    told = {"id": f"e{at}", "session": session, "agent": "claude", "event": event}
    daemon.post("/v1/events", {"events": [told]})


@pytest.mark.parametrize("noticed", ['["any level"]'], indirect=True)
def test_subagent(noticed: Noticed) -> None:
    """Of a subagent it is said that it is one: the session's own context is another."""
    called(noticed.daemon, "s", time.time(), thread="a1")
    (told,) = noticed.notices(1)
    assert told["text"].startswith("A subagent of Claude Code s has reached level 65.")


@pytest.mark.parametrize("noticed", ['["compacting", "compacted"]'], indirect=True)
def test_compaction_after_a_rest(noticed: Noticed) -> None:
    """A compaction is news, however long ago the last call was."""
    session = hook_input("PreCompact")["session_id"]
    called(noticed.daemon, session, time.time() - 7_200)
    noticed.daemon.hook(hook_input("PreCompact", trigger="manual"))
    noticed.daemon.hook(hook_input("SessionStart", source="compact"))
    assert {told["kind"] for told in noticed.notices(2)} == {"compacting", "compacted"}


@pytest.mark.parametrize("noticed", ['["any level"]'], indirect=True)
def test_old_news(noticed: Noticed) -> None:
    """Nobody is roused for what happened hours ago: it is in the history."""
    for number, at in enumerate((time.time() - 7_200, time.time())):
        called(noticed.daemon, f"s{number}", at)
    assert [told["session"] for told in noticed.notices(1)] == ["s1"]
    assert len(noticed.daemon.get("/v1/sessions/s0/timeline")["signals"]) == 1
