"""Texts of levels: the figures, unknown figures, the user's own templates."""

import sys
from pathlib import Path

import msgspec
import pytest

from brimline.context.events import MAIN, Call
from brimline.context.forecast import CallsLeft
from brimline.context.need import NeedFacts, assess
from brimline.context.tracker import Reading, Session, Thread, fold, read
from brimline.context.usage import Usage
from brimline.context.window import NO_CLIENT_SETTINGS, ClientSettings, Limit, Overrides
from brimline.errors import InvalidSettings
from brimline.monitor.user_rules import FIELDS, TEXTS, TemplateValues, Texts, find_command
from brimline.settings import Text

LEVELS = (50.0, 65.0)
AT = 1_000.0
KNOWN = Overrides({"*": 100_000}, {"*": 90_000})


def reading(overrides: Overrides = KNOWN, settings: ClientSettings = NO_CLIENT_SETTINGS) -> Reading:
    """Return a reading of 60,010 tokens."""
    session = fold(Session(), [Call(id="a", usage=Usage(60_000, 0, 0, 10))])
    return read(session, session.threads[MAIN], "test", overrides, settings)


def level_text(at: Reading, level: float = 50.0, calls_left: CallsLeft | None = None) -> str:
    """Return the text of a level in the neutral tone."""
    figures = TemplateValues("session-1", "/project", at, "claude", level, calls_left)
    return Texts(neutral=True).level_text(figures, LEVELS)


def test_level_text_has_percent_tokens_and_what_is_left() -> None:
    figure = "[brimline] Your context is at 60% (60K of 100K tokens)."
    assert level_text(reading()) == f"{figure} About 30K tokens are left before compaction."
    pace = "About 30K tokens, or 12 calls (9-17) at the present pace, are left before compaction."
    assert level_text(reading(), calls_left=CallsLeft(12, 9, 17)) == f"{figure} {pace}"


def test_pending_tokens_are_shown_apart_and_taken_from_what_is_left() -> None:
    pending = msgspec.structs.replace(reading(), pending=12_000)
    assert level_text(pending) == (
        "[brimline] Your context is at 60% (60K of 100K tokens); about 12K more tokens have just "
        "come in, and with them it is at about 72%. About 18K tokens are left before compaction."
    )
    unknown = msgspec.structs.replace(pending, window=None, limit=None, percent=None)
    assert level_text(unknown) == (
        "[brimline] Your context holds 60K tokens; about 12K more tokens have just come in."
    )
    assert "come in" not in level_text(msgspec.structs.replace(reading(), pending=0))


def test_level_text_with_one_call_left_or_none() -> None:
    assert "or 1 call (0-3) at the present pace" in level_text(
        reading(), calls_left=CallsLeft(1, 0, 3)
    )
    due = level_text(
        reading(Overrides({"*": 100_000}, {"*": 60_000})), calls_left=CallsLeft(0, 0, 1)
    )
    assert due.endswith("(60K of 100K tokens). Compaction is imminent.")


def test_level_text_announces_no_compaction_when_auto_compaction_is_off() -> None:
    off = ClientSettings(auto_compact=False)
    left = "About 40K tokens are left before the window is full: auto-compaction is off."
    assert level_text(reading(Overrides({"*": 100_000}), off)).endswith(left)
    assert level_text(reading(Overrides({"*": 60_000}), off)).endswith("The window is full.")


def test_level_text_without_an_enforced_limit_counts_to_the_full_window() -> None:
    late = msgspec.structs.replace(reading(), limit=Limit(100_000, "not enforced", "seen"))
    assert level_text(late).endswith("About 40K tokens are left before the window is full.")


def test_level_text_with_unknown_figures() -> None:
    assert level_text(reading(Overrides())) == "[brimline] Your context holds 60K tokens."
    empty = read(Session(), Thread(MAIN), "test")
    assert level_text(empty) == "[brimline] Your context holds an unknown number of tokens."


