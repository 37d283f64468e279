"""What the requests of a client hold, and what the daemon said of its session."""

from __future__ import annotations

import re
from typing import Any

from brimline.testing.fake_model import Billed

from ..run import ClientRun
from .base import Monitored
from .script import DOCUMENT

TEXT = re.compile(r"\[brimline\] Your context is at ([0-9.]+)%")
BEGIN = " begins -----"
"""How the place is headed where a handoff comes back."""


def told(body: str) -> list[float]:
    """The levels that Brimline told the agent, as a request holds them, in per cent."""
    return [float(percent) for percent in TEXT.findall(body)]


def kinds(timeline: Any) -> list[tuple[str, int, float]]:
    """What was said of a session, in order: what, in which cycle, at which level."""
    return [(one["kind"], one["cycle"], one["level"]) for one in timeline["signals"]]


def sent(one: Billed) -> int:
    """What a call was billed for."""
    return one.usage.input + one.usage.cache_read + one.usage.cache_write


def check_handoff(agent: Monitored, run: ClientRun) -> None:
    """The handoff comes back after the one compaction, once, and the levels are reached again."""
    said = kinds(agent.timeline(run))
    assert said.count(("compacted", 0, 0.0)) == 1
    assert [each for each in said if each[0] == "level"] == [
        ("level", cycle, level) for cycle, level in agent.levels
    ]
    bodies = agent.after_compaction(run)
    came = tuple(body.count(BEGIN) for body in bodies)
    assert came == agent.comes, came
    assert bodies[agent.comes.index(1)].count(DOCUMENT) == 1
    critical = agent.levels.count((1, 65.0))
    assert len(told(bodies[-1])) - len(told(bodies[0])) == critical
