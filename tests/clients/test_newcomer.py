"""A newcomer's walk: from the commands of the docs to the first handoff, with the real client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brimline.testing.fake_model import Ramp, Reply, Scenario
from doc_examples import BLOCK, commands_of, pattern_of

from . import claude
from .monitored.assertions import HANDOFF_START, levels_reported
from .monitored.script import DOCUMENT
from .run import Place
from .scenes import SESSION

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
GETTING_STARTED = (ROOT / "docs/getting-started.md").read_text("utf-8")
SETUP_SECTION = "Let it watch your agents"
SAMPLE_ID, OWN_ID = "3f1a9c02", SESSION[:8]
MAX_WAIT_S = 60.0


class Newcomer:
    """Someone who has a home with Claude Code alone, and types what the docs say."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def type(self, command: str) -> str:
        """Run a command in a shell; return all that it prints."""
        environment = {"HOME": str(self._home), "PATH": self.path, "LANG": "C.UTF-8"}
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self._home,
            env=environment | {"COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MAX_WAIT_S,
            check=False,
        ).stdout

    def follow(self, section: str) -> None:
        """Type the commands of a section, and compare what they print with what it shows."""
        text = GETTING_STARTED.partition(f"## {section}\n")[2].partition("\n## ")[0]
        examples = [each for block in BLOCK.finditer(text) for each in commands_of(block[2])]
        assert examples
        for command, shown in examples:
            printed = self.type(command)
            assert pattern_of(shown).fullmatch(printed), f"{command} printed:\n{printed}"


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    place = Place(tmp_path)
    place.make()
    one = Newcomer(place.home)
    yield one
    one.type("brimline serve --stop")


def test_docs_lead_from_the_installation_to_the_first_handoff(
    newcomer: Newcomer, tmp_path: Path
) -> None:
    """After `setup` the client is run as always: its hooks start the daemon, the agent is warned,
    hands a document over, and finds it in the first request after the compaction."""
    newcomer.follow(SETUP_SECTION)
    hand_over = claude.bash(f"echo {DOCUMENT!r} > notes.md && brimline handoff notes.md")
    work = (claude.bash(f"echo {step}") for step in range(7))
    run = claude.run_claude(
        Scenario(
            main=(claude.bash("sleep 3"), hand_over, *work, Reply(text="Done.")),
            ramp=Ramp(start=70_000, step=10_000, after_compaction=32_000),
        ),
        tmp_path,
        "Go.",
        "--session-id",
        SESSION,
        model="claude-sonnet-4-5",
        environment={"PATH": newcomer.path, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "170000"},
    )
    assert run.exit_code == 0, run.stderr
    requests = run.requests.read_text("utf-8").splitlines()
    with_document = [body for body in requests if HANDOFF_START in body]
    assert with_document[0].count(DOCUMENT) == 1
    assert any(levels_reported(body) for body in requests)
    shown = [newcomer.type(command) for command in commands_about_own_session()]
    listed, inspected, explained, asked, handed_over = shown
    assert OWN_ID in listed
    assert inspected.startswith("Claude Code")
    assert "system and tools" in explained
    assert asked.startswith(f"queued for {SESSION}")
    assert "the agent itself" in handed_over


def commands_about_own_session() -> list[str]:
    """The commands of the page that show something, about the session of this test."""
    shown = r"^\$ (brimline(?: inspect .*| explain .*| handoff --(?:ask|list) .*)?)$"
    commands = re.findall(shown, GETTING_STARTED, re.MULTILINE)
    return [command.replace(SAMPLE_ID, OWN_ID) for command in commands]
