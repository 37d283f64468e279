"""Pi's hooks, as our extension tells them."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.events import WindowReported
from brimline.observations import Observation, ObservationKind

from .told import ALIKE, AT, told


def heard(event: str, **more: Any) -> Observation | None:
    """What is heard of an event."""
    return get_agent("pi").hooks.observe(told("pi", event, model="gpt-5.5", **more), AT)


@pytest.mark.parametrize(
    ("event", "more", "what"), [*ALIKE, ("SessionStart", {"source": "fork"}, "started")]
)
def test_happenings(event: str, more: dict[str, Any], what: ObservationKind) -> None:
    """Each event in the monitor's words."""
    found = heard(event, **more)
    assert found is not None
    assert (found.kind, found.model) == (what, "gpt-5.5")


def test_end_of_a_compaction_is_answered() -> None:
    """The extension can put the document before the next request: it is given at once."""
    found = heard("PostCompact", trigger="auto")
    assert found is not None
    assert not found.is_late


def test_window() -> None:
    """The window that the client goes by is told with the model that it is for."""
    found = heard("Stop", context_window=200_000)
    assert found is not None
    assert found.events == (WindowReported(tokens=200_000, model="gpt-5.5"),)


@pytest.mark.parametrize("more", [{}, {"context_window": None}, {"context_window": 0}])
def test_no_window(more: dict[str, Any]) -> None:
    """A window that is not known is not told."""
    found = heard("Stop", **more)
    assert found is not None
    assert found.events == ()


def test_window_of_no_model() -> None:
    """Nor is one of which nobody says whose it is."""
    found = get_agent("pi").hooks.observe(told("pi", "Stop", context_window=200_000), AT)
    assert found is not None
    assert found.events == ()
