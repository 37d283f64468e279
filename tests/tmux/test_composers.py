"""Composers of the real clients, as they were recorded: what is empty, and what is not sure."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names
from brimline.tmux.composers import Composer, has_queued, read_composer
from brimline.tmux.screen import Screen, parse_screen

SCREENS = sorted(Path(__file__).parent.glob("screens/*/*.txt"))
RULE = "─" * 40


def recorded(path: Path) -> tuple[dict[str, Any], Screen]:
    """A recorded screen, and what is known of it."""
    head, _, rows = path.read_text("utf-8").partition("\n")
    told = json.loads(head)
    return told, parse_screen(rows.split("\n"), told["x"], told["y"], told["shown"])


def claude(*typed: str, x: int = 2, y: int = 0, below: str = "  accept edits on") -> Composer:
    """Claude Code's composer with these rows in it; the cursor is in row `y` of them."""
    return read_composer(
        "claude", parse_screen(["● Done.", "", RULE, *typed, RULE, below], x, 3 + y, False)
    )


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded(path: Path) -> None:
    """Each recorded pane is recognised for what it is."""
    told, seen = recorded(path)
    found = read_composer(path.parent.name, seen)
    assert found.state == told["state"]
    assert told["text"] is None or found.text == told["text"]


def test_queued_words() -> None:
    """Only Claude Code's pane with words that wait for the agent is taken for one."""
    found = [path for path in SCREENS if has_queued(path.parent.name, recorded(path)[1])]
    assert [f"{path.parent.name}/{path.stem}" for path in found] == ["claude/queued"]


def test_hint_below_queued_words() -> None:
    """Words that wait are known by the hint below them, where the composer tells nothing."""
    rows = ["❯ more", "  ctrl+x ctrl+s to send now", "✽ Imagining… (4s)", RULE, "❯ ", RULE]
    assert has_queued("claude", parse_screen(rows, 2, 4))
    said = ["● Press it,", "  and it is yours to send now", *rows[2:]]
    assert not has_queued("claude", parse_screen(said, 2, 4))
    assert not has_queued("nobody", parse_screen(rows, 2, 4))


def test_every_agent_was_recorded() -> None:
    """For each agent there is a pane that is empty, one that is busy and one with text."""
    states = {agent: set[str]() for agent in agent_names()}
    for path in SCREENS:
        states[path.parent.name].add(recorded(path)[0]["state"])
    assert all({"empty", "busy", "typed"} <= seen for seen in states.values())


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_other_agents_composer(path: Path) -> None:
    """No other agent's pane is taken for an empty composer, but by Pi, which has no mark."""
    _, seen = recorded(path)
    others = set(agent_names()) - {path.parent.name, "pi"}
    assert not [agent for agent in others if read_composer(agent, seen).state == "empty"]


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_cursor_elsewhere(path: Path) -> None:
    """Where the cursor is not in the composer it is not known who gets what is typed."""
    _, seen = recorded(path)
    moved = Screen(seen.rows, 0, 0, seen.cursor_visible)
    assert read_composer(path.parent.name, moved).state == "unknown"


@given(st.sampled_from(SCREENS), st.integers(0, 29), st.text("─❯›┃╹▀▄ *>ab", max_size=12))
def test_changed_row(path: Path, place: int, text: str) -> None:
    """Whatever a row is replaced by: text in a composer is never taken for none."""
    told, seen = recorded(path)
    rows = list(seen.rows)
    place = min(place, len(rows) - 1)
    rows[place] = parse_screen([text], 0, 0).rows[0]
    found = read_composer(
        path.parent.name, Screen(tuple(rows), seen.cursor_x, seen.cursor_y, seen.cursor_visible)
    )
    if (
        told["state"] == "typed"
        and place != seen.cursor_y
        and told["text"]
        and "\n" not in told["text"]
    ):
        assert found.state in ("typed", "unknown")


def test_placeholder_is_dim() -> None:
    """A hint in dim letters, its first one below the cursor, is nothing that was typed."""
    hint = '❯\N{NO-BREAK SPACE}\x1b[7mT\x1b[0m\x1b[2mry "fix lint errors"\x1b[0m'
    assert claude(hint).state == "empty"
    assert claude('❯\N{NO-BREAK SPACE}\x1b[2mTry "fix lint errors"\x1b[22m').state == "empty"


@pytest.mark.parametrize(
    ("typed", "x"),
    [
        ('❯\N{NO-BREAK SPACE}Try "fix lint errors"', 2),
        ("❯\N{NO-BREAK SPACE}T", 2),
        ("❯\N{NO-BREAK SPACE}T\x1b[2mry\x1b[0m", 3),
        ("❯\N{NO-BREAK SPACE}\x1b[2mTry\x1b[0m it", 2),
        ("❯\N{NO-BREAK SPACE}\x1b[38;5;2mgreen", 2),
        ("❯\N{NO-BREAK SPACE}\x1b[38;2;2;2;2mblack", 2),
    ],
)
def test_typed_is_not_dim(typed: str, x: int) -> None:
    """Letters that are not dim were typed, wherever the cursor is, whatever their colour."""
    assert claude(typed, x=x).state == "typed"


def test_second_row() -> None:
    """Text in the second row, below an empty first one, is text."""
    assert claude("❯\N{NO-BREAK SPACE}", "  more", y=1).state == "typed"


def test_at_work_is_said_by_the_client() -> None:
    """Only the client's own row says that it is at work, not what the agent wrote."""
    rows = ["● I press esc to interrupt it…", "", RULE, "❯\N{NO-BREAK SPACE}", RULE, "  manual"]
    assert read_composer("claude", parse_screen(rows, 2, 3)).state == "empty"
    assert claude("❯\N{NO-BREAK SPACE}", below="  auto · esc to interrupt").state == "busy"


def test_agent_that_nobody_knows() -> None:
    """An agent whose looks are not known has no composer."""
    assert read_composer("somebody", parse_screen([RULE, "", RULE], 0, 1)).state == "unknown"
