"""Composers of the real clients in recorded screens."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, all_agents
from brimline.daemon.tmux.screen import Composer, Screen, has_queued, parse_screen, read_composer

SCREENS = sorted(Path(__file__).parent.glob("screens/*/*.txt"))
RULE = "─" * 40


def recorded(path: Path) -> tuple[dict[str, Any], Screen]:
    """A recorded screen and its expected state."""
    head, _, rows = path.read_text("utf-8").partition("\n")
    expected = json.loads(head)
    return expected, parse_screen(rows.split("\n"), expected["x"], expected["y"], expected["shown"])


def claude(*typed: str, x: int = 2, y: int = 0, below: str = "  accept edits on") -> Composer:
    """Claude Code's composer with these rows; the cursor is in row `y` of them."""
    return read_composer(
        "claude", parse_screen(["● Done.", "", RULE, *typed, RULE, below], x, 3 + y, False)
    )


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_recorded_composer_has_the_expected_state(path: Path) -> None:
    expected, screen = recorded(path)
    composer = read_composer(path.parent.name, screen)
    assert composer.state == expected["state"]
    assert expected["text"] is None or composer.text == expected["text"]


def test_only_claudes_recorded_queue_counts_as_queued() -> None:
    queued = [path for path in SCREENS if has_queued(path.parent.name, recorded(path)[1])]
    assert [f"{path.parent.name}/{path.stem}" for path in queued] == ["claude/queued"]


def test_queued_words_are_recognised_by_the_hint_below() -> None:
    rows = ["❯ more", "  ctrl+x ctrl+s to send now", "✽ Imagining… (4s)", RULE, "❯ ", RULE]
    assert has_queued("claude", parse_screen(rows, 2, 4))
    reply_rows = ["● Press it,", "  and it is yours to send now", *rows[2:]]
    assert not has_queued("claude", parse_screen(reply_rows, 2, 4))
    assert not has_queued("nobody", parse_screen(rows, 2, 4))


def test_every_agent_has_an_empty_a_busy_and_a_typed_recording() -> None:
    composed = (agent for agent in all_agents() if agent.capabilities.composer is not None)
    states = {agent.name: set[str]() for agent in composed}
    for path in SCREENS:
        states[path.parent.name].add(recorded(path)[0]["state"])
    assert all({"empty", "busy", "typed"} <= recorded_states for recorded_states in states.values())


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_screen_of_another_agent_is_no_empty_composer(path: Path) -> None:
    """Except for Pi, whose composer has no mark."""
    _, screen = recorded(path)
    other_agents = set(agent_names()) - {path.parent.name, "pi"}
    assert not [agent for agent in other_agents if read_composer(agent, screen).state == "empty"]


@pytest.mark.parametrize("path", SCREENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_composer_without_the_cursor_is_unknown(path: Path) -> None:
    _, screen = recorded(path)
    moved = Screen(screen.rows, 0, 0, screen.cursor_visible)
    assert read_composer(path.parent.name, moved).state == "unknown"


@given(st.sampled_from(SCREENS), st.integers(0, 29), st.text("─❯›┃╹▀▄ *>ab", max_size=12))
def test_no_changed_row_makes_a_typed_composer_empty(path: Path, place: int, text: str) -> None:
    expected, screen = recorded(path)
    rows = list(screen.rows)
    place = min(place, len(rows) - 1)
    rows[place] = parse_screen([text], 0, 0).rows[0]
    composer = read_composer(
        path.parent.name,
        Screen(tuple(rows), screen.cursor_x, screen.cursor_y, screen.cursor_visible),
    )
    if (
        expected["state"] == "typed"
        and place != screen.cursor_y
        and expected["text"]
        and "\n" not in expected["text"]
    ):
        assert composer.state in ("typed", "unknown")


def test_dim_placeholder_is_no_typed_text() -> None:
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
def test_letters_that_are_not_dim_are_typed_text(typed: str, x: int) -> None:
    assert claude(typed, x=x).state == "typed"


def test_text_in_the_second_row_is_typed_text() -> None:
    assert claude("❯\N{NO-BREAK SPACE}", "  more", y=1).state == "typed"


def test_only_the_clients_own_row_means_busy() -> None:
    rows = ["● I press esc to interrupt it…", "", RULE, "❯\N{NO-BREAK SPACE}", RULE, "  manual"]
    assert read_composer("claude", parse_screen(rows, 2, 3)).state == "empty"
    assert claude("❯\N{NO-BREAK SPACE}", below="  auto · esc to interrupt").state == "busy"


def test_unknown_agent_has_no_composer() -> None:
    assert read_composer("somebody", parse_screen([RULE, "", RULE], 0, 1)).state == "unknown"
