"""Which session a process cleared, by what its hooks tell."""

import pytest

from brimline.observations import Observation, ObservationKind
from brimline.server.hooks.clear_detection import INIT_PID, MAX_SESSIONS, ClearDetection

Told = tuple[int, str, ObservationKind]


def heard(
    session: str, what: ObservationKind, at: float = 99.0, project: str = "/p"
) -> Observation:
    """What a hook tells."""
    return Observation("id", "claude", session, what, at, project=project)


def known(*told: Told) -> ClearDetection:
    """What is known when this was told, one thing after the other."""
    cleared = ClearDetection()
    for at, (pid, session, what) in enumerate(told):
        cleared.record(pid, heard(session, what, float(at)))
    return cleared


@pytest.mark.parametrize(
    ("told", "before"),
    [
        pytest.param([(7, "a", "started"), (7, "a", "ended")], "a", id="its end was told"),
        pytest.param([(7, "a", "prompt")], "a", id="its end is told later"),
        pytest.param([], None, id="nothing was heard of it"),
        pytest.param([(8, "a", "prompt")], None, id="another process"),
        pytest.param([(7, "a", "prompt"), (8, "a", "prompt")], None, id="resumed elsewhere"),
        pytest.param([(7, "b", "prompt")], None, id="it kept its session"),
        pytest.param([(7, "a", "prompt"), (7, "x", "prompt")], None, id="a process with two"),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "prompt"), (7, "a", "ended")], "a", id="one of two ended"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "x", "ended"), (7, "a", "started")], "a", id="resumed another"
        ),
        pytest.param(
            [(7, "x", "ended"), (7, "a", "started"), (7, "a", "ended")], "a", id="and ended that"
        ),
        pytest.param([(7, "x", "prompt"), (7, "a", "cleared")], "a", id="for the second time"),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "cleared"), (7, "x", "ended")], "a", id="its late end"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "y", "prompt"), (7, "a", "cleared")], "a", id="after two"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "cleared"), (7, "x", "prompt")], None, id="lives again"
        ),
    ],
)
def test_before(told: list[Told], before: str | None) -> None:
    """It is said where it is sure."""
    assert known(*told).predecessor(7, heard("b", "cleared")) == before


@pytest.mark.parametrize("pid", [0, INIT_PID])
def test_process_that_is_not_known(pid: int) -> None:
    """A client that posts its hooks, or whose parent is gone, has none."""
    cleared = known((pid, "a", "prompt"))
    assert cleared.predecessor(pid, heard("b", "cleared")) is None


def test_another_project() -> None:
    """A process that got the number of one that is gone is elsewhere, mostly."""
    assert known((7, "a", "prompt")).predecessor(7, heard("b", "cleared", project="/q")) is None


def test_clear_that_is_told_again() -> None:
    """Told once more, after the next clear, it is not taken for one of the session of now."""
    cleared = known((7, "a", "prompt"), (7, "b", "cleared"), (7, "c", "cleared"))
    again = heard("b", "cleared", 1.0)
    assert cleared.predecessor(7, again) is None
    cleared.record(7, again)
    assert cleared.predecessor(7, heard("d", "cleared")) == "c"


def test_subagent() -> None:
    """A subagent's end is not its session's."""
    cleared = known((7, "a", "prompt"))
    cleared.record(
        7, Observation("id", "claude", "a", "ended", 5.0, project="/p", thread="agent-1")
    )
    cleared.record(7, heard("x", "prompt", 6.0))
    assert cleared.predecessor(7, heard("b", "cleared")) is None


def test_other_happenings() -> None:
    """Only a clear makes a session another."""
    assert known((7, "a", "ended")).predecessor(7, heard("b", "started")) is None


def test_many_sessions() -> None:
    """Those that were heard last are remembered."""
    told: list[Told] = [(100 + number, str(number), "prompt") for number in range(MAX_SESSIONS + 1)]
    cleared = known(*told)
    at = float(MAX_SESSIONS + 9)
    assert cleared.predecessor(100, heard("b", "cleared", at)) is None
    assert cleared.predecessor(101, heard("b", "cleared", at)) == "1"
