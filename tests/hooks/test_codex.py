"""Observations of Codex's hooks."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind

from .hook_input import AT, COMMON_EVENTS, hook_request


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("codex").hooks.observe(
        hook_request("codex", event, model="gpt-5.5", turn_id="t1", **more), AT
    )


@pytest.mark.parametrize(
    ("event", "more", "what"), [*COMMON_EVENTS, ("SessionStart", {"source": "fork"}, "started")]
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert (observation.kind, observation.model) == (what, "gpt-5.5")


def test_observation_has_the_size_of_what_the_model_gets() -> None:
    prompt, tool = (
        observe("UserPromptSubmit", prompt="Go."),
        observe("PostToolUse", tool_response="1\n2\n"),
    )
    assert prompt is not None
    assert tool is not None
    assert (prompt.added_bytes, tool.added_bytes) == (3, 4)


def test_reply_waits_for_session_start_not_post_compact() -> None:
    """Codex ignores replies to PostCompact, which comes first."""
    after, start = observe("PostCompact", trigger="auto"), observe("SessionStart", source="compact")
    assert after is not None
    assert start is not None
    assert (after.is_late, start.is_late) == (True, False)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "PreCompact", "SubagentStop"])
def test_hooks_of_a_subagent_give_no_observation(event: str) -> None:
    """They name the subagent's own rollout."""
    assert observe(event, agent_id="01a1", agent_type="default") is None
