"""What an agent is told: the figure, and unknown where it is unknown."""

import msgspec
import pytest

from brimline.errors import InvalidSettings
from brimline.events import MAIN, Call
from brimline.monitor.texts import FIELDS, TEXTS, TemplateValues, Texts
from brimline.settings import Text
from brimline.tracker import Reading, Session, Thread, fold, read
from brimline.usage import Usage
from brimline.windows import NO_CLIENT_SETTINGS, ClientSettings, Limit, Overrides

LEVELS = (50.0, 65.0)
KNOWN = Overrides({"*": 100_000}, {"*": 90_000})


def reading(overrides: Overrides = KNOWN, settings: ClientSettings = NO_CLIENT_SETTINGS) -> Reading:
    """A context of 60,010 tokens."""
    session = fold(Session(), [Call(id="a", usage=Usage(60_000, 0, 0, 10))])
    return read(session, session.threads[MAIN], "test", overrides, settings)


def told(made: Reading, level: float = 50.0, calls_left: int | None = None) -> str:
    """What is told at a level, in a neutral tone."""
    figures = TemplateValues("session-1", "/project", made, "claude", level, calls_left)
    return Texts(neutral=True).level_text(figures, LEVELS)


def test_figure() -> None:
    """Per cent and tokens of the window, and what is left until the compaction."""
    figure = "[brimline] Your context is at 60% (60K of 100K tokens)."
    assert told(reading()) == f"{figure} About 30K tokens are left before compaction."
    pace = "About 30K tokens, or 12 calls at the present pace, are left before compaction."
    assert told(reading(), calls_left=12) == f"{figure} {pace}"


def test_one_call_and_none_left() -> None:
    """One call is one call; where the limit is reached, nothing is left to be counted."""
    assert "or 1 call at the present pace" in told(reading(), calls_left=1)
    due = told(reading(Overrides({"*": 100_000}, {"*": 60_000})), calls_left=0)
    assert due.endswith("(60K of 100K tokens). Compaction is imminent.")


def test_nothing_is_compacted() -> None:
    """Where auto-compaction is off, no compaction is announced: what is left is of the window."""
    off = ClientSettings(auto_compact=False)
    left = "About 40K tokens are left before the window is full: auto-compaction is off."
    assert told(reading(Overrides({"*": 100_000}), off)).endswith(left)
    assert told(reading(Overrides({"*": 60_000}), off)).endswith("The window is full.")


def test_compacted_when_the_window_is_full() -> None:
    """A client that enforces no limit compacts when the window is full, and not before."""
    late = msgspec.structs.replace(reading(), limit=Limit(100_000, "not enforced", "seen"))
    assert told(late).endswith("About 40K tokens are left before the window is full.")


def test_unknown() -> None:
    """Without a window the tokens alone; before any call that they are unknown."""
    assert told(reading(Overrides())) == "[brimline] Your context holds 60K tokens."
    empty = read(Session(), Thread(MAIN), "test")
    assert told(empty) == "[brimline] Your context holds an unknown number of tokens."


def test_what_can_be_done() -> None:
    """The last level asks for a document, the others suggest one, a subagent is to report."""
    texts = Texts()
    at = {level: TemplateValues("s", None, reading(), "claude", level) for level in LEVELS}
    assert "Consider writing a handoff" in texts.level_text(at[50.0], LEVELS)
    assert "Write a handoff document now" in texts.level_text(at[65.0], LEVELS)
    assert "report your results" in texts.level_text(at[65.0], LEVELS, thread="agent-1")


def test_session_is_named_where_it_has_to_be() -> None:
    """An agent whose tools do not know their session is told its name."""
    told = {agent: Texts().level_text(TemplateValues("s", None, reading(), agent, 50.0), LEVELS)
            for agent in ("claude", "gemini")}  # fmt: skip
    assert "`brimline handoff PATH`" in told["claude"]
    assert "`brimline handoff PATH --session s`" in told["gemini"]


def test_own_texts() -> None:
    """A user's own template takes the place of ours, every field can be named, tone or not."""
    whole = " ".join(f"{{{field}}}" for field in FIELDS)
    texts = Texts.checked({"warning": "at {percent} of {window}", "parent": whole}, neutral=True)
    figures = TemplateValues("session-1234", "/project", reading(), "claude", 50.0, 7)
    assert texts.level_text(figures, LEVELS) == "at 60% of 100K"
    assert "session-" in texts.text("parent", figures)
    assert "/project" in texts.text("parent", figures)


@pytest.mark.parametrize(
    "template",
    ["{nothing}", "{", "{0}", "{percent.real}", "{level!x}", "{percent:{project}}"],
)
def test_own_text_that_is_none(template: str) -> None:
    """A template that names what there is not is refused when it is set, not when it is needed."""
    with pytest.raises(InvalidSettings, match=r"texts\.critical"):
        Texts.checked({"critical": template}, neutral=False)


@pytest.mark.parametrize("name", TEXTS)
def test_our_texts(name: Text) -> None:
    """Every text of ours is a sound template."""
    assert Texts.checked(TEXTS, neutral=False).text(name, TemplateValues("s", None, reading()))
