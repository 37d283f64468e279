"""The history: figures of the transcripts, and learned limits."""

import pytest
from playwright.sync_api import expect

from brimline.context.window import short_model

from .screen import Screen
from .story import Story, full
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
        line = screen.find("days").locator(f'[data-day="{day["day"]}"]')
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
        for split in served[name]:
            line = screen.find(f"by-{by}").locator(f'[data-key="{split["key"]}"]')
            assert line.locator("td").all_text_contents()[1:] == [
                str(split["sessions"]),
                f"{split['sent'] // 1_000}K",
                f"${split['cost']:.2f}",
                f"${split['misses']['cost']:.2f}" if split["misses"]["calls"] else "",
            ]
    names = screen.find("by-branch").locator("td:first-child").all_text_contents()
    assert names == ["feature/basket other", "feature/basket one"]
    assert served["total"]["misses"]["calls"] == 1
    cost = screen.find("totals").locator('[data-figure="cache misses"]')
    expect(cost).to_have_text(f"${served['total']['misses']['cost']:.2f}")
    expect(screen.find("limits").locator("tbody tr")).to_have_count(len(served["limits"]))
    screen.find("past-sessions").locator(f'[data-session="{ONE}"] a').click()
    expect(screen.find("session-page")).to_have_attribute("data-session", ONE)
    expect(screen.find("compactions")).to_contain_text("160,000")


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
