"""The overview: context, state and changes of each session."""

import json
import random
import re
import time

import pytest
from playwright.sync_api import Locator, expect

from brimline.context.usage import format_occupancy, format_tokens
from server.test_daemon import SESSION, hook_input, status_input

from .conftest import Opener
from .screen import Screen
from .story import WINDOW_TOKENS, Story, call, full
from .transcripts import write_past

pytestmark = pytest.mark.slow

COLOURS = {
    "low": "rgb(58, 125, 74)",
    "medium": "rgb(160, 108, 0)",
    "high": "rgb(181, 32, 45)",
    "limit": "rgb(181, 32, 45)",
}
LEVELS = {0: "low", 49.9: "low", 50: "medium", 64.9: "medium", 65: "high", 100: "limit",
          130: "limit"}  # fmt: skip

FILL = """row => {
  const fill = row.querySelector(".bar-fill");
  const share = fill.getBoundingClientRect().width / fill.parentElement.clientWidth;
  return [getComputedStyle(fill).backgroundColor, Math.round(share * 1000) / 10];
}"""

# Notes the time at which a session's figure appears on the screen.
WHEN_SHOWN = """([session, words]) => {
  const shown = document.querySelector(`[data-session="${session}"] [data-testid="percent"]`);
  new MutationObserver(() => {
    if (shown.textContent === words) window.shownAt = Date.now();
  }).observe(shown, { characterData: true, childList: true, subtree: true });
}"""


def test_sessions_are_ordered_and_coloured_by_level(story: Story, screen: Screen) -> None:
    for percent in (65, 0, 130, 49.9, 100, 50, 64.9):
        story.report(f"at-{percent}", full(percent))
    screen.open()
    expect(screen.find("session")).to_have_count(len(LEVELS))
    assert screen.order() == [f"at-{percent}" for percent in sorted(LEVELS, reverse=True)]
    for percent, level in LEVELS.items():
        row = screen.row(f"at-{percent}")
        assert row.get_attribute("data-level") == level
        expect(screen.of(f"at-{percent}", "percent")).to_have_text(format_occupancy(percent))
        words = {"low": [], "limit": ["at limit"]}.get(level, [level])
        expect(screen.of(f"at-{percent}", "level")).to_have_text(words)
        colour, share = row.evaluate(FILL)
        assert colour == COLOURS[level]
        assert share == pytest.approx(min(percent, 100), abs=0.5)


def test_summary_counts_active_sessions_and_sums_up_today(story: Story, screen: Screen) -> None:
    story.report("low", full(10))
    story.report("high", full(70))
    story.report("idle", {**full(90), "at": time.time() - 7_200})
    write_past(story.daemon, "22222222-2222-4222-8222-222222222222", "/past")
    served = story.daemon.get("/v1/history?since=24h")["days"]
    screen.open()
    today = {row["day"]: row for row in served}.get(time.strftime("%Y-%m-%d"))
    expected = {
        "active": "2",  # the others have no call in the last hour
        "near the limit": "2",  # within the last day
        "cost today": f"${today['cost'] if today else 0:.2f}",
    }
    for name, text in expected.items():
        expect(screen.find("summary").locator(f'[data-figure="{name}"]')).to_have_text(text)


def test_usage_above_the_window_is_shown_and_named(story: Story, screen: Screen) -> None:
    story.report("full", full(100))
    story.report("over", full(130))
    screen.open()
    expect(screen.of("over", "over")).to_have_text("more than the window")
    expect(screen.of("over", "bar")).to_have_attribute("data-over", "")
    expect(screen.of("over", "tokens")).to_have_text("260K of 200K")
    expect(screen.of("full", "over")).to_have_count(0)


def test_limit_is_marked_and_turns_the_bar_red(story: Story, screen: Screen) -> None:
    story.report("near", full(83), agent="claude")
    story.report("at", full(84), agent="claude")
    screen.open()
    expect(screen.row("near")).to_have_attribute("data-level", "high")
    expect(screen.row("at")).to_have_attribute("data-level", "limit")
    bar = screen.of("at", "bar")
    track, limit = bar.bounding_box(), bar.locator(".bar-limit").bounding_box()
    assert track is not None
    assert limit is not None
    at = (limit["x"] + limit["width"] / 2 - track["x"]) / track["width"] * 100
    assert at == pytest.approx(story.view("at")["limit_at"], abs=0.5)
    # Its program has never taken a message, so none is pending.
    assert story.view("at")["threads"][0]["levels"] == [50.0, 65.0]
    assert (bar.locator(".bar-level").count(), bar.locator(".bar-pending").count()) == (2, 0)
    expect(screen.of("at", "unread")).to_have_count(0)


