"""A bar of several parts, with and without colours."""

from brimline.terminal.chart import Segment, draw_stacked_bar, paint_segment

SEGMENTS = [Segment("A", "36", 50), Segment("B", "red", 25)]


def test_letters_without_colours() -> None:
    assert draw_stacked_bar(SEGMENTS, 100, 20, colour=False) == "AAAAAAAAAABBBBB·····"
    assert draw_stacked_bar(SEGMENTS, 75, 3, colour=False) == "AAB"


def test_blocks_in_colours() -> None:
    drawn = draw_stacked_bar(SEGMENTS, 100, 4, colour=True)
    assert drawn == "\x1b[38;5;36m██\x1b[0m\x1b[31m█\x1b[0m·"


def test_more_than_the_whole_fits_the_bar() -> None:
    assert draw_stacked_bar(SEGMENTS, 60, 6, colour=False) == "AAAAAB"


def test_nothing_is_free() -> None:
    assert draw_stacked_bar([], 100, 3, colour=True) == "···"
    assert draw_stacked_bar(SEGMENTS, 0, 3, colour=False) == "···"


def test_segment_without_a_valid_colour_is_its_letter() -> None:
    assert paint_segment(Segment("C", "none", 1), 2, colour=True) == "CC"
    assert paint_segment(SEGMENTS[0], 0, colour=True) == ""
