"""What every call carries: the table of a project in the history, and that of a session."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from server.running import Running
from sessions.carried_session import carried_session

from .screen import Screen
from .test_explanation import open_tab

pytestmark = pytest.mark.slow

PROJECT = "/home/u/shop"
OLD_PROJECT = "/srv/shop"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon with six sessions, each of which called one of two MCP servers."""
    running = Running(tmp_path_factory.mktemp("carried"))
    folder = running.home / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    for number in range(6):
        at = time.time() - 3_600 * (number + 1)
        lines = carried_session(f"s{number}", at, PROJECT, calls=["mcp__tides__high"])
        (folder / f"s{number}.jsonl").write_bytes(lines)
    old = carried_session("old", time.time() - 45 * 86_400, OLD_PROJECT)
    (folder / "old.jsonl").write_bytes(old)
    running.start()
    running.until("/v1/sessions", lambda views: len(views) == 7)
    yield running
    running.close()


@pytest.fixture(params=[1_280, 360])
def screen(browser: Browser, daemon: Running, request: pytest.FixtureRequest) -> Iterator[Screen]:
    yield from open_tab(browser, daemon, request.param)


def test_table_of_a_project_is_that_of_the_api(screen: Screen, daemon: Running) -> None:
    screen.open("#/history")
    screen.find("tools-project").select_option(PROJECT)
    parts = daemon.get(f"/v1/tools?project={PROJECT}")["parts"]
    rows = screen.find("carried").locator("tbody tr")
    expect(rows).to_have_count(len(parts))
    tides = screen.find("carried").locator('[data-name="tides"] td')
    expect(tides.nth(1)).to_have_text("MCP server")
    assert tides.all_inner_texts()[3:6] == ["6", "6", "6"]
    advice = screen.find("tools-advice").locator("li")
    assert advice.all_inner_texts() == [part["advice"] for part in parts if part["advice"]]
    expect(advice.first).to_contain_text("/mcp disable serena")
    width = screen.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert width <= 0


def test_project_without_a_recent_session_has_no_table(screen: Screen) -> None:
    """Two projects with the same folder are named by their paths."""
    screen.open("#/history")
    screen.find("since").select_option("90d")
    projects = screen.find("tools-project")
    expect(projects.locator("option")).to_have_text(["choose one", PROJECT, OLD_PROJECT])
    projects.select_option(OLD_PROJECT)
    panel = screen.find("tools")
    expect(panel).to_contain_text("No session of this project in the last 30 days.")


def test_agents_and_estimates_are_explained_if_there_are_any(screen: Screen) -> None:
    def answer(route: Route) -> None:
        reply = route.fetch()
        report = reply.json()
        report["parts"][0] |= {"agent": "codex", "is_estimated": True}
        route.fulfill(response=reply, json=report)

    screen.open("#/history")
    screen.find("tools-project").select_option(PROJECT)
    panel = screen.find("tools")
    heads = screen.find("carried").locator("th")
    expect(heads).to_have_text(["what", "kind", "tokens", "sessions", "called in", "calls", "cost"])
    expect(panel).not_to_contain_text("~")
    screen.page.route("**/v1/tools?*", answer)
    screen.page.reload()
    screen.find("tools-project").select_option(PROJECT)
    expect(heads.nth(2)).to_have_text("agent")
    expect(screen.find("carried").locator("tbody tr").first).to_contain_text("codex~")
    expect(panel).to_contain_text("~ estimated: divided as the client divides a fresh session.")


def test_parts_of_a_session_are_listed(screen: Screen) -> None:
    screen.open("#/session/s0")
    screen.page.get_by_text("What every call sends").click()
    rows = screen.find("system-parts").locator('[data-kind="MCP server"]')
    expect(rows).to_have_count(2)
    expect(screen.find("system-parts")).to_contain_text("skill knots")
