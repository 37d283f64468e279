"""A real client that compacts in a loop, because its memory file nearly fills the limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.testing.fake_model import Ramp
from preloaded import run_brimline
from server.running import Running

from . import claude
from .scenes import steps

pytestmark = [pytest.mark.clients, pytest.mark.slow]

RULE = "- Rule {}: keep the order of the basket lines stable.\n"
MEMORY = "".join(map(RULE.format, range(6_800)))  # 95K tokens of the fake model, of a limit of 117K
CAUSE = "what stays takes 90.2% of the limit, 97K of it memory files."


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon of the user whose client compacted twice within three calls."""
    running = Running(tmp_path)
    memory = running.home / ".claude" / "CLAUDE.md"
    memory.parent.mkdir()
    memory.write_text(MEMORY)
    run = claude.run_claude(
        steps(claude.bash, 8, Ramp(step=6_000)),
        tmp_path,
        "Go.",
        environment={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"},
    )
    threads = [call.thread for call in run.of("main", "compaction")]
    assert threads == [*["main"] * 3, "compaction"] * 2 + ["main"] * 3
    yield running
    running.close()


def next_need(daemon: Running) -> Any:
    done = run_brimline(("next", "--json"), env=daemon.environment, timeout=60)
    (session,) = json.loads(done.stdout)
    return session["need"]


def test_loop_is_a_need_with_its_cause(daemon: Running) -> None:
    """By files alone, by the daemon, and by both."""
    need = {"kind": "loop", "text": f"Compacted 2 times in a row: {CAUSE}"}
    assert next_need(daemon) == need
    daemon.start()
    (view,) = daemon.until("/v1/sessions", lambda views: len(views) == 1)
    assert view["need"] == need
    assert view["threads"][0]["loop"] == 2
    assert next_need(daemon) == need
    shown = run_brimline(("status",), env=daemon.environment, timeout=60)
    assert CAUSE in shown.stdout.decode()
