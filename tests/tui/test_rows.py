"""The lines of the overview, at any width."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.tui import bars
from brimline.tui.api_types import WatchedSession, WatchedThread, decode_views
from brimline.tui.filter import SORTS, ListOptions, group_starts, select_sessions
from brimline.tui.rows import MIN_COLUMNS, OverviewRows, column_widths, layout_for
from brimline.tui.styled_text import Line, line_width, to_ansi, to_plain

from .sample_views import NOW, scene, thread
from .sample_views import view as sample_view

HOME = Path("/home/ada")


def decode(*served: dict[str, Any]) -> list[WatchedSession]:
    views = decode_views(json.dumps(served).encode())
    assert len(views) == len(served)
    return views


def lines(view: WatchedSession, width: int = 80) -> list[str]:
    """A session's lines without colours."""
    return [to_plain(line) for line in OverviewRows(width, NOW, HOME).lines(view)]


def own(sent: int | None, **fields: Any) -> WatchedSession:
    """A session whose last call sent this many tokens."""
    return decode(sample_view("s", sent, main=fields))[0]


@pytest.mark.parametrize(
    ("sent", "percent", "word", "shade"),
    [
        (0, "0.0%", "low", "low"),
        (99_200, "49.6%", "low", "low"),
        (100_000, "50.0%", "medium", "medium"),
        (128_800, "64.4%", "medium", "medium"),
        (130_000, "65.0%", "high", "high"),
        (165_900, "83.0%", "high", "high"),
        (166_100, "83.0%", "at limit", "limit"),
        (200_000, "100.0%", "at limit", "limit"),
        (260_000, "130.0%!", "over", "limit"),
    ],
)
def test_percent_word_and_shade_match_the_occupancy(
    sent: int, percent: str, word: str, shade: str
) -> None:
    """Medium from the first level, high from the last."""
    view = own(sent)
    assert view.main is not None
    assert f"{percent} {word}" in lines(view)[1]
    assert bars.thread_shade(view.main) == shade


def test_overshoot_without_a_limit_is_marked() -> None:
    view = own(260_000, limit=None, percent_of_limit=None)
    assert view.main is not None
    assert (bars.thread_shade(view.main), bars.shade_word(view.main)) == ("limit", "over")


def test_unknown_is_not_shown_as_zero() -> None:
    assert "unknown" in lines(own(None))[1]
    assert "?/200K" in lines(own(None))[1]
    bare = own(5_000, window=None, percent=None, percent_raw=None, percent_of_limit=None)
    assert "0.0%" not in "".join(lines(bare))
    assert "5K/?" in lines(bare)[1]
    assert "·····" in lines(bare)[1]


@pytest.mark.parametrize(
    ("ago", "state", "text"),
    [
        (12, "measured", ""),
        (3_600, "measured", ""),
        (3_700, "measured", "stale 1h"),
        (9, "streaming", "streaming"),
        (9, "compacting", "compacting"),
        (90_000, "unknown", "stale 1d"),
    ],
)
def test_state_text_shows_age_of_stale_sessions(ago: float, state: str, text: str) -> None:
    view = own(5_000, ago=ago, state=state)
    assert bars.state_text(view, view.main, NOW) == text


def test_session_that_is_not_understood_is_unreadable() -> None:
    (view,) = decode(sample_view("s", None, problem="Update it."))
    assert bars.state_text(view, view.main, NOW) == "unreadable"


def test_bar_has_marks_for_levels_and_limit() -> None:
    bar = "".join(p.text for p in bars.draw_thread_bar(*_main(own(120_000)), 100))
    assert len(bar) == 100
    assert (bar[50], bar[65], bar[83]) == ("╎", "╎", "┃")
    assert bar[:50] == "█" * 50
    assert bar[66:83] == "░" * 17


def test_level_whose_message_waits_has_another_mark() -> None:
    view = own(120_000, pending_level=50.0)
    bar = "".join(p.text for p in bars.draw_thread_bar(*_main(view), 100))
    assert (bar[50], bar[65]) == ("◆", "╎")


def test_limit_equal_to_the_window_has_no_mark() -> None:
    view = decode(sample_view("s", 1_000, limit_at=100.0))[0]
    assert "┃" not in "".join(lines(view))


def _main(view: WatchedSession) -> tuple[WatchedSession, WatchedThread]:
    assert view.main is not None
    return view, view.main


def test_session_without_a_thread_is_unknown() -> None:
    view = decode(sample_view("s", 1_000) | {"threads": []})[0]
    assert "~/s" in lines(view)[0]
    assert "%" not in "".join(lines(view) + lines(view, 200))


@pytest.mark.parametrize(
    ("fields", "headline"),
    [({"title": "Fix it"}, "Fix it"), ({}, "3f1a0000-7d1f"), ({"project": None}, "3f1a0000")],
)
def test_headline_is_the_title_else_the_folder_else_the_start_of_the_id(
    fields: dict[str, Any], headline: str
) -> None:
    (view,) = decode(sample_view("3f1a0000-7d1f", 1_000, **fields))
    for width in (40, 80, 160):
        assert lines(view, width)[0].startswith(f"  {headline} ")


