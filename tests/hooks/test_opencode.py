"""opencode's hooks, as our plugin tells them."""

from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.events import MAIN, WindowReported
from brimline.observations import Observation, ObservationKind
from brimline.transcripts.source import Transcript

from .told import ALIKE, AT, SESSION, told


def heard(event: str, **more: Any) -> Observation | None:
    """What is heard of an event."""
    return get_agent("opencode").hooks.observe(told("opencode", event, model="gpt-5.5", **more), AT)


@pytest.mark.parametrize(("event", "more", "what"), ALIKE)
def test_happenings(event: str, more: dict[str, Any], what: ObservationKind) -> None:
    """Each event in the monitor's words."""
    found = heard(event, **more)
    assert found is not None
    assert (found.kind, found.model) == (what, "gpt-5.5")


def test_session_in_a_database() -> None:
    """The file has every session: of this one it is read anew at each event."""
    found = heard("PostToolUse", transcript_path="/data/opencode.db", context_window=1_000)
    assert found is not None
    assert found.transcript is None
    assert found.file == Transcript(
        "opencode", "/data/opencode.db", AT, 0, SESSION, MAIN, "/project"
    )
    assert found.events == (WindowReported(tokens=1_000, model="gpt-5.5"),)


def test_no_database() -> None:
    """Where the plugin finds none, what happens is heard all the same."""
    found = heard("PostToolUse", transcript_path=None)
    assert found is not None
    assert (found.kind, found.file) == ("tool", None)


@pytest.mark.parametrize(
    ("event", "late"), [("PostCompact", True), ("Stop", True), ("PostToolUse", False)]
)
def test_what_is_answered(event: str, late: bool) -> None:
    """Of a turn's end and a compaction's a plugin is told, and nobody waits for its answer."""
    found = heard(event)
    assert found is not None
    assert found.is_late is late
