"""The layout at any width, and the size of the first paint."""

from pathlib import Path

import pytest

from .conftest import Opener
from .gallery import RICH, report_gallery
from .screen import Screen
from .story import Story

pytestmark = pytest.mark.slow

OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text()
FETCHED = """() => [...performance.getEntriesByType("navigation"),
  ...performance.getEntriesByType("resource")]
  .filter(({ name }) => !name.includes("/v1/"))
  .map(({ name, decodedBodySize }) => [name.split("/").at(-1), decodedBodySize])"""
MAX_FIRST_PAINT_BYTES = 200_000


def check_layout(screen: Screen, picture: Path) -> None:
    """Nothing is wider than the screen, and no words overlap."""
    screen.page.screenshot(path=picture, full_page=True)
    wide, room = screen.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room, picture
    assert screen.evaluate(OVERLAPS) == [], picture


@pytest.mark.parametrize("width", [360, 2560])
def test_nothing_overlaps_at_any_width(
    story: Story, opened: Opener, tmp_path: Path, width: int
) -> None:
    screen = opened(width)
    screen.open()
    screen.find("empty").wait_for()
    check_layout(screen, tmp_path / f"empty-{width}.png")
    report_gallery(story)
    screen.row(RICH).wait_for()
    check_layout(screen, tmp_path / f"overview-{width}.png")
    screen.go(f"#/session/{RICH}")
    screen.page.locator(".u-over").wait_for()
    check_layout(screen, tmp_path / f"session-{width}.png")
    screen.go("#/history")
    screen.find("past-sessions").wait_for()
    check_layout(screen, tmp_path / f"history-{width}.png")


def test_overlap_check_finds_overlaps(screen: Screen) -> None:
    """Shows that the test above can fail."""
    screen.open()
    screen.find("empty").wait_for()
    screen.evaluate("document.querySelector('h2').style.marginBottom = '-20px'")
    assert screen.evaluate(OVERLAPS) != []


def test_first_paint_is_less_than_200_kb_and_fetched_once(screen: Screen) -> None:
    screen.open()
    screen.find("empty").wait_for()
    fetched = screen.evaluate(FETCHED)
    names = [name for name, _ in fetched]
    assert len(names) == len(set(names))
    assert sum(name.endswith((".js", ".css")) for name in names) >= 2
    total = sum(size for _, size in fetched)
    print(f"first paint: {total:,} bytes, {fetched}")
    assert 0 < total < MAX_FIRST_PAINT_BYTES
