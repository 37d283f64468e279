"""Observations of opencode's hooks, as our plugin sends them."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind
from brimline.agents.transcripts.source import Transcript
from brimline.context.events import MAIN, WindowReported

from .hook_input import AT, COMMON_EVENTS, SESSION, hook_request


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("opencode").hooks.observe(
        hook_request("opencode", event, model="gpt-5.5", **more), AT
    )


@pytest.mark.parametrize(("event", "more", "what"), COMMON_EVENTS)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert (observation.kind, observation.model) == (what, "gpt-5.5")


def test_observation_names_its_session_in_the_database() -> None:
    observation = observe("PostToolUse", transcript_path="/data/opencode.db", context_window=1_000)
    assert observation is not None
    assert observation.transcript is None
    assert observation.file == Transcript(
        "opencode", "/data/opencode.db", AT, 0, SESSION, MAIN, "/project"
    )
    assert observation.events == (WindowReported(tokens=1_000, model="gpt-5.5"),)


def test_sizes_of_the_model_are_reported_with_its_window() -> None:
    sizes = {"context_window": 400_000, "max_output": 8_192, "input_limit": 272_000}
    observation = observe("PostToolUse", **sizes)
    assert observation is not None
    assert observation.events == (
        WindowReported(tokens=400_000, model="gpt-5.5", max_output=8_192, input_limit=272_000),
    )


def test_event_without_a_database_gives_an_observation() -> None:
    observation = observe("PostToolUse", transcript_path=None)
    assert observation is not None
    assert (observation.kind, observation.file) == ("tool", None)


@pytest.mark.parametrize(
    ("event", "late"), [("PostCompact", True), ("Stop", True), ("PostToolUse", False)]
)
def test_only_tool_events_wait_for_a_reply(event: str, late: bool) -> None:
    observation = observe(event)
    assert observation is not None
    assert observation.is_late is late