def test_limit_is_a_mark_with_a_label_and_the_row_says_how_near_it_is(
    story: Story, screen: Screen
) -> None:
    story.report("near", full(83), agent="claude")
    story.report("bare", {"type": "SessionSeen"})
    view = story.view("near")
    main = view["threads"][0]
    screen.open()
    row = screen.row("near")
    label = f"limit: {format_tokens(main['limit'])}, {view['limit_at']:g}% of the window"
    expect(row.locator(".bar-limit")).to_have_attribute("title", label)
    row.locator(".bar-limit").hover()
    expect(row.locator(".row-bar .bar")).to_have_attribute("aria-valuetext", re.compile(label))
    expect(screen.of("near", "of-limit")).to_have_text(f"of limit {main['percent_of_limit']:.1f}%")
    expect(row).not_to_contain_text("limit at")
    expect(screen.of("bare", "of-limit")).to_have_text("of limit unknown")


def test_row_has_the_title_and_below_it_folder_agent_and_model(
    story: Story, screen: Screen
) -> None:
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    seen = {"type": "SessionSeen", "title": "Mend the parser"}
    story.report("titled", seen, call("c1", 90_000, model=model), agent="a", project="/src/shop")
    story.report("3f1a0000-7d1f", full(5), agent="a")
    screen.open()
    expect(screen.of("titled", "open")).to_have_text("Mend the parser")
    expect(screen.of("titled", "about")).to_have_text("shop · a · sonnet-4-5")
    expect(screen.of("3f1a0000-7d1f", "open")).to_have_text("3f1a0000")
    expect(screen.page).to_have_title("45.0% Mend the parser · Brimline")


def test_gaps_are_between_what_needs_something_is_active_and_idle(
    story: Story, screen: Screen
) -> None:
    for percent in (90, 80, 20, 10):
        story.report(f"at-{percent}", full(percent))
    story.report("idle", {**full(30), "at": time.time() - 7_200})
    screen.open()
    expect(screen.find("session")).to_have_count(5)
    gaps = screen.page.locator(".row[data-gap]")
    names = "rows => rows.map(row => row.dataset.session)"
    assert gaps.evaluate_all(names) == ["at-20", "idle"]
    screen.page.keyboard.press("j")
    for percent in (80, 20):
        screen.page.keyboard.press("j")
        expect(screen.of(f"at-{percent}", "open")).to_be_focused()
    screen.find("sort").select_option("latest")
    expect(gaps).to_have_count(0)


def test_row_says_how_many_calls_are_left_or_why_that_is_unknown(
    story: Story, screen: Screen
) -> None:
    story.report("short", full(20), agent="claude")
    story.report("bare", {"type": "SessionSeen"})
    calls = [call(f"c{at}", 100_000 + 7_000 * at) for at in range(11)]
    story.report("near", *calls[:10], agent="claude")
    story.report("at", *calls, agent="claude")
    assert (story.view("near")["calls_left"], story.view("at")["calls_left"]) == (3, 0)
    screen.open()
    expect(screen.of("near", "calls-left")).to_have_text("about 3 calls left")
    expect(screen.of("near", "calls-left")).not_to_have_attribute("title", re.compile("."))
    expect(screen.of("at", "calls-left")).to_have_text("no calls left")
    expect(screen.of("short", "calls-left")).to_have_text("too few calls")
    expect(screen.of("bare", "calls-left")).to_have_text("awaiting the first reply")


@pytest.mark.parametrize("seed", range(3))
def test_order_is_the_same_on_every_surface(story: Story, screen: Screen, seed: int) -> None:
    """What compacts first is the first row, then come the active and the idle sessions."""
    chance, now = random.Random(seed), time.time()
    last_level, an_hour = 65.0, 3_600.0
    percents = {f"s{at}": round(chance.uniform(1, 99), 1) for at in range(12)}
    ages = {id: chance.choice([10, 1_800, 5_400, 40_000]) + chance.random() for id in percents}
    for id, percent in percents.items():
        story.report(id, {**full(percent), "at": now - ages[id]}, project=f"/p/{id}")
    expected = sorted(
        percents,
        key=lambda id: (
            (0, -percents[id])
            if percents[id] >= last_level
            else (1, -percents[id])
            if ages[id] < an_hour
            else (2, ages[id])
        ),
    )
    screen.open()
    assert screen.order() == expected
    views = story.daemon.get("/v1/sessions")
    ranked = sorted(views, key=lambda view: view["rank"])
    assert [view["session"]["id"] for view in ranked] == expected
    status = json.loads(story.daemon.answered("status", "--json").stdout)
    assert [row["session_id"] for row in status] == expected
    watched = json.loads(story.daemon.answered("watch", "--once", "--json").stdout)
    assert [view["session"]["id"] for view in watched] == expected
    needy = json.loads(story.daemon.answered("next", "--json").stdout)
    assert [row["session_id"] for row in needy] == [
        id for id in expected if percents[id] >= last_level
    ]