def test_advice_depends_on_the_level_and_the_thread() -> None:
    texts = Texts()
    at = {level: TemplateValues("s", None, reading(), "claude", level) for level in LEVELS}
    assert "Consider writing a handoff" in texts.level_text(at[50.0], LEVELS)
    assert "Write a handoff document now" in texts.level_text(at[65.0], LEVELS)
    assert "report your results" in texts.level_text(at[65.0], LEVELS, thread="agent-1")
    informed = texts.level_text(at[50.0], LEVELS, thread="agent-1")
    assert informed == level_text(reading())


@pytest.mark.parametrize(
    ("facts", "says", "asks"),
    [
        (NeedFacts(name="s", called_at=AT, handoff="none"), "", True),
        (NeedFacts(name="s", called_at=AT, handoff="draft"), "", True),
        (
            NeedFacts(name="s", called_at=AT, handoff="old", calls_since_handoff=40),
            " Your handoff is 40 calls old.",
            True,
        ),
        (NeedFacts(name="s", called_at=AT, handoff="fresh"), " Your handoff is fresh.", False),
        (
            NeedFacts(name="s", called_at=AT, handoff="none", loop=3, kept_percent=92.0),
            " Compacted 3 times in a row: what stays takes 92.0% of the limit.",
            True,
        ),
    ],
)
def test_agent_gets_the_facts_of_its_sessions_need(facts: NeedFacts, says: str, asks: bool) -> None:
    """The sentences are those that people get; a fresh document is not requested again."""
    values = TemplateValues("s", None, reading(), "claude", 65.0, facts=facts, at=AT)
    ours = Texts().level_text(values, LEVELS)
    request = "Write a handoff document now" if asks else "Go on."
    assert f"are left before compaction.{says} {request}" in ours
    if facts.loop:
        need = assess(facts, AT).need
        assert need is not None
        assert need.text in ours
    own = Texts.checked({"critical": "{percent}!{facts}"}, neutral=False)
    assert own.level_text(values, LEVELS) == f"60%!{says}"
    assert Texts(neutral=True).level_text(values, LEVELS).endswith("before compaction.")


def test_handoff_command_names_the_session_only_when_the_agent_cannot_tell_it() -> None:
    texts = {agent: Texts().level_text(TemplateValues("s", None, reading(), agent, 50.0), LEVELS)
            for agent in ("claude", "gemini")}  # fmt: skip
    assert "brimline handoff handoff-s.md`" in texts["claude"]
    assert "brimline handoff handoff-s.md --session s`" in texts["gemini"]


def test_handoff_command_is_absolute_if_the_path_does_not_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_command() == f"{sys.executable} -m brimline"
    program = tmp_path / "brimline"
    program.write_text("")
    program.chmod(0o755)
    assert find_command() == "brimline"


def test_own_template_replaces_the_default_and_may_use_every_field() -> None:
    whole = " ".join(f"{{{field}}}" for field in FIELDS)
    texts = Texts.checked({"warning": "at {percent} of {window}", "parent": whole}, neutral=True)
    figures = TemplateValues(
        "session-1234", "/project", reading(), "claude", 50.0, CallsLeft(7, 3, 15)
    )
    assert texts.level_text(figures, LEVELS) == "at 60% of 100K"
    assert "session-" in texts.text("parent", figures)
    assert "/project" in texts.text("parent", figures)


@pytest.mark.parametrize(
    "template",
    ["{nothing}", "{", "{0}", "{percent.real}", "{level!x}", "{percent:{project}}"],
)
def test_invalid_own_template_is_rejected_when_set(template: str) -> None:
    with pytest.raises(InvalidSettings, match=r"texts\.critical"):
        Texts.checked({"critical": template}, neutral=False)


@pytest.mark.parametrize("name", TEXTS)
def test_default_templates_are_valid(name: Text) -> None:
    assert Texts.checked(TEXTS, neutral=False).text(name, TemplateValues("s", None, reading()))
