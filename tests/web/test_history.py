"""The history: figures of the transcripts, and learned limits."""

import time
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import expect

from brimline.context.window import short_model
from brimline.install.client_setting import SettingRecord
from brimline.install.created_files import COMPACT_AT_RECORDS

from .conftest import Opener
from .screen import Screen
from .story import MODEL, Story, call, full
from .transcripts import write_past

pytestmark = pytest.mark.slow

ONE, OTHER = "44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"


def test_history_shows_the_figures_of_the_api(story: Story, screen: Screen) -> None:
    write_past(story.daemon, ONE, "/home/u/one")
    write_past(story.daemon, OTHER, "/home/u/other", "claude-opus-4-5", missed=20_000)
    story.daemon.until("/v1/sessions", lambda views: len(views) == 2)
    screen.open("#/history")
    served = story.daemon.get("/v1/history?since=30d")
    screen.page.get_by_text("Figures by day").click()
    for day in served["days"]:
        line = screen.find("periods").locator(f'[data-key="{day["day"]}"]')
        assert line.locator("td").all_inner_texts()[1:5] == [
            str(day["sessions"]),
            str(day["calls"]),
            f"{day['peak_sent'] // 1_000}K",
            str(day["compactions"]),
        ]
    assert {past["session"] for past in served["sessions"]} == {ONE, OTHER}
    for past in served["sessions"]:
        line = screen.find("past-sessions").locator(f'[data-session="{past["session"]}"]')
        expect(line).to_contain_text(short_model(past["model"]))
        expect(line).to_contain_text(f"${past['cost']:.2f}")
        expect(line).to_contain_text(past["title"])
    for name in ("sessions", "calls", "compactions"):
        figure = screen.find("totals").locator(f'[data-figure="{name}"]')
        expect(figure).to_have_text(f"{served['total'][name]}")
    splits = {"project": "projects", "branch": "branches", "model": "models", "agent": "agents"}
    for by, name in splits.items():
        screen.find("by").select_option(by)
        for split in served[name]:
            line = screen.find(f"by-{by}").locator(f'[data-key="{split["key"]}"]')
            assert line.locator("td").all_text_contents()[1:] == [
                str(split["sessions"]),
                f"{split['sent'] // 1_000}K",
                f"${split['cost']:.2f}",
                f"${split['misses']['cost']:.2f}" if split["misses"]["calls"] else "",
            ]
    screen.find("by").select_option("branch")
    names = screen.find("by-branch").locator("td:first-child")
    expect(names).to_have_text(["feature/basket other", "feature/basket one"])
    assert served["total"]["misses"]["calls"] == 1
    cost = screen.find("totals").locator('[data-figure="cache misses"]')
    expect(cost).to_have_text(f"${served['total']['misses']['cost']:.2f}")
    expect(screen.find("limits").locator("tbody tr")).to_have_count(len(served["limits"]))
    screen.find("past-sessions").locator(f'[data-session="{ONE}"] a').click()
    expect(screen.find("session-page")).to_have_attribute("data-session", ONE)
    expect(screen.find("compactions")).to_contain_text("160,000")


DAY_S = 86_400
HEIGHTS = """() => [...document.querySelectorAll(".usage-column")].map((column) => [
  column.dataset.key,
  column.firstElementChild
    ? column.getBoundingClientRect().bottom - column.firstElementChild.getBoundingClientRect().top
    : 0,
])"""


@pytest.fixture
def used(story: Story, screen: Screen) -> Screen:
    """The history of two agents that made 1 call three days ago, and 4 today."""
    now = time.time()
    story.report("old", {**call("c0", 100_000), "at": now - 3 * DAY_S}, agent="a", project="/p/a")
    story.report("a", *(call(f"c{at}", 100_000) for at in range(3)), agent="a", project="/p/a")
    story.report("b", call("c1", 100_000), agent="b", project="/p/b")
    screen.open("#/history")
    screen.find("usage").wait_for()
    return screen


def test_columns_are_as_high_as_the_api_says_and_days_without_use_are_empty(
    story: Story, used: Screen
) -> None:
    used.find("figure").select_option("calls")
    served = story.daemon.get("/v1/history/periods?since=30d&per=day&by=project")
    assert [each["total"]["calls"] for each in served] == [1, 0, 0, 4]
    heights = used.evaluate(HEIGHTS)
    assert [key for key, _ in heights] == [each["key"] for each in served]
    assert heights[0][1] == pytest.approx(heights[3][1] / 4, abs=1)
    assert [height for _, height in heights[1:3]] == [0, 0]
    expect(used.page.locator(".usage-ticks span")).to_have_text(["0", "1", "2", "3", "4"])