def test_small_line_has_path_agent_model_and_unread_messages() -> None:
    (view,) = decode(
        sample_view("shop", 1_000, unread=2, main={"model": "claude-opus-5-5-20260101[1m]"})
    )
    assert lines(view)[0].split() == [
        "shop",
        "~/shop",
        "claude",
        "opus-5-5[1m]",
        "2",
        "unread",
        "12s",
    ]
    assert lines(view)[1].split()[-4:] == ["limit", "1.1%", "handoff", "none"]


def test_blank_line_is_above_the_sessions_that_begin_a_group() -> None:
    """What needs something, is active and is idle: only the order by need has groups."""
    views = select_sessions(decode(*scene()), ListOptions(HOME))
    starts = group_starts(views, "need")
    assert sorted(starts) == ["claude/billing", "codex/docs-site"]
    rows = OverviewRows(80, NOW, HOME, starts)
    for view in views:
        session_lines = rows.lines(view)
        assert len(session_lines) == rows.height(view)
        assert (not session_lines[0]) == (view.key in starts)
    assert not group_starts(views, "limit")


def test_only_the_latest_four_subagents_are_shown_and_others_counted() -> None:
    subagents = [thread("s", 1_000, f"a{n}") for n in range(7)]
    session_lines = lines(decode(sample_view("s", 1_000, *subagents))[0])
    assert [line.split()[1] for line in session_lines[2:6]] == ["a0", "a1", "a2", "a3"]
    assert session_lines[6:] == ["  + 3 other subagents"]


@given(st.integers(MIN_COLUMNS, 400))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = OverviewRows(width, NOW, HOME)
    assert line_width(rows.header()) <= width
    for view in decode(*scene()):
        session_lines = rows.lines(view)
        assert len(session_lines) == rows.height(view)
        assert max(map(line_width, session_lines)) <= width


TEXT = st.text(max_size=60)


@given(TEXT, TEXT, TEXT, st.sampled_from([40, 59, 60, 80, 139, 140, 180, 200]))
def test_any_name_fits_its_line_without_control_characters(
    project: str, model: str, name: str, width: int
) -> None:
    served = sample_view("s", 1_000, thread("s", 1, name), project=project, main={"model": model})
    for line in OverviewRows(width, NOW, HOME).lines(decode(served)[0]):
        assert line_width(line) <= width
        assert to_plain(line).isprintable()


@given(st.integers(MIN_COLUMNS, 400))
def test_columns_fill_the_line(width: int) -> None:
    layout = layout_for(width)
    for columns in (*layout.session, layout.subagent):
        widths = column_widths(columns, width - 2)
        assert sum(widths) + len(columns) - 1 <= width
        assert min(widths) > 0


@pytest.mark.parametrize(
    ("width", "by_cost", "words"),
    [(200, False, "$12.50"), (80, True, "cost $12.50"), (40, True, "$12.50"), (80, False, "")],
)
def test_cost_is_shown_if_there_is_room_or_if_it_is_the_order(
    width: int, by_cost: bool, words: str
) -> None:
    rows = OverviewRows(width, NOW, HOME, by_cost=by_cost)
    known, unknown = (decode(sample_view("s", 9, cost=cost))[0] for cost in (12.5, None))
    shown = "\n".join(to_plain(line) for line in rows.lines(known))
    assert words in shown
    assert ("$" in shown) == bool(words)
    assert "$" not in "\n".join(to_plain(line) for line in rows.lines(unknown))


def test_long_project_keeps_its_end() -> None:
    view = decode(sample_view("s", 1_000, project="/srv/" + "deep/" * 20 + "end"))[0]
    assert "/end " in lines(view)[0]
    assert "…" in lines(view)[0]


def test_frame_without_colours_has_no_escapes() -> None:
    line: Line = OverviewRows(80, NOW, HOME).lines(own(190_000))[1]
    assert "\x1b[1;31m" in to_ansi(line, True)
    assert "\x1b" not in to_ansi(line, False)


def names(sort: str, **fields: Any) -> list[str]:
    """The sessions of the scene, sorted and filtered."""
    look = ListOptions(
        HOME, sort=next(known_sort for known_sort in SORTS if known_sort == sort), **fields
    )
    return [view.session.id for view in select_sessions(decode(*scene()), look)]


def test_sessions_sort_by_each_order() -> None:
    """Equal sessions are sorted by what they need, those that are idle for an hour last."""
    assert names("need")[:4] == ["ledger", "crawler", "importer", "shop-backend"]
    assert names("need")[-3:] == ["mobile-app", "billing", "yesterday"]
    assert names("limit")[:3] == ["crawler", "importer", "shop-backend"]
    assert names("limit")[-1] == "mobile-app"
    assert names("cost")[:3] == ["importer", "shop-backend", "crawler"]  # then unknown costs
    assert names("title")[:2] == ["shop-backend", "ledger"]
    assert names("latest")[-1] == "billing"
    assert names("project") == sorted(names("project"))
    assert names("agent")[-2:] == ["docs-site", "ledger"]


def test_filter_matches_agent_words_and_time() -> None:
    assert names("need", agents=("codex",)) == ["docs-site"]
    assert names("need", words=("BOX", "shop")) == ["shop-backend"]
    assert names("need", words=("nothing",)) == []
    assert "yesterday" in names("need")
    assert "yesterday" not in names("need", since=NOW - 100)
    assert names("need", since=NOW) == []
