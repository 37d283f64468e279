"""The page of a fleet's server: figures by group, who needs a handoff, the fullest sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from fleet_server import FleetProcess, new_token
from postgres_server import new_schema

from .chromium import require_axe
from .conftest import Scheme
from .fleet_story import fill_sessions, write_fleet
from .screen import Screen
from .test_accessibility import faults
from .test_layout import check_layout

SCHEMES: tuple[Scheme, ...] = ("light", "dark")

pytestmark = pytest.mark.slow


@contextmanager
def running_fleet(postgres: str, folder: Path, sessions: int) -> Generator[tuple[str, str, str]]:
    """Yield the address of a new server, a token, and the URL of its database."""
    # Playwright has an event loop in this thread already.
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        url = thread.submit(stack.enter_context, new_schema(postgres)).result()
        try:
            token = thread.submit(asyncio.run, write_fleet(url, sessions)).result()
            server = FleetProcess(url, folder)
            try:
                yield server.url, token, url
            finally:
                server.close()
        finally:
            thread.submit(stack.close).result()


@pytest.fixture(scope="module")
def fleet(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, str]]:
    """A server with 120 sessions; yields its address, a token, and one of another organisation."""
    with (
        running_fleet(postgres, tmp_path_factory.mktemp("fleet"), 120) as (address, token, url),
        ThreadPoolExecutor(1) as thread,
    ):
        yield address, token, thread.submit(new_token, url, "without sessions", "read").result()


@pytest.fixture
def screen(browser: Browser, fleet: tuple[str, str, str]) -> Iterator[Screen]:
    """A signed-in tab."""
    address, token, _ = fleet
    context = browser.new_context(viewport={"width": 360, "height": 800})
    form: dict[str, str | float | bool] = {"token": token}
    assert context.request.post(f"{address}/sign-in", form=form, headers={"origin": address}).ok
    screen = Screen(context, urlsplit(address).port or 0, f"{address}/healthz")
    yield screen
    screen.check()
    context.close()


def test_machines_are_listed_the_silent_ones_first(screen: Screen) -> None:
    """By default those that are silent for a day or whose token ends; all on request."""
    screen.open("#/fleet")
    page = screen.page
    panel = page.get_by_test_id("machines")
    expect(panel.locator("h2")).to_have_text("Machines 7, 1 silent")
    rows = panel.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("laptop-2")
    expect(panel.locator("tr[data-machine=m5] [data-alert]")).to_have_text("3 d left")
    panel.get_by_test_id("machines-shown").select_option("all")
    expect(rows).to_have_count(7)
    expect(panel.locator("tr[data-machine=m4]")).to_contain_text("claude 2.1.5, codex 2.0.9")
    expect(panel.locator("tr[data-machine=m4] [data-alert] span")).to_have_attribute(
        "title", "out of range"
    )


def test_group_opens_its_sessions(screen: Screen) -> None:
    """A team and a user can be chosen in the list, too; the address keeps the choice."""
    screen.open("#/fleet")
    page = screen.page
    page.get_by_test_id("fleet-groups").get_by_role("link", name="mobile").click()
    expect(page.get_by_test_id("filter-team")).to_have_value("mobile")
    shown = page.get_by_test_id("shown")
    expect(shown).not_to_have_text("120 sessions")
    amount = int(shown.inner_text().split()[0])
    assert 0 < amount < 40
    page.get_by_test_id("filter-user").select_option(index=1)
    expect(shown).not_to_have_text(f"{amount} sessions")
    assert "team=mobile&user=" in page.url
    screen.open("#/fleet")
    page.get_by_test_id("fleet-by").select_option("version")
    page.get_by_test_id("fleet-groups").get_by_role("link", name="claude 2.1.5").click()
    expect(page.get_by_test_id("filter-agent")).to_have_value("claude")
    expect(page.get_by_test_id("filter-version")).to_have_value("2.1.5")
    expect(shown).to_have_text("60 sessions")


def test_branch_opens_its_sessions(screen: Screen) -> None:
    """As many as the group counts; those of the same branch of another project are not shown."""
    screen.open("#/fleet")
    page = screen.page
    page.get_by_test_id("fleet-by").select_option("branch")
    row = page.locator("tr[data-key='checkout: main']")
    amount = int(row.locator("td").nth(1).inner_text())
    row.get_by_role("link").click()
    expect(page.get_by_test_id("filter-branch")).to_have_value("checkout: main")
    expect(page.get_by_test_id("shown")).to_have_text(f"{amount} sessions")


def test_history_of_a_fleet_shows_what_groups_used(screen: Screen) -> None:
    """By group and period, of a span or of days; the CSV file has the same choices."""
    screen.open("#/history")
    page = screen.page
    page.get_by_test_id("by").select_option("agent")
    groups = page.get_by_test_id("usage-groups").locator("tbody tr")
    expect(groups).to_have_count(2)
    expect(page.locator("[data-key=claude]")).to_contain_text("$24.00")
    expect(page.get_by_test_id("totals")).to_contain_text("$48.00")
    page.get_by_test_id("since").select_option("days")
    page.get_by_test_id("day-from").fill("2020-01-01")
    page.get_by_test_id("day-to").fill("2020-01-31")
    expect(page.get_by_test_id("fleet-usage")).to_contain_text("Nothing was used")
    page.get_by_test_id("since").select_option("90d")
    page.get_by_test_id("per").select_option("month")
    with page.expect_download() as download:
        page.get_by_text("CSV").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert lines[0].startswith("month,agent,sessions,")
    assert sum(int(line.split(",")[3]) for line in lines[1:]) == 120


def test_ended_sessions_of_a_fleet_are_those_that_it_has_already(screen: Screen) -> None:
    """A server lists the sessions of the last 24 hours, and refuses to list all of them."""
    asked: list[str] = []
    screen.page.on("request", lambda request: asked.append(request.url))
    screen.page.goto(f"{screen.address}#/?past=1")
    expect(screen.find("shown")).to_have_text("120 sessions")
    expect(screen.page.get_by_label("ended", exact=True)).to_be_checked()
    assert [url for url in asked if "since=all" in url] == []


def test_open_fleet_page_costs_at_most_20_kb_in_10_s(
    browser: Browser, postgres: str, tmp_path: Path
) -> None:
    """With 500 active sessions, all of which change meanwhile; compressed, as they are sent."""
    with (
        running_fleet(postgres, tmp_path, 500) as (address, token, url),
        ThreadPoolExecutor(1) as thread,
        browser.new_context() as context,
    ):
        form: dict[str, str | float | bool] = {"token": token}
        assert context.request.post(f"{address}/sign-in", form=form, headers={"origin": address}).ok
        page, answered = context.new_page(), list[Request]()
        page.goto(f"{address}/#/fleet")
        expect(page.locator("#fullest")).to_contain_text("20 of 500 active")
        page.on("requestfinished", lambda request: answered.append(request))
        thread.submit(asyncio.run, write_fleet(url, 500)).result()  # seen again, some seconds later
        page.wait_for_timeout(10_500)
        paths = {urlsplit(each.url).path for each in answered}
        assert "/v1/fleet" in paths
        assert paths.isdisjoint({"/v1/stream", "/v1/sessions"})
        assert 1_000 < sum(each.sizes()["responseBodySize"] for each in answered) < 20_000


@pytest.fixture(scope="module")
def large_fleet(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, str]]:
    """A server with 700 sessions: its address, a token, and the URL of its database."""
    with running_fleet(postgres, tmp_path_factory.mktemp("large"), 700) as running:
        yield running


@pytest.fixture
def large_page(browser: Browser, large_fleet: tuple[str, str, str]) -> Iterator[Page]:
    """A signed-in tab of a large fleet, still empty."""
    address, token, _ = large_fleet
    with browser.new_context(base_url=address) as context:
        form: dict[str, str | float | bool] = {"token": token}
        assert context.request.post("/sign-in", form=form, headers={"origin": address}).ok
        yield context.new_page()


def test_sessions_of_a_fleet_are_loaded_as_far_as_they_are_shown(large_page: Page) -> None:
    """The most urgent 200, more on request, all if a filter or an order needs them; each once."""
    answered = list[Request]()
    large_page.on("requestfinished", lambda request: answered.append(request))

    def lists() -> list[Request]:
        return [each for each in answered if urlsplit(each.url).path == "/v1/sessions"]

    def loaded_bytes() -> int:
        return sum(each.sizes()["responseBodySize"] for each in lists())

    with large_page.expect_request("**/v1/stream?from=now"):
        large_page.goto("/#/")
    shown = large_page.get_by_test_id("shown")
    expect(shown).to_have_text("200 most urgent sessions")
    expect(large_page.get_by_test_id("summary")).to_have_count(0)
    first = loaded_bytes()
    assert 2_000 < first < 40_000
    large_page.get_by_role("button", name="Show more sessions").click()
    expect(shown).to_have_text("400 most urgent sessions")
    assert loaded_bytes() < 2.5 * first
    large_page.get_by_test_id("filter-agent").select_option("codex")
    expect(shown).to_have_text("350 sessions")
    expect(large_page.get_by_role("button", name="Show more sessions")).to_have_count(0)
    urls = [each.url for each in lists()]
    assert len(set(urls)) == len(urls)
    large_page.get_by_test_id("filter-agent").select_option("")
    expect(shown).to_have_text("700 sessions")


def test_sessions_that_cannot_be_loaded_are_missed(large_page: Page) -> None:
    """The page says so, and loads them on request; until then its words are about a part."""
    large_page.route("**/v1/sessions?*before=*", lambda route: route.fulfill(status=503))
    large_page.goto("/#/?search=s699")
    nothing = large_page.get_by_test_id("none-fits")
    expect(nothing.get_by_role("alert")).to_have_text("More sessions could not be loaded.")
    expect(nothing).to_contain_text("No matching sessions so far")
    expect(nothing).to_contain_text("None of the 200 sessions that are loaded.")
    expect(large_page.get_by_test_id("shown")).to_have_text("0 sessions so far")
    large_page.unroute("**/v1/sessions?*before=*")
    nothing.get_by_role("button", name="Load more sessions").click()
    expect(large_page.locator(".row")).to_have_attribute("data-session", "s699")
    expect(large_page.get_by_test_id("shown")).to_have_text("1 session")


def test_session_that_was_not_loaded_is_shown_when_it_gets_urgent(
    large_page: Page, large_fleet: tuple[str, str, str]
) -> None:
    """One is loaded alone, many with the list; those that were loaded stay."""
    large_page.goto("/#/")
    shown = large_page.get_by_test_id("shown")
    expect(shown).to_have_text("200 most urgent sessions")
    expect(large_page.locator(".connection")).to_have_attribute("data-connection", "live")
    asked = list[str]()
    large_page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, fill_sessions(large_fleet[2], ["s650"])).result()
        expect(shown).to_have_text("201 most urgent sessions")
        first = large_page.locator(".row").first
        expect(first).to_have_attribute("data-session", "s650")
        assert "/v1/sessions/s650" in asked
        many = [f"s{number}" for number in range(600, 630)]
        thread.submit(asyncio.run, fill_sessions(large_fleet[2], many)).result()
    expect(first).to_have_attribute("data-session", "s600")
    expect(shown).to_have_text("200 most urgent sessions")
    assert sum(path.startswith("/v1/sessions/s6") for path in asked) == 1


def test_fleet_page_shows_groups_and_asks_for_a_handoff(screen: Screen, tmp_path: Path) -> None:
    """It opens with the fleet, and a session's page hides what needs the machine's files."""
    page = screen.page
    page.goto(screen.address)
    groups = screen.find("fleet-groups").locator("tbody tr")
    expect(groups).to_have_count(5)
    assert page.url.endswith("#/fleet")
    expect(screen.find("fleet-total").locator('[data-figure="active sessions"]')).to_have_text(
        "120"
    )
    for width in (360, 820, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        check_layout(screen, tmp_path / f"fleet-{width}.png")
    screen.evaluate(require_axe())
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert faults(screen) == [], scheme
    screen.find("fleet-by").select_option("user")
    expect(groups).to_have_count(20)
    page.get_by_role("button", name="Show all 23").click()
    expect(groups).to_have_count(23)
    screen.find("fleet-by").select_option("branch")
    expect(groups).to_have_count(11)
    assert groups.first.get_attribute("data-key") == ""  # a third has no branch
    page.set_viewport_size({"width": 360, "height": 800})
    check_layout(screen, tmp_path / "fleet-branches.png")
    page.set_viewport_size({"width": 1280, "height": 800})
    screen.find("fleet-by").select_option("version")
    expect(groups).to_have_count(2)
    assert {row.get_attribute("data-key") for row in groups.all()} == {
        "claude 2.1.5",
        "codex 2.0.9",
    }
    expect(page.locator("#fullest")).to_contain_text("20 of 120 active")
    page.get_by_role("button", name="Show the fullest 100").click()
    expect(page.locator("#fullest")).to_contain_text("100 of 120 active")
    page.locator("#fullest").evaluate("title => title.scrollIntoView()")
    expect(screen.row("s2")).to_be_attached()
    assert screen.order()[:3] == ["s0", "s1", "s2"]
    assert len(screen.order()) < 100  # only those near the screen are drawn
    requests = screen.find("needs-handoff").locator("li")
    expect(requests.nth(1)).to_contain_text("telemetry only")
    expect(requests.nth(2)).to_contain_text("accepts no messages")
    assert [requests.nth(number).get_by_role("button").count() for number in (1, 2)] == [0, 0]
    requests.nth(0).get_by_role("button").click()
    expect(requests.nth(0).locator("output")).to_have_text("Asked.")
    requests.nth(0).get_by_role("link").click()
    expect(screen.find("session-page")).to_be_visible()
    expect(screen.find("messages")).to_contain_text("Write a handoff document now")
    assert screen.find("explanation").count() == 0
    page.keyboard.press("Escape")
    expect(screen.find("fleet")).to_be_visible()
    page.keyboard.press("o")
    expect(screen.find("shown")).to_have_text("120 sessions")
    page.keyboard.press("f")
    expect(groups).to_have_count(2)  # the choice is kept


def test_person_signs_in_by_the_form_and_out_on_the_page(
    browser: Browser, fleet: tuple[str, str, str]
) -> None:
    address, token, _ = fleet
    page = browser.new_page()
    page.goto(address)
    page.get_by_label("Your token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("the token is unknown")).to_be_visible()
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_test_id("daemon")).to_contain_text("signed in as Ada of acme")
    (cookie,) = page.context.cookies()
    assert token not in str(cookie)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()
    assert page.context.cookies() == []
    page.close()


def test_page_without_sessions_says_how_machines_report_them(
    browser: Browser, fleet: tuple[str, str, str]
) -> None:
    """Not how to set up this machine: the server has sessions of other machines only."""
    address, _, token = fleet
    page = browser.new_page()
    page.goto(address)
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_test_id("empty")).to_contain_text("No sessions in this span")
    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_test_id("empty")).to_contain_text("No sessions yet")
    expect(page.get_by_test_id("empty")).to_contain_text("brimline fleet snippet")
    page.close()