def test_columns_of_a_month_are_seen_on_a_narrow_screen(story: Story, opened: Opener) -> None:
    for days_ago in (0, 29):
        event = {**call("c1", 100_000), "at": time.time() - days_ago * DAY_S}
        story.report(f"s{days_ago}", event, project="/p/a")
    screen = opened(390)
    screen.open("#/history")
    expect(screen.page.locator(".usage-column")).to_have_count(30)
    for segment in screen.page.locator(".usage-column i").all():
        box = segment.bounding_box()
        assert box is not None
        assert box["width"] > 3
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390


def test_figures_of_a_column_are_shown_by_pointer_and_keys(used: Screen) -> None:
    used.find("figure").select_option("calls")
    figures = used.find("usage-figures")
    expect(figures).to_contain_text("calls 4")
    expect(figures.locator("li")).to_have_text(["a 3", "b 1"])
    used.page.locator(".usage-column").first.hover()
    expect(figures).to_contain_text("calls 1")
    expect(figures.locator("li")).to_have_text(["a 1"])
    used.page.mouse.move(0, 0)
    expect(figures).to_contain_text("calls 4")
    used.find("usage").focus()
    used.page.keyboard.press("ArrowLeft")
    expect(figures).to_contain_text("calls 0")
    used.page.keyboard.press("Home")
    expect(figures).to_contain_text("calls 1")


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_usage_is_shown_by_day_week_and_month(story: Story, used: Screen, per: str) -> None:
    used.find("per").select_option(per)
    used.find("by").select_option("agent")
    used.find("figure").select_option("calls")
    served = story.daemon.get(f"/v1/history/periods?since=30d&per={per}&by=agent")
    expect(used.page.locator(".usage-column")).to_have_count(len(served))
    figures = used.find("usage-figures")
    expect(figures).to_have_attribute("data-key", served[-1]["key"])
    expect(figures).to_contain_text(f"calls {served[-1]['total']['calls']}")


def test_limits_are_shown_without_sessions(story: Story, screen: Screen) -> None:
    packed = {"type": "Compacted", "trigger": "auto", "before": 150_000}
    story.report("one", full(75), packed, agent="my-agent")
    screen.open("#/history")
    expect(screen.find("limits")).to_contain_text("my-agent")
    expect(screen.find("limits")).to_contain_text("150K")


def test_client_that_compacts_elsewhere_is_named(story: Story, screen: Screen) -> None:
    seen = {"type": "SessionSeen", "version": "2.1.330"}
    for number in range(3):
        packed = {"type": "Compacted", "trigger": "auto", "before": 146_000 + number}
        story.report(f"s{number}", seen, full(70), packed, agent="claude")
    screen.open("#/history")
    (limit,) = story.daemon.get("/v1/limits")
    assert limit["drift"] == "compacted at 146K three times since 2.1.330, expected 167K"
    expect(screen.find("drifts")).to_contain_text(limit["drift"])


def write_compact_at(state: Path, limit: int) -> None:
    """Write what `compact-at` recorded an hour and a half ago, before the sessions of the past."""
    key = ("modelSettings", MODEL, "autoCompactWindow")
    at = time.time() - 5_400
    record = SettingRecord(agent="claude", path="/p", key=key, value=limit + 33_000, at=at,
                           model=MODEL, limit=limit, window=200_000)  # fmt: skip
    (state / COMPACT_AT_RECORDS).write_bytes(msgspec.json.encode({"settings": [record]}))


def test_setting_of_a_client_is_shown_with_what_happens(story: Story, screen: Screen) -> None:
    """The same sentence as in `compact-at --show` and `doctor`."""
    write_past(story.daemon, ONE, "/home/u/one")
    story.daemon.until("/v1/sessions", lambda views: len(views) == 1)
    shown = screen.find("compact-at")
    for limit, verdict, text in (
        (155_000, "works", "works: the last one compacted at 80% of the window"),
        (100_000, "elsewhere", "the last one compacted at 80% of the window, not at the limit"),
    ):
        write_compact_at(story.daemon.state, limit)
        screen.open("#/")
        screen.open("#/history")
        expect(shown).to_contain_text(text)
        (setting,) = story.daemon.get("/v1/history")["compact_at"]["settings"]
        assert (setting["verdict"], setting["text"]) == (verdict, text)
        expect(shown.locator('[role="alert"]')).to_have_count(int(verdict != "works"))
    (story.daemon.state / COMPACT_AT_RECORDS).write_text("{")
    screen.open("#/")
    screen.open("#/history")
    expect(shown.get_by_role("alert")).to_contain_text("cannot be decoded")
