"""The page with 50 sessions of the five agents, as a day of work leaves them.

`BRIMLINE_PICTURES=FOLDER` also takes pictures of every view, width and colour scheme.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.filled_session import write_filled_session
from server.running import Running

from .conftest import Opener, Scheme
from .fifty_sessions import SESSIONS, write_sessions
from .screen import Screen
from .test_layout import check_layout

pytestmark = pytest.mark.slow

PICTURES = os.environ.get("BRIMLINE_PICTURES")
WIDTHS = (360, 1280, 2560) if PICTURES else (360,)
SCHEMES: tuple[Scheme, ...] = ("light", "dark") if PICTURES else ("light",)
PICTURE_HEIGHT = 1_500
MIN_TARGET_PX = 24  # WCAG 2.2, target size (minimum)

# The exceptions of WCAG: links within a sentence, and tiles, whose size is what they show.
SMALL_TARGETS = """(least) => [...document.querySelectorAll("button, select, input, summary")]
  .filter((element) => !element.matches(".link, .tile"))
  .filter((element) => element.checkVisibility())
  .map((element) => element.closest("label") ?? element)
  .map((element) => [element.outerHTML.slice(0, 120), element.getBoundingClientRect()])
  .filter(([, { width, height }]) => Math.min(width, height) < least)
  .map(([html, { width, height }]) => `${width}x${height}: ${html}`)"""

CUT_FIGURES = """() => [...document.querySelectorAll(".splits .table")]
  .filter((table) => table.scrollWidth > table.clientWidth)
  .map((table) => table.outerHTML.slice(0, 120))"""

MISPLACED_LABELS = """() => [...document.querySelectorAll(".usage")].flatMap((chart) => {
  const middle = (element) => {
    const { left, width } = element.getBoundingClientRect();
    return Math.round(left + width / 2);
  };
  const columns = [...chart.querySelectorAll(".usage-column")].map(middle);
  const labels = [...chart.querySelectorAll(".usage-labels span")];
  return labels.filter((label) => Math.abs(middle(label) - columns[label.dataset.at]) > 2)
    .map((label) => label.outerHTML);
})"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Running]:
    """A daemon in a home folder with 50 sessions, and one that has calls enough for a forecast."""
    running = Running(tmp_path)
    write_sessions(running.home, time.time())
    write_filled_session(running.home, "forecast", calls=12)
    running.start()
    yield running
    running.close()


def check_view(screen: Screen, name: str, folder: Path) -> None:
    """Nothing overlaps or is too wide, and everything can be hit with a finger."""
    check_layout(screen, folder / f"{name}-whole.png")
    if PICTURES:
        screen.page.screenshot(path=folder / f"{name}.png")
    assert screen.evaluate(CUT_FIGURES) == []
    assert screen.evaluate(SMALL_TARGETS, MIN_TARGET_PX) == []


def test_fifty_sessions_fit_every_view(daemon: Running, opened: Opener, tmp_path: Path) -> None:
    folder = Path(PICTURES) if PICTURES else tmp_path
    folder.mkdir(exist_ok=True)
    views = daemon.until("/v1/sessions", lambda views: len(views) > SESSIONS)
    forecast = next(view["session"]["id"] for view in views if view["calls_left"])
    for width in WIDTHS:
        for scheme in SCHEMES:
            screen = opened(width, scheme, calm=True)
            if PICTURES:
                screen.page.set_viewport_size({"width": width, "height": PICTURE_HEIGHT})
            screen.open()
            screen.until("() => document.querySelectorAll('.row').length > 3")
            screen.page.wait_for_timeout(1_200)  # rows find their places about once a second
            check_view(screen, f"overview-{width}-{scheme}", folder)
            screen.go(f"#/session/{forecast}")
            screen.page.locator(".u-over").wait_for()
            check_view(screen, f"session-{width}-{scheme}", folder)
            screen.go("#/history")
            screen.find("past-sessions").wait_for()
            check_view(screen, f"history-{width}-{scheme}", folder)
            assert screen.evaluate(MISPLACED_LABELS) == []
