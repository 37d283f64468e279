"""What a client's requests contain, and which signals the daemon recorded."""

from __future__ import annotations

import re
from typing import Any

from brimline.testing.fake_model import Billed

from ..run import ClientRun
from .base import MonitoredClient
from .script import DOCUMENT

LEVEL_MESSAGE = re.compile(r"\[brimline\] Your context is at ([0-9.]+)%")
HANDOFF_START = " begins -----"  # in the first line of an injected handoff


def levels_reported(body: str) -> list[float]:
    """The percentages of the level messages in a request."""
    return [float(percent) for percent in LEVEL_MESSAGE.findall(body)]


def signals_of(timeline: Any) -> list[tuple[str, int, float]]:
    """The signals of a session in order: kind, cycle, level."""
    return [(one["kind"], one["cycle"], one["level"]) for one in timeline["signals"]]


def sent_tokens(one: Billed) -> int:
    """The prompt tokens that a call was billed."""
    return one.usage.input + one.usage.cache_read + one.usage.cache_write


def check_readings(agent: MonitoredClient, *runs: ClientRun) -> None:
    """Check that the daemon has every call of a session with the tokens that were billed."""
    billed = [one for run in runs for one in run.of("main")]
    calls = [
        (call["input"] + call["cache_read"] + call["cache_write"], call["output"])
        for call in agent.timeline(runs[-1])["calls"]
    ]
    # The client may record the last call after its last hook: then the next turn brings it.
    late = 0 if agent.ends_in_headless_runs else 1
    assert len(calls) >= len(billed) - late
    assert calls == [(sent_tokens(one), one.usage.output) for one in billed[: len(calls)]]
    (view,) = agent.daemon.get("/v1/sessions")
    assert view["threads"][0]["window"] == agent.window
    assert (view["session"]["ended_at"] is not None) == agent.ends_in_headless_runs


def check_handoff_returns(agent: MonitoredClient, run: ClientRun) -> None:
    """Check that the handoff returns once after the compaction, and that the levels fire again."""
    signals = signals_of(agent.timeline(run))
    assert signals.count(("compacted", 0, 0.0)) == 1
    assert [each for each in signals if each[0] == "level"] == [
        ("level", cycle, level) for cycle, level in agent.levels
    ]
    bodies = agent.after_compaction(run)
    counts = tuple(body.count(HANDOFF_START) for body in bodies)
    assert counts == agent.handoff_counts, counts
    assert bodies[agent.handoff_counts.index(1)].count(DOCUMENT) == 1
    fired = [level for cycle, level in agent.levels if cycle == 1]
    assert len(levels_reported(bodies[-1])) - len(levels_reported(bodies[0])) == len(fired)
