"""The page reconnects after a restart of the daemon."""

import shutil
import time

import pytest
from playwright.sync_api import Browser, expect

from .screen import Screen
from .story import Story, call, full

pytestmark = pytest.mark.slow


def check_lost(screen: Screen) -> None:
    """Wait until the page says that it is not connected."""
    screen.find("connection", '[data-connection="lost"]').wait_for()
    expect(screen.find("connection")).to_have_text("disconnected, reconnecting")


def test_page_shows_missed_and_new_changes_after_the_daemon_is_killed(
    story: Story, screen: Screen
) -> None:
    story.report("one", full(10))
    screen.open()
    screen.row("one").wait_for()
    story.daemon.kill()
    check_lost(screen)
    expect(screen.of("one", "percent")).to_have_text("10.0%")
    story.daemon.start()
    story.report("one", call("c2", 40_000))
    expect(screen.of("one", "percent")).to_have_text("20.0%")
    expect(screen.find("connection")).to_have_attribute("data-connection", "live")
    story.report("one", call("c3", 60_000))
    expect(screen.of("one", "percent")).to_have_text("30.0%")


def test_disconnected_page_says_what_to_do_and_ages_go_on(story: Story, screen: Screen) -> None:
    story.report("one", {**full(10), "at": time.time() - 45})
    screen.open()
    expect(screen.of("one", "state")).to_contain_text(" s ago")
    story.daemon.kill()
    check_lost(screen)
    banner = screen.find("disconnected")
    expect(banner).to_contain_text("Start the daemon with brimline serve --background; ")
    expect(screen.of("one", "state")).to_contain_text("1 min ago")
    screen.go("#/session/one")
    expect(banner).to_be_visible()
    story.daemon.start()
    expect(banner).to_have_count(0)
    expect(screen.find("connection")).to_have_attribute("data-connection", "live")


def test_page_shows_the_new_store_after_a_restart(story: Story, screen: Screen) -> None:
    for at in range(20):
        story.report("old", call(f"c{at}", 1_000 * at))
    screen.open()
    screen.row("old").wait_for()
    story.daemon.kill()
    check_lost(screen)
    secret = (story.daemon.state / "secret").read_bytes()
    shutil.rmtree(story.daemon.state)
    story.daemon.state.mkdir(mode=0o700)
    (story.daemon.state / "secret").write_bytes(secret)
    (story.daemon.state / "secret").chmod(0o600)
    story.daemon.start()
    story.report("new", full(20))
    expect(screen.row("old")).to_have_count(0)
    expect(screen.of("new", "percent")).to_have_text("20.0%")
    story.report("new", call("c2", 60_000))
    expect(screen.of("new", "percent")).to_have_text("30.0%")


def test_session_page_reconnects(story: Story, screen: Screen) -> None:
    story.report("one", call("c1", 20_000))
    screen.open("#/session/one")
    expect(screen.find("hover")).to_have_attribute("data-call", "c1")
    screen.page.locator(".u-over").wait_for()
    story.daemon.kill()
    check_lost(screen)
    story.daemon.start()
    story.report("one", call("c2", 40_000))
    expect(screen.find("hover")).to_have_attribute("data-call", "c2")


def test_timeline_loads_after_a_restart(story: Story, screen: Screen) -> None:
    """The session is first opened while the daemon is down."""
    story.report("one", call("c1", 20_000))
    screen.open()
    screen.row("one").wait_for()
    story.daemon.kill()
    check_lost(screen)
    screen.row("one").click()
    expect(screen.find("session-page")).to_contain_text("The daemon does not answer.")
    story.daemon.start()
    screen.page.locator(".u-over").wait_for()


def test_failed_timeline_offers_a_reload(story: Story, screen: Screen) -> None:
    story.report("one", call("c1", 20_000))
    screen.page.route("**/assets/chart-*", lambda route: route.abort())
    screen.open("#/session/one")
    expect(screen.find("chart")).to_contain_text("The timeline could not be loaded.")
    expect(screen.find("hover")).to_have_attribute("data-call", "c1")
    screen.page.unroute_all()
    screen.bad.clear()  # Chromium writes what it could not fetch on the console.
    screen.find("chart").get_by_role("button").click()
    screen.page.locator(".u-over").wait_for()


def test_page_opened_before_the_daemon_fills_later(story: Story, screen: Screen) -> None:
    screen.open()
    screen.find("empty").wait_for()
    story.daemon.kill()
    check_lost(screen)
    screen.go("#/history")
    expect(screen.find("history")).to_contain_text("The daemon does not answer.")
    screen.go("#/")
    story.daemon.start()
    story.report("one", full(10))
    screen.row("one").wait_for()


def test_new_secret_signs_the_browser_out(story: Story, browser: Browser) -> None:
    """The page says how to sign in."""
    daemon = story.daemon
    context = browser.new_context()
    page = context.new_page()
    page.goto(daemon.new_link())
    page.locator('[data-connection="live"]').first.wait_for()
    daemon.stop()
    (daemon.state / "secret").unlink()
    daemon.start()
    expect(page.locator("pre")).to_have_text("brimline open")
    context.close()
