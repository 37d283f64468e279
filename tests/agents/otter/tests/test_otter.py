"""Otter holds what every agent has to hold."""

from pathlib import Path

import pytest

from brimline.agents.packages import add_packages, package_problems
from brimline.agents.transcripts.source import Places
from brimline.testing.agents import CHECKS, AgentSample, Check

SAMPLE = AgentSample(
    agent="otter",
    home=Path(__file__).parent / "recorded",  # with `.otter/s1.otter`, as Otter wrote it
    calls=5,
    compactions=1,
    subagents=1,
    prompt="Count the fish",
    hook=b'{"session_id":"s1","hook_event_name":"PostToolUse"}',
)

add_packages(["otter-brimline"], Places.here())


def test_package_cannot_be_used() -> None:
    assert package_problems() == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_otter_holds(check: Check, tmp_path: Path) -> None:
    check(SAMPLE, tmp_path)
