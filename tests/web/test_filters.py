"""Filtering, searching and sorting sessions, also past ones."""

import time

import pytest
from playwright.sync_api import expect

from server.test_daemon import SESSION, hook_input, status_input

from .screen import Screen
from .story import Story, full

pytestmark = pytest.mark.slow


@pytest.fixture
def listed(story: Story, screen: Screen) -> Screen:
    """Four sessions on the screen."""
    now = time.time()
    story.report("a1", {**full(60), "at": now - 40}, agent="alpha", project="/home/u/one")
    story.report("a2", {**full(20), "at": now - 30}, agent="alpha", project="/home/u/two")
    story.report("b1", {**full(40), "at": now - 20}, agent="beta", project="/home/u/one")
    story.report("b2", {"type": "SessionSeen", "title": "Mend the Parser"}, agent="beta")
    screen.open()
    expect(screen.find("session")).to_have_count(4)
    return screen


def until_order(screen: Screen, *sessions: str) -> None:
    """Wait until exactly these are listed, in this order."""
    expect(screen.find("shown")).to_have_text(
        f"{len(sessions)} session{'' if len(sessions) == 1 else 's'}"
    )
    assert screen.order() == list(sessions)


def test_filters_show_only_matching_sessions(listed: Screen) -> None:
    agent, project = listed.find("filter-agent"), listed.find("filter-project")
    assert agent.locator("option").all_text_contents() == ["all agents", "alpha", "beta"]
    agent.select_option("alpha")
    until_order(listed, "a1", "a2")
    project.select_option("/home/u/one")
    until_order(listed, "a1")
    agent.select_option("")
    until_order(listed, "a1", "b1")
    project.select_option("")
    until_order(listed, "a1", "b1", "a2", "b2")


def test_filter_without_values_shows_all(story: Story, screen: Screen) -> None:
    story.report("bare", full(5))
    screen.open()
    options = screen.find("filter-project").locator("option")
    expect(options).to_have_text(["all projects"])


def test_search_shows_only_matching_sessions(listed: Screen) -> None:
    """All words must match, in any field and case."""
    listed.find("search").fill("parser MEND")
    until_order(listed, "b2")
    listed.find("search").fill("home alpha")
    until_order(listed, "a1", "a2")
    listed.find("search").fill("nothing like it")
    expect(listed.find("none-fits")).to_contain_text("4 sessions in total")
    listed.find("none-fits").get_by_role("button").click()
    until_order(listed, "a1", "b1", "a2", "b2")


ORDERS = {
    "latest": ("b2", "b1", "a2", "a1"),
    "agent": ("a1", "a2", "b1", "b2"),
    "project": ("b2", "a1", "b1", "a2"),
    "need": ("a1", "b1", "a2", "b2"),
}


def test_sessions_sort_by_each_order(listed: Screen) -> None:
    for sort, order in ORDERS.items():
        listed.find("sort").select_option(sort)
        until_order(listed, *order)


def test_filter_search_and_sort_are_in_the_address(listed: Screen) -> None:
    listed.find("filter-project").select_option("/home/u/one")
    listed.find("search").fill("u one")
    listed.find("sort").select_option("latest")
    until_order(listed, "b1", "a1")
    assert listed.page.url.endswith("#/?search=u+one&project=%2Fhome%2Fu%2Fone&sort=latest")
    listed.page.reload()
    until_order(listed, "b1", "a1")
    expect(listed.find("search")).to_have_value("u one")
    listed.find("open").first.click()
    listed.page.get_by_role("navigation", name="Views").get_by_text("Sessions").click()
    until_order(listed, "b1", "a1")
    listed.page.get_by_role("link", name="Brimline, all sessions").click()
    until_order(listed, "a1", "b1", "a2", "b2")


def test_host_is_not_shown_if_there_is_only_one(story: Story, screen: Screen) -> None:
    story.report("near", full(20))
    screen.open()
    expect(screen.row("near")).to_be_visible()
    expect(screen.find("filter-host")).to_have_count(0)
    assert story.view("near")["session"]["host"]
    expect(screen.row("near").locator(".host")).to_have_count(0)


def test_ended_sessions_are_shown_on_request(story: Story, screen: Screen) -> None:
    """Also those without events for a day."""
    story.report("now", full(10))
    story.daemon.hook(status_input(40_000), "statusline")
    story.daemon.hook(hook_input("SessionEnd", reason="exit"))
    story.report("older", {**full(30), "at": time.time() - 3 * 86_400})
    screen.open()
    until_order(screen, "now")
    screen.find("past").check()
    until_order(screen, "now", "older", SESSION)
    expect(screen.of(SESSION, "state")).to_have_attribute("data-state", "ended")
    screen.find("past").uncheck()
    until_order(screen, "now")
