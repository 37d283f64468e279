"""A captured pane: its letters, and which of them are dim."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.tmux.screen import conversation_hashes, is_cleared, parse_screen


def dim(*lines: str) -> str:
    """The dim letters of some rows."""
    rows = parse_screen(lines, 0, 0).rows
    return "".join(letter.char for row in rows for letter in row.cells if letter.dim)


def test_dim_goes_on_into_the_next_row() -> None:
    """What is switched on in one row is on in the next, until it is switched off."""
    assert dim("a\x1b[2mb", "c\x1b[0md", "e") == "bc"
    assert dim("\x1b[1;2mx\x1b[22my\x1b[;2mz\x1b[mw") == "xz"


def test_colours_are_no_weight() -> None:
    """The 2 in a colour does not mean dim, however the colour is written."""
    assert dim("\x1b[38;5;2ma\x1b[48;2;2;2;2mb\x1b[58;5;2mc\x1b[38;2;1;2;3;2md") == "d"


def test_what_is_no_letter() -> None:
    """Links, character sets and other sequences leave no letters behind."""
    line = "a\x1b]8;;http://x\x1b\\b\x1b]0;t\x07c\x1b(Bd\x0ee\x0f\x1b[2Kf"
    assert parse_screen([line], 0, 0).row(0) == "abcdef"


def test_columns_of_wide_letters() -> None:
    """A wide letter takes two columns, a combining one none."""
    letters = parse_screen(["a漢e\N{COMBINING ACUTE ACCENT}b"], 0, 0).rows[0].cells
    assert [letter.column for letter in letters] == [0, 1, 3, 4, 4]


@given(st.lists(st.text("\x1b[]0;2m8ab\x07\\", max_size=30), max_size=4))
def test_any_bytes(lines: list[str]) -> None:
    """Whatever a pane holds, there are as many rows as lines, and no escape in them."""
    seen = parse_screen(lines, 0, 0)
    assert len(seen.rows) == len(lines)
    assert "\x1b" not in seen.text


def test_row_that_is_not_there() -> None:
    """A row outside of the screen says nothing."""
    assert (parse_screen(["a"], 0, 0).row(-1), parse_screen(["a"], 0, 0).row(1)) == ("", "")


def test_cleared_is_half_gone() -> None:
    """A pane is cleared when half of what was said last is gone; one more row is no clear."""
    said = [f"line {n}" for n in range(4)]
    before = conversation_hashes(parse_screen([*said, "", "─────", "typed"], 0, 6))
    assert len(before) == 4
    assert not is_cleared(before, parse_screen([*said, "a new line"], 0, 0))
    assert not is_cleared(before, parse_screen(said[1:], 0, 0))
    assert is_cleared(before, parse_screen(said[2:], 0, 0))
    assert is_cleared(before, parse_screen(["fresh"], 0, 0))
    assert not is_cleared(before, None)
