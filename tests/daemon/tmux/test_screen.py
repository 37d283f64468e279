"""A captured pane: its letters, and which of them are dim."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.daemon.tmux.screen import conversation_hashes, is_cleared, parse_screen


def dim(*lines: str) -> str:
    rows = parse_screen(lines, 0, 0).rows
    return "".join(letter.char for row in rows for letter in row.cells if letter.dim)


def test_dim_continues_in_the_next_row() -> None:
    assert dim("a\x1b[2mb", "c\x1b[0md", "e") == "bc"
    assert dim("\x1b[1;2mx\x1b[22my\x1b[;2mz\x1b[mw") == "xz"


def test_2_in_a_colour_does_not_mean_dim() -> None:
    assert dim("\x1b[38;5;2ma\x1b[48;2;2;2;2mb\x1b[58;5;2mc\x1b[38;2;1;2;3;2md") == "d"


def test_other_sequences_leave_no_letters() -> None:
    line = "a\x1b]8;;http://x\x1b\\b\x1b]0;t\x07c\x1b(Bd\x0ee\x0f\x1b[2Kf"
    assert parse_screen([line], 0, 0).row(0) == "abcdef"


def test_wide_letters_take_two_columns_and_combining_ones_none() -> None:
    letters = parse_screen(["a漢e\N{COMBINING ACUTE ACCENT}b"], 0, 0).rows[0].cells
    assert [letter.column for letter in letters] == [0, 1, 3, 4, 4]


@given(st.lists(st.text("\x1b[]0;2m8ab\x07\\", max_size=30), max_size=4))
def test_any_bytes_give_a_row_per_line_without_escapes(lines: list[str]) -> None:
    screen = parse_screen(lines, 0, 0)
    assert len(screen.rows) == len(lines)
    assert "\x1b" not in screen.text


def test_row_outside_the_screen_is_empty() -> None:
    assert (parse_screen(["a"], 0, 0).row(-1), parse_screen(["a"], 0, 0).row(1)) == ("", "")


def test_pane_is_cleared_when_half_of_its_last_rows_are_gone() -> None:
    rows = [f"line {n}" for n in range(4)]
    before = conversation_hashes(parse_screen([*rows, "", "─────", "typed"], 0, 6))
    assert len(before) == 4
    assert not is_cleared(before, parse_screen([*rows, "a new line"], 0, 0))
    assert not is_cleared(before, parse_screen(rows[1:], 0, 0))
    assert is_cleared(before, parse_screen(rows[2:], 0, 0))
    assert is_cleared(before, parse_screen(["fresh"], 0, 0))
    assert not is_cleared(before, None)
