"""Problems of the store on the page."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from drifted_homes import write_home

from .screen import Screen
from .story import Story, call, full

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("width", [1_280, 400])
def test_problem_is_shown_until_the_kept_file_is_removed(
    story: Story, screen: Screen, tmp_path: Path, width: int
) -> None:
    """Every view says what happened, where the file is and what to do."""
    story.daemon.stop()
    os.truncate(story.daemon.state / "brimline.db", 0)
    story.daemon.start()
    story.report("one", full(40))
    (problem,) = story.daemon.get("/v1/daemon")["problems"]
    screen.page.set_viewport_size({"width": width, "height": 800})
    for view in ("#/", "#/history", "#/session/one"):
        screen.open(view)
        banner = screen.find("problems")
        expect(banner).to_contain_text(problem["what"])
        expect(banner).to_contain_text(problem["advice"])
    screen.open()
    screen.row("one").wait_for()
    screen.page.screenshot(path=tmp_path / f"problem-{width}.png")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert screen.evaluate(overflow) <= 0
    Path(problem["kept"]).unlink()
    screen.page.reload()
    screen.row("one").wait_for()
    expect(screen.find("problems")).to_have_count(0)


def test_page_keeps_working_when_the_store_is_deleted(story: Story, screen: Screen) -> None:
    """The daemon restarts within its process."""
    story.report("one", full(10))
    screen.open()
    screen.row("one").wait_for()
    (story.daemon.state / "brimline.db").unlink()
    expect(screen.find("problems")).to_contain_text("was deleted or moved")
    expect(screen.find("connection")).to_have_attribute("data-connection", "live")
    story.report("one", call("c2", 40_000))
    expect(screen.of("one", "percent")).to_have_text("20.0%")


@pytest.mark.parametrize("width", [1_280, 400])
def test_file_that_is_not_understood_is_named(story: Story, screen: Screen, width: int) -> None:
    """The session is listed without a call, and says which file and what to do."""
    path = write_home("claude", story.daemon.home, "usage renamed")
    screen.page.set_viewport_size({"width": width, "height": 800})
    screen.open()
    words = "Brimline does not understand this version of Claude Code (2.1.325): "
    expect(screen.of(path.stem, "problem")).to_contain_text(f"{words}{path} cannot be read")
    expect(screen.of(path.stem, "percent")).to_have_text("unknown")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert screen.evaluate(overflow) <= 0
    screen.open(f"#/session/{path.stem}")
    expect(screen.find("problem")).to_contain_text("Update Brimline.")
