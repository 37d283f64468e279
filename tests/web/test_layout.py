"""How it lies on the screen, from a telephone to a wide one, and how much is fetched for it."""

from pathlib import Path

import pytest

from .conftest import Opener
from .gallery import RICH, tell_gallery
from .screen import Screen
from .story import Story

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text()
FETCHED = """() => [...performance.getEntriesByType("navigation"),
  ...performance.getEntriesByType("resource")]
  .filter(({ name }) => !name.includes("/v1/"))
  .map(({ name, decodedBodySize }) => [name.split("/").at(-1), decodedBodySize])"""
FIRST_PAINT = 200_000


def check_layout(screen: Screen, picture: Path) -> None:
    """Nothing is wider than the screen, and no words lie on other words."""
    screen.page.screenshot(path=picture, full_page=True)
    wide, room = screen.evaluated("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room, picture
    assert screen.evaluated(OVERLAPS) == [], picture


@pytest.mark.parametrize("width", [360, 2560])
def test_nothing_overlaps_at_any_width(
    story: Story, opened: Opener, tmp_path: Path, width: int
) -> None:
    """On a narrow and on a wide screen no view scrolls sideways, and nothing overlaps."""
    screen = opened(width)
    screen.open()
    screen.find("empty").wait_for()
    check_layout(screen, tmp_path / f"empty-{width}.png")
    tell_gallery(story)
    screen.row(RICH).wait_for()
    check_layout(screen, tmp_path / f"overview-{width}.png")
    screen.go(f"#/session/{RICH}")
    screen.page.locator(".u-over").wait_for()
    check_layout(screen, tmp_path / f"session-{width}.png")
    screen.go("#/history")
    screen.find("past-sessions").wait_for()
    check_layout(screen, tmp_path / f"history-{width}.png")


def test_overlap_check_finds_overlaps(screen: Screen) -> None:
    """What looks for words that lie on words does find them."""
    screen.open()
    screen.find("empty").wait_for()
    screen.evaluated("document.querySelector('h2').style.marginBottom = '-20px'")
    assert screen.evaluated(OVERLAPS) != []


def test_first_paint_is_small(screen: Screen) -> None:
    """Index, script and style together are less than 200 kB, and each is fetched once."""
    screen.open()
    screen.find("empty").wait_for()
    fetched = screen.evaluated(FETCHED)
    names = [name for name, _ in fetched]
    assert len(names) == len(set(names))
    assert sum(name.endswith((".js", ".css")) for name in names) >= 2
    total = sum(size for _, size in fetched)
    print(f"first paint: {total:,} bytes, {fetched}")
    assert 0 < total < FIRST_PAINT
