"""What an agent is told: the figure, and unknown where it is unknown."""

from brimline.events import MAIN, Call
from brimline.monitor.texts import figure
from brimline.tracker import Session, Thread, fold, read
from brimline.usage import Usage
from brimline.windows import Overrides


def told(overrides: Overrides) -> str:
    """The figure of a context of 60,010 tokens."""
    session = fold(Session(), [Call(id="a", usage=Usage(60_000, 0, 0, 10))])
    return figure(read(session, session.threads[MAIN], "test", overrides))


def test_figure() -> None:
    """Per cent and tokens of the window, and what is left until the compaction."""
    assert told(Overrides({"*": 100_000}, {"*": 90_000})) == (
        "Your context is at 60% (60K of 100K tokens). "
        "About 30K tokens are left until it is compacted."
    )


def test_unknown() -> None:
    """Without a window the tokens alone; before any call that they are unknown."""
    assert told(Overrides()) == "Your context holds 60K tokens."
    empty = read(Session(), Thread(MAIN), "test")
    assert figure(empty) == "Your context holds an unknown number of tokens."