SLOW_LIST = """
const request = window.fetch;
window.fetch = async (input, init) => {
  if (String(input).includes("/v1/sessions")) await new Promise((go) => setTimeout(go, 2000));
  return request(input, init);
};
"""


def test_page_is_live_once_it_has_all_sessions(story: Story, screen: Screen) -> None:
    """The stream reports the newest ones before the list has arrived."""
    for at in range(3):
        story.report(f"s{at}", full(90 - at))
    screen.page.context.add_init_script(SLOW_LIST)
    screen.open()
    assert screen.order() == ["s0", "s1", "s2"]


def test_unknown_is_not_shown_as_zero(story: Story, screen: Screen) -> None:
    """Before the first reply, and after a compaction until the next."""
    story.report("new", {"type": "SessionSeen"}, project="/new")
    story.report("packed", full(70), {"type": "Compacted", "trigger": "auto"})
    story.report("known", full(0))
    screen.open()
    for session, words in (("new", "awaiting first reply"), ("packed", "awaiting next reply")):
        expect(screen.row(session)).to_have_attribute("data-level", "unknown")
        expect(screen.of(session, "percent")).to_have_text("unknown")
        expect(screen.of(session, "state")).to_contain_text(words)
    assert screen.order()[0] == "known"


def test_session_without_events_for_an_hour_is_stale(story: Story, screen: Screen) -> None:
    now = time.time()
    story.report("old", {**full(40), "at": now - 2 * 3_600 - 60})
    story.report("young", {**full(40), "at": now - 1_800})
    screen.open()
    expect(screen.of("old", "state")).to_have_attribute("data-state", "stale")
    expect(screen.of("old", "state")).to_have_text("stale, 2 h")
    expect(screen.of("old", "percent")).to_have_text("40.0%")
    expect(screen.of("young", "state")).to_have_attribute("data-state", "measured")


