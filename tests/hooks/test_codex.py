"""Codex's hooks, as they are heard."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.observations import Observation, ObservationKind

from .told import ALIKE, AT, told


def heard(event: str, **more: Any) -> Observation | None:
    """What is heard of an event."""
    return get_agent("codex").hooks.observe(
        told("codex", event, model="gpt-5.5", turn_id="t1", **more), AT
    )


@pytest.mark.parametrize(
    ("event", "more", "what"), [*ALIKE, ("SessionStart", {"source": "fork"}, "started")]
)
def test_happenings(event: str, more: dict[str, Any], what: ObservationKind) -> None:
    """Each event in the monitor's words."""
    found = heard(event, **more)
    assert found is not None
    assert (found.kind, found.model) == (what, "gpt-5.5")


def test_post_compact_is_not_answered() -> None:
    """It comes first, but Codex takes no answer to it: the document waits for SessionStart."""
    after, start = heard("PostCompact", trigger="auto"), heard("SessionStart", source="compact")
    assert after is not None
    assert start is not None
    assert (after.is_late, start.is_late) == (True, False)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "PreCompact", "SubagentStop"])
def test_subagent(event: str) -> None:
    """A subagent's hooks name its own rollout, and tell nothing of the session's."""
    assert heard(event, agent_id="01a1", agent_type="default") is None
