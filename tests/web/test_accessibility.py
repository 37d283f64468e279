"""Accessibility: keyboard, screen reader, both colour schemes, reduced motion."""

import pytest
from playwright.sync_api import expect

from .chromium import require_axe
from .conftest import Opener, Scheme
from .gallery import RICH, report_gallery
from .screen import Screen
from .story import Story, full

pytestmark = pytest.mark.slow

FOUND = """async () => (await axe.run(document)).violations.map(
  ({ id, impact, nodes }) => [impact, id, nodes.map((node) => node.html.slice(0, 200))],
)"""
GRAVE = ("serious", "critical")

UNFOLD = "() => document.querySelectorAll('details').forEach((one) => { one.open = true; })"

MOVES = """() => [...document.querySelectorAll("*")].flatMap((element) => {
  const { transitionDuration, animationName } = getComputedStyle(element);
  return transitionDuration === "0s" && animationName === "none" ? [] : [element.outerHTML];
})"""


def faults(screen: Screen) -> list[object]:
    """The grave faults that axe-core finds."""
    return [each for each in screen.evaluate(FOUND) if each[0] in GRAVE]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390), ("light", 2560)])
def test_axe_finds_no_grave_faults_on_any_view(
    story: Story, opened: Opener, scheme: Scheme, width: int
) -> None:
    screen = opened(width, scheme)
    screen.open()
    screen.evaluate(require_axe())
    expect(screen.find("empty")).to_be_visible()
    faults_by_view = {"empty": faults(screen)}
    report_gallery(story)
    screen.row(RICH).wait_for()
    faults_by_view["overview"] = faults(screen)
    screen.page.keyboard.press("?")
    expect(screen.find("help")).to_be_visible()
    faults_by_view["help"] = faults(screen)
    screen.page.keyboard.press("Escape")
    screen.go(f"#/session/{RICH}")
    screen.page.locator(".u-over").wait_for()
    screen.evaluate(UNFOLD)
    expect(screen.find("calls")).to_be_visible()
    faults_by_view["session"] = faults(screen)
    screen.go("#/history")
    screen.find("past-sessions").wait_for()
    faults_by_view["history"] = faults(screen)
    assert faults_by_view == {view: [] for view in faults_by_view}


def test_axe_check_finds_faults(screen: Screen) -> None:
    """Shows that the test above can fail."""
    screen.open()
    screen.find("empty").wait_for()
    screen.evaluate(require_axe())
    screen.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert [each for each in faults(screen) if "button-name" in str(each)]


def focused(screen: Screen) -> str | None:
    """The session whose link has the focus."""
    return screen.evaluate("document.activeElement.closest('[data-session]')?.dataset.session")


def press(screen: Screen, *keys: str) -> None:
    for key in keys:
        screen.page.keyboard.press(key)


def test_every_view_is_reachable_by_keyboard(story: Story, screen: Screen) -> None:
    """j and k move, Enter opens, Esc returns to the same row; / ? h and o open the other views."""
    for percent in (30, 20, 10):
        story.report(f"s{percent}", full(percent))
    screen.open()
    expect(screen.find("session")).to_have_count(3)
    press(screen, "j")
    assert focused(screen) == "s30"
    press(screen, "j", "j", "j", "k")
    assert focused(screen) == "s20"
    press(screen, "Enter")
    expect(screen.find("session-page")).to_have_attribute("data-session", "s20")
    press(screen, "Escape")
    expect(screen.find("session")).to_have_count(3)
    screen.until("() => document.activeElement.matches('[data-session=s20] a')")
    press(screen, "/")
    expect(screen.find("search")).to_be_focused()
    screen.page.keyboard.type("S10 jk?")
    expect(screen.find("search")).to_have_value("S10 jk?")
    press(screen, *["Backspace"] * 4)
    expect(screen.find("session")).to_have_count(1)
    press(screen, "Enter")
    assert focused(screen) == "s10"
    press(screen, "/", "Escape")
    expect(screen.find("session")).to_have_count(3)
    press(screen, "?")
    expect(screen.find("help")).to_be_visible()
    press(screen, "Escape")
    expect(screen.find("help")).not_to_be_visible()
    press(screen, "h")
    expect(screen.find("history")).to_be_visible()
    press(screen, "o")
    expect(screen.find("session")).to_have_count(3)


def test_focus_stays_when_rows_move(story: Story, screen: Screen) -> None:
    story.report("low", full(10))
    story.report("high", full(20))
    screen.open()
    expect(screen.find("session")).to_have_count(2)
    press(screen, "j", "j")
    assert focused(screen) == "low"
    story.report("low", {**full(90), "id": "c2"})
    screen.until("() => document.querySelector('.row').dataset.session === 'low'")
    assert focused(screen) == "low"


def test_skip_button_moves_the_focus(story: Story, screen: Screen) -> None:
    story.report("one", full(10))
    screen.open()
    screen.row("one").wait_for()
    press(screen, "Tab", "Enter")
    expect(screen.page.locator("main")).to_be_focused()


def test_empty_page_says_what_to_do(screen: Screen) -> None:
    screen.open()
    for words in ("brimline setup", "brimline demo"):
        expect(screen.find("empty")).to_contain_text(words)
    screen.go("#/history")
    expect(screen.find("history")).to_contain_text("No sessions in this period.")


def test_reduced_motion_stops_animations(story: Story, opened: Opener) -> None:
    screen = opened(calm=True)
    report_gallery(story)
    for hash in ("#/", f"#/session/{RICH}", "#/history"):
        screen.open(hash)
        screen.page.wait_for_timeout(100)
        assert screen.evaluate("document.getAnimations().length") == 0
        assert screen.evaluate(MOVES) == []