def test_change_is_shown_within_a_second(story: Story, screen: Screen) -> None:
    """The measured time is printed."""
    story.report("live", full(10))
    screen.open()
    expect(screen.of("live", "percent")).to_have_text("10.0%")
    screen.evaluate(WHEN_SHOWN, ["live", "25.0%"])
    reported_at = time.time()
    story.report("live", call("c2", WINDOW_TOKENS // 4))
    expect(screen.of("live", "percent")).to_have_text("25.0%")
    print(f"shown after {screen.evaluate('window.shownAt') / 1000 - reported_at:.2f} s")
    story.report("another", full(30))
    expect(screen.row("another")).to_be_visible()
    screen.until("() => document.querySelector('.row').dataset.session === 'another'")
    expect(screen.page).to_have_title("30.0% another · Brimline")


def test_compaction_is_shown_from_start_to_next_call(story: Story, screen: Screen) -> None:
    daemon = story.daemon
    daemon.hook(status_input(150_000), "statusline")
    screen.open()
    state = screen.of(SESSION, "state")
    expect(state).to_have_attribute("data-state", "measured")
    daemon.hook(hook_input("PreCompact", trigger="auto"))
    expect(state).to_have_attribute("data-state", "compacting")
    expect(screen.of(SESSION, "bar")).to_have_attribute("data-state", "compacting")
    daemon.hook(hook_input("SessionStart", source="compact"))
    expect(state).to_have_attribute("data-state", "unknown")
    expect(screen.of(SESSION, "percent")).to_have_text("unknown")
    daemon.hook(status_input(30_000), "statusline")
    expect(screen.of(SESSION, "percent")).to_have_text("15.0%")
    expect(screen.row(SESSION)).to_have_attribute("data-level", "low")


def test_row_counts_subagents_and_shows_the_fullest(story: Story, screen: Screen) -> None:
    calls = [call(f"c{at}", at * 20_000, thread=f"sub-{at}") for at in range(1, 7)]
    story.report("boss", full(60), *calls)
    story.report("alone", full(50), call("c1", 20_000, thread="sub"))
    screen.open()
    expect(screen.of("boss", "subagents")).to_have_text("6 subagents up to 60.0%")
    expect(screen.of("boss", "subagents")).to_have_attribute("data-level", "medium")
    expect(screen.of("alone", "subagents")).to_have_text("1 subagent 10.0%")
    expect(screen.of("boss", "percent")).to_have_text("60.0%")


ROW_HEIGHTS = """() => [...document.querySelectorAll(".row")].map((row) => [
  row.dataset.session, row.querySelector(".need") !== null, row.getBoundingClientRect().height,
])"""


def test_row_is_44_px_high_unless_the_session_needs_something(story: Story, opened: Opener) -> None:
    """With a title that is too long, subagents, a handoff and a message too."""
    title = {"type": "SessionSeen", "title": "Mend what the last change broke, all of it " * 3}
    story.report("plain", title, full(20), project="/home/u/a-rather-long-name-of-a-project")
    story.report("rich", title, full(55), call("c1", 20_000, thread="sub"), agent="claude")
    story.report("over", full(130))
    story.report("unknown", {"type": "SessionSeen"})
    path = story.daemon.folder / "handoff.md"
    path.write_text("Go on.")
    story.daemon.hand_over("plain", path)
    screen = opened(1_280)
    screen.open()
    expect(screen.find("session")).to_have_count(4)
    heights = {id: (needs, height) for id, needs, height in screen.evaluate(ROW_HEIGHTS)}
    assert heights == {
        "plain": (False, 44),
        "rich": (False, 44),
        "over": (True, 62),
        "unknown": (False, 44),
    }


def test_sparkline_has_the_limit_as_a_line(story: Story, screen: Screen) -> None:
    story.report(
        "limited", *(call(f"c{at}", 40_000 + 4_000 * at) for at in range(9)), agent="claude"
    )
    story.report("free", *(call(f"c{at}", 40_000 + 4_000 * at) for at in range(9)))
    screen.open()
    limit = screen.of("limited", "spark").locator(".spark-limit")
    end = screen.of("limited", "spark").locator("circle")
    assert float(str(limit.get_attribute("y1"))) < float(str(end.get_attribute("cy")))
    known = story.view("free")["threads"][0]["limit"] is not None
    expect(screen.of("free", "spark").locator(".spark-limit")).to_have_count(int(known))


def test_handoff_and_unread_are_shown(story: Story, screen: Screen) -> None:
    story.report("s1", full(10))
    screen.open()
    expect(screen.of("s1", "handoff")).to_have_count(0)
    expect(screen.of("s1", "unread")).to_have_count(0)
    path = story.daemon.folder / "handoff.md"
    path.write_text("Go on.")
    story.daemon.hand_over("s1", path)
    story.daemon.post("/v1/sessions/s1/messages", {"text": "hi"})
    expect(screen.of("s1", "handoff")).to_have_text("handoff fresh")
    expect(screen.of("s1", "unread")).to_have_text("1 unread")
    expect(screen.of("s1", "spark").locator("circle")).to_have_count(1)


@pytest.fixture
def beside(story: Story, opened: Opener) -> Screen:
    """Three sessions on a screen that has room for one of them beside the list."""
    for percent in (90, 30, 20):
        story.report(f"s{percent}", full(percent))
    screen = opened(2_560)
    screen.open()
    expect(screen.find("session")).to_have_count(3)
    return screen


def shown_beside(screen: Screen) -> Locator:
    return screen.find("pane").locator('[data-testid="session-page"]')


def test_wide_screen_shows_the_most_urgent_session_beside_the_list(
    story: Story, beside: Screen
) -> None:
    """It stays there when another one becomes more urgent."""
    expect(shown_beside(beside)).to_have_attribute("data-session", "s90")
    expect(beside.row("s90")).to_have_attribute("data-selected", "true")
    story.report("s20", {**full(99), "id": "c2"})
    beside.until("() => document.querySelector('.row').dataset.session === 's20'")
    expect(shown_beside(beside)).to_have_attribute("data-session", "s90")


def test_click_and_keys_choose_the_session_beside_the_list(beside: Screen) -> None:
    beside.of("s20", "open").click()
    expect(shown_beside(beside)).to_have_attribute("data-session", "s20")
    beside.page.keyboard.press("k")
    expect(shown_beside(beside)).to_have_attribute("data-session", "s30")
    assert beside.page.url.endswith("#/")
    beside.page.keyboard.press("Enter")
    expect(beside.page.locator("main")).to_have_attribute("data-view", "session")
    expect(beside.find("session-page")).to_have_attribute("data-session", "s30")
    beside.page.keyboard.press("Escape")
    shown_beside(beside).get_by_role("link", name="s30").click()
    expect(beside.page.locator("main")).to_have_attribute("data-view", "session")


def test_narrow_screen_has_no_session_beside_the_list(story: Story, opened: Opener) -> None:
    story.report("one", full(20))
    screen = opened(1_280)
    screen.open()
    screen.of("one", "open").click()
    expect(screen.page.locator("main")).to_have_attribute("data-view", "session")
    expect(screen.find("pane")).to_have_count(0)
