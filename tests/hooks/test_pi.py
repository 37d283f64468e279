"""Observations of Pi's hooks, as our extension sends them."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.observations import Observation, ObservationKind
from brimline.context.events import WindowReported

from .hook_input import AT, COMMON_EVENTS, hook_request


def observe(event: str, **more: Any) -> Observation | None:
    return get_agent("pi").hooks.observe(hook_request("pi", event, model="gpt-5.5", **more), AT)


@pytest.mark.parametrize(
    ("event", "more", "what"), [*COMMON_EVENTS, ("SessionStart", {"source": "fork"}, "started")]
)
def test_each_event_has_its_observation_kind(
    event: str, more: dict[str, Any], what: ObservationKind
) -> None:
    observation = observe(event, **more)
    assert observation is not None
    assert (observation.kind, observation.model) == (what, "gpt-5.5")


def test_post_compact_waits_for_a_reply() -> None:
    """The extension can put the handoff before the next request."""
    observation = observe("PostCompact", trigger="auto")
    assert observation is not None
    assert not observation.is_late


@pytest.mark.parametrize("is_interactive", [True, False, None])
def test_extension_reports_whether_the_session_is_interactive(is_interactive: bool | None) -> None:
    observation = observe("Stop", is_interactive=is_interactive, context_window=200_000)
    assert observation is not None
    assert observation.is_interactive is is_interactive


def test_window_is_reported_with_its_model() -> None:
    observation = observe("Stop", context_window=200_000)
    assert observation is not None
    assert observation.events == (WindowReported(tokens=200_000, model="gpt-5.5"),)


@pytest.mark.parametrize("more", [{}, {"context_window": None}, {"context_window": 0}])
def test_unknown_window_is_not_reported(more: dict[str, Any]) -> None:
    observation = observe("Stop", **more)
    assert observation is not None
    assert observation.events == ()


def test_window_without_a_model_is_not_reported() -> None:
    observation = get_agent("pi").hooks.observe(
        hook_request("pi", "Stop", context_window=200_000), AT
    )
    assert observation is not None
    assert observation.events == ()


@pytest.mark.parametrize(
    ("more", "size"), [({}, 0), ({"added_bytes": 9}, 9), ({"added_bytes": -1}, 0)]
)
def test_extension_reports_the_size_of_results(more: dict[str, Any], size: int) -> None:
    observation = observe("PostToolUse", **more)
    assert observation is not None
    assert observation.added_bytes == size
