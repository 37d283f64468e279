"""Which session a process cleared, by what its hooks tell."""

import pytest

from brimline.monitor.heard import Happening, Heard
from brimline.server.cleared import INIT, Cleared

Told = tuple[int, str, Happening]


def heard(session: str, what: Happening, thread: str = "main") -> Heard:
    """What a hook tells."""
    return Heard("id", "claude", session, what, 1.0, thread=thread)


def known(*told: Told) -> Cleared:
    """What is known when this was told."""
    cleared = Cleared()
    for pid, session, what in told:
        cleared.hear(pid, heard(session, what))
    return cleared


@pytest.mark.parametrize(
    ("told", "before"),
    [
        pytest.param([(7, "a", "started"), (7, "a", "ended")], "a", id="its end was told"),
        pytest.param([(7, "a", "prompt")], "a", id="its end is told later"),
        pytest.param([], None, id="nothing was heard of it"),
        pytest.param([(8, "a", "prompt")], None, id="another process"),
        pytest.param([(7, "b", "prompt")], None, id="it kept its session"),
        pytest.param([(7, "a", "prompt"), (7, "x", "prompt")], None, id="a process with two"),
        pytest.param(
            [(7, "x", "prompt"), (7, "x", "ended"), (7, "a", "started")], "a", id="resumed another"
        ),
        pytest.param(
            [(7, "x", "prompt"), (7, "a", "cleared"), (7, "x", "ended")], None, id="its late end"
        ),
        pytest.param([(7, "x", "prompt"), (7, "a", "cleared")], "a", id="for the second time"),
    ],
)
def test_before(told: list[Told], before: str | None) -> None:
    """It is said where it is sure."""
    assert known(*told).before(7, heard("b", "cleared")) == before


@pytest.mark.parametrize("pid", [0, INIT])
def test_process_that_is_not_known(pid: int) -> None:
    """A client that posts its hooks, or whose parent is gone, has none."""
    cleared = known((pid, "a", "prompt"))
    assert cleared.before(pid, heard("b", "cleared")) is None


def test_subagent() -> None:
    """A subagent's end is not its session's."""
    cleared = known((7, "a", "prompt"))
    cleared.hear(7, heard("other", "ended", "subagent"))
    assert cleared.before(7, heard("b", "cleared")) == "a"


def test_other_happenings() -> None:
    """Only a clear makes a session another."""
    assert known((7, "a", "ended")).before(7, heard("b", "started")) is None
