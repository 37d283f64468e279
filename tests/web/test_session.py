"""The page of a session: figures, marks and messages."""

import csv
import json
import re
import time
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from server.test_daemon import SESSION, hook_input, status_input

from .conftest import Opener
from .screen import Screen
from .story import Json, Story, call, full

pytestmark = pytest.mark.slow

FORMULAS = ("max_cache_read_plus_sums", "sum_cache_creation", "last_input", "result_sums",
            "effective")  # fmt: skip

PLACES = """() => {
  const over = document.querySelector(".u-over").getBoundingClientRect();
  return [over.x, over.y + over.height / 2, over.width];
}"""


FIGURES = """() => {
  const hover = document.querySelector('[data-testid="hover"]');
  const fields = [...hover.querySelectorAll("[data-field]")];
  return [hover.dataset.call, fields.map((field) => [field.dataset.field, field.textContent])];
}"""


def grown(story: Story, session: str = "one") -> list[Json]:
    """Report calls of two threads with a compaction between; returns the API's calls in order."""
    sizes = (20_000, 61_000, 105_000, 150_000)
    story.report(
        session, *(call(f"m{at}", sent) for at, sent in enumerate(sizes)), project="/p/one"
    )
    story.report(session, call("s0", 9_000, thread="scout"), call("m4", 160_000))
    packed = {"type": "Compacted", "trigger": "auto", "before": 161_000, "after": 20_000}
    story.report(session, packed, call("m5", 30_000), call("m6", 44_000))
    return sorted(story.timeline(session)["calls"], key=lambda row: row["at"])


def opened_at(screen: Screen, session: str) -> None:
    """A session's page with its timeline drawn."""
    screen.open(f"#/session/{quote(session, safe='')}")
    screen.page.locator(".u-over").wait_for()


def open_calls(screen: Screen) -> None:
    """Unfold the table of calls, which is at the end of the page."""
    screen.find("calls-panel").locator("summary").click()


def sent(row: Json) -> int:
    return row["input"] + row["cache_read"] + row["cache_write"]


def shown_figures(screen: Screen) -> tuple[str | None, Json]:
    """The call whose figures are shown, and the figures."""
    call, shown_values = screen.evaluate(FIGURES)
    return call, dict(shown_values)


def figures(row: Json) -> Json:
    """The figures of a call by the API."""
    names = ("input", "cache_read", "cache_write", "output")
    return {name: f"{row[name]:,}" for name in names} | {"sent": f"{sent(row):,}"}


def test_hover_shows_the_figures_of_the_call(story: Story, screen: Screen) -> None:
    rows = grown(story)
    opened_at(screen, "one")
    left, middle, width = screen.evaluate(PLACES)
    sources = {each["thread"]: each["source"] for each in story.view("one")["threads"]}
    room = (len(rows) - 1) * 0.01
    for place, row in enumerate(rows):
        at = left + width * (place + room) / (len(rows) - 1 + 2 * room)
        screen.page.mouse.move(at, middle)
        expect(screen.find("hover")).to_have_attribute("data-call", row["call"])
        assert shown_figures(screen) == (row["call"], figures(row))
        expect(screen.find("hover")).to_contain_text(f"· {row['thread']} · cycle {row['cycle']} ·")
        expect(screen.find("hover")).to_contain_text(f"source: {sources[row['thread']]}")


def test_reading_shows_each_figure_and_origin(story: Story, screen: Screen) -> None:
    daemon = story.daemon
    daemon.hook(status_input(150_000), "statusline")
    screen.open(f"#/session/{SESSION}")
    view = story.view(SESSION)
    (main,) = view["threads"]
    expect(screen.find("percent")).to_have_text(f"{main['percent']:.1f}%")
    expect(screen.find("tokens")).to_have_text(f"{main['sent']:,} of {main['window']:,} tokens")
    facts = screen.find("facts")
    for name in ("sent", "held"):
        expect(facts.locator(f'[data-fact="{name}"]')).to_have_text(f"{main[name]:,}")
    for name in ("window", "limit"):
        words = f"{main[name]:,}{main[f'{name}_why']}"
        expect(facts.locator(f'[data-fact="{name}"]')).to_have_text(words)
    of_limit = facts.locator('[data-fact="of limit"]')
    expect(of_limit).to_have_text(f"{main['percent_of_limit']:.1f}%")
    expect(facts.locator('[data-fact="source"]')).to_contain_text("status line, ")
    expect(screen.find("json")).to_contain_text('"percent": 75')


def test_quota_and_cache_are_shown_with_their_origin(story: Story, screen: Screen) -> None:
    at = int(time.time())
    cache = {"warm": True, "expires_at": at + 3_600, "recache_tokens_if_cold": 82_000}
    limits = {"five_hour": {"used_percentage": 62, "resets_at": at + 3_600}}
    sent = {**status_input(90_000), "rate_limits": limits, "prompt_cache": cache}
    story.daemon.hook(sent, "statusline")
    screen.open(f"#/session/{SESSION}")
    quota = screen.page.locator('[data-fact="quota"]')
    expect(quota).to_contain_text("5h 62.0% used, resets ")
    expect(quota).to_contain_text("of the account, reported ")
    shown = screen.page.locator('[data-fact="prompt cache"]')
    expect(shown).to_contain_text("82K tokens to write again if it expires")
    expect(shown).to_contain_text("reported by the client")


def test_pending_tokens_are_shown_apart_until_a_call_contains_them(
    story: Story, screen: Screen
) -> None:
    daemon = story.daemon
    daemon.hook(status_input(60_000), "statusline")
    screen.open(f"#/session/{SESSION}")
    expect(screen.find("tokens")).to_have_text("60,000 of 200,000 tokens")
    expect(screen.find("pending")).to_have_count(0)
    daemon.hook(hook_input("PostToolBatch", tool_calls=[{"tool_response": "x" * 30_000}]))
    expect(screen.find("pending")).to_have_text("+ about 12K pending")
    expect(screen.find("tokens")).to_have_text("60,000 of 200,000 tokens")
    expect(screen.find("percent")).to_have_text("30.0%")
    daemon.hook(status_input(71_000), "statusline")
    expect(screen.find("pending")).to_have_count(0)


def test_header_shows_what_was_used_and_why_there_is_no_forecast(
    story: Story, screen: Screen
) -> None:
    grown(story)
    opened_at(screen, "one")
    shown = screen.find("key-figures")
    expect(screen.find("forecast")).to_have_text("too few calls")
    expect(shown.locator('[data-figure="cost"]')).to_have_text(
        f"${story.timeline('one')['cost']:.2f}"
    )
    expect(shown.locator('[data-figure="duration"]')).to_contain_text(" s")
    for growth in range(5):
        story.report("one", call(f"g{growth}", 50_000 + 5_000 * growth))
    compaction = screen.find("next").locator('[data-end="compaction"]')
    expect(compaction).to_contain_text(f"about {story.view('one')['calls_left']} calls, ")
    story.report("one", *(call(f"h{at}", 71_000 + 1_000 * at) for at in range(64)))
    view = story.view("one")
    left, (low, high) = view["calls_left"], view["calls_left_range"]
    assert 0 < low < high <= 4 * low
    expect(compaction).to_contain_text(f"about {left} calls, ")
    expect(screen.find("forecast")).to_have_text(f"{low}-{high} calls, 8 times out of 10")
    screen.go("#/")
    about = screen.of("one", "calls-left")
    expect(about).to_have_text(f"about {left} calls left")
    expect(about).to_have_attribute("title", f"{low}-{high} calls, 8 times out of 10")
    about.hover()
    screen.of("one", "bar").first.click(position={"x": 5, "y": 5}, force=True)
    expect(screen.find("session-page")).to_be_visible()


def test_session_opens_at_the_top_with_its_title(story: Story, screen: Screen) -> None:
    story.report("one", {"type": "SessionSeen", "title": "Mend the parser"}, full(10))
    for at in range(40):
        story.report(f"other-{at}", full(90), project=f"/p/other-{at}")
    screen.open()
    expect(screen.page).to_have_title(re.compile(r"90\.0% other-\d+ · Brimline"))
    screen.evaluate("scrollTo(0, document.body.scrollHeight)")
    screen.row("one").click()
    expect(screen.find("session-page")).to_be_visible()
    assert screen.evaluate("scrollY") == 0
    expect(screen.page).to_have_title("10.0% Mend the parser · Brimline")


def test_origins_and_formulas_are_behind_audit(story: Story, screen: Screen) -> None:
    story.report("one", full(10))
    opened_at(screen, "one")
    for testid, part in (("audit", '[data-fact="window"]'), ("chart-options", "fieldset")):
        hidden = screen.find(testid).locator(part)
        expect(hidden).to_be_hidden()
        screen.find(testid).locator("summary").first.click()
        expect(hidden).to_be_visible()


def test_id_and_resume_command_are_copied(story: Story, screen: Screen) -> None:
    screen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    story.report(SESSION, full(10), agent="claude", project="/p/my work")
    screen.open(f"#/session/{SESSION}")
    for name, text in (
        ("Copy id", SESSION),
        ("Copy resume command", f"cd '/p/my work' && claude --resume {SESSION}"),
    ):
        screen.find("actions").get_by_role("button", name=name, exact=True).click()
        expect(screen.find("actions").locator("output")).to_have_text(f"Copied: {text}")
        assert screen.evaluate("navigator.clipboard.readText()") == text


def test_calls_are_exported(story: Story, screen: Screen) -> None:
    grown(story)
    opened_at(screen, "one")
    open_calls(screen)
    calls = story.timeline("one")["calls"]
    with screen.page.expect_download() as saved:
        screen.page.get_by_role("button", name="Export JSON").click()
    assert saved.value.suggested_filename == "one-calls.json"
    assert json.loads(saved.value.path().read_text()) == calls
    with screen.page.expect_download() as saved:
        screen.page.get_by_role("button", name="Export CSV").click()
    assert saved.value.suggested_filename == "one-calls.csv"
    rows = list(csv.DictReader(saved.value.path().read_text().splitlines()))
    assert [(row["call"], int(row["sent"])) for row in rows] == [
        (row["call"], sent(row)) for row in calls
    ]


def test_cleared_session_links_to_its_successor(story: Story, screen: Screen) -> None:
    daemon = story.daemon
    daemon.client(hook_input("SessionEnd", reason="clear"))
    daemon.client(hook_input("SessionStart", source="clear") | {"session_id": "fresh"})
    screen.open(f"#/session/{SESSION}")
    screen.find("successor").get_by_text("fresh").click()
    expect(screen.page.locator('[data-fact="session"]')).to_have_text("fresh")


def test_formulas_show_the_values_of_the_api(story: Story, screen: Screen) -> None:
    """A historic formula is drawn when it is switched on."""
    rows = grown(story)
    opened_at(screen, "one")
    served: dict[str, list[int]] = story.daemon.get("/v1/sessions/one/formulas")
    legend = screen.page.get_by_role("list", name="Legend")
    screen.find("chart-options").locator("summary").click()
    for name in FORMULAS:
        expect(legend).not_to_contain_text(name)
        screen.find("formulas").get_by_label(name).check()
        expect(legend).to_contain_text(name)
    main = [row["call"] for row in rows if row["thread"] == "main"]
    for id, values in all_figures(screen).items():
        for name in FORMULAS if id in main else ():
            assert values[name] == f"{served[name][main.index(id)]:,}"
    screen.find("formulas").get_by_label("effective").uncheck()
    expect(legend).not_to_contain_text("effective")


def all_figures(screen: Screen) -> dict[str, Json]:
    """The figures of every call, by the arrow keys from the last to the first."""
    screen.find("chart").focus()
    by_call: dict[str, Json] = {}
    for _ in range(20):
        call, values = shown_figures(screen)
        by_call[str(call)] = values
        screen.page.keyboard.press("ArrowLeft")
    return by_call


def marks(screen: Screen) -> set[str]:
    """The text of every mark."""
    screen.find("chart").focus()
    texts: set[str] = set()
    for _ in range(20):
        texts |= set(screen.page.locator(".figures-marks span").all_inner_texts())
        screen.page.keyboard.press("ArrowLeft")
    return texts


def test_every_kind_of_mark_is_shown(story: Story, screen: Screen) -> None:
    """A compaction, a level, a message, a handoff, a model and a cache miss."""
    daemon, path = story.daemon, story.daemon.folder / "handoff.md"
    path.write_text("Go on.")
    story.report(SESSION, call("m0", 20_000), call("m1", 105_000), agent="claude")
    daemon.hook(hook_input("UserPromptSubmit"))
    daemon.hand_over(SESSION, path, "me")
    packed = {"type": "Compacted", "trigger": "manual", "before": 105_000, "after": 20_000}
    opus = {"model": "claude-opus-4-5"}
    cold = call("m3", 31_000, **opus)
    cold["usage"] |= {"cache_read": 0, "cache_write": 30_988}
    story.report(SESSION, packed, call("m2", 30_000, **opus), cold, agent="claude")
    opened_at(screen, SESSION)
    (delivered,) = story.timeline(SESSION)["messages"]
    (compaction,) = story.timeline(SESSION)["compactions"]
    assert delivered["state"] == "delivered"
    assert marks(screen) == {
        "level 50%, 105,000 sent",
        f"message delivered from brimline: {delivered['text']}",
        "handoff handoff by me",
        f"compaction manual, 105K to {compaction['after'] // 1_000}K",
        "model switch sonnet-4-5 to opus-4-5",
        "cache miss 30K paid again for $0.17 after 0 s: tools or instructions changed",
    }
    line = screen.find("compactions").locator('[data-cycle="0"]')
    expect(line).to_contain_text(f"105,000{compaction['after']:,}manual")
    legend = screen.page.get_by_role("list", name="Legend")
    for words in ("C compaction", "L level", "@ message delivered", "H handoff", "M model switch",
                  "cache miss"):  # fmt: skip
        expect(legend).to_contain_text(words)


@pytest.mark.parametrize(("source", "kind"), [("compact", "compaction"), ("clear", "clear")])
def test_marks_reported_by_hooks_alone_are_shown(
    story: Story, screen: Screen, source: str, kind: str
) -> None:
    story.report(SESSION, call("m0", 20_000), agent="claude")
    story.daemon.hook(hook_input("SessionStart", source=source))
    assert story.timeline(SESSION)["compactions"] == []
    opened_at(screen, SESSION)
    (words,) = marks(screen)
    assert words.startswith(f"{kind} ")


def test_time_axis_and_zoom_work(story: Story, screen: Screen) -> None:
    rows = grown(story)
    opened_at(screen, "one")
    screen.find("chart-options").locator("summary").click()
    screen.find("axis").select_option("time")
    assert set(all_figures(screen)) == {row["call"] for row in rows}
    reset = screen.find("zoom-reset")
    expect(reset).to_be_disabled()
    screen.find("zoom-in").click()
    expect(reset).to_be_enabled()
    reset.click()
    expect(reset).to_be_disabled()


def test_new_call_is_shown(story: Story, screen: Screen) -> None:
    story.report("one", call("m0", 20_000))
    opened_at(screen, "one")
    story.report("one", call("m1", 40_000))
    expect(screen.find("hover")).to_have_attribute("data-call", "m1")
    open_calls(screen)
    expect(screen.find("calls").locator('[data-call="m1"]')).to_contain_text("40,000")
    expect(screen.find("percent")).to_have_text("20.0%")


def test_messages_are_sent_and_cancelled(story: Story, screen: Screen) -> None:
    text = "Look at <b>tests</b>,\nthen & stop."
    story.report("one", full(10))
    screen.open("#/session/one")
    form = screen.find("send")
    expect(form.get_by_role("button", name="Send")).to_be_disabled()
    form.get_by_label("Send a message to this agent").fill(text)
    form.get_by_label("urgent").check()
    form.get_by_role("button", name="Send").click()
    undelivered = "Queued, but nothing will deliver it. Its program takes no messages."
    expect(form).to_contain_text(undelivered)
    expect(form.get_by_label("Send a message to this agent")).to_have_value("")
    (message,) = story.daemon.get("/v1/sessions/one/messages")
    signed = f"[message from user] {text}"
    assert (message["text"], message["urgency"], message["state"]) == (signed, "urgent", "queued")
    row = screen.find("messages").locator(f'[data-message="{message["id"]}"]')
    expect(row.locator(".message-text")).to_have_text(signed)
    expect(screen.find("unread")).to_have_text("1 unread")
    row.get_by_role("button", name="Cancel").click()
    expect(row).to_have_attribute("data-state", "cancelled")
    expect(row.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(screen.find("unread")).to_have_count(0)
    (message,) = story.daemon.get("/v1/sessions/one/messages")
    assert message["state"] == "cancelled"
    story.daemon.post("/v1/sessions/one/messages/take", None)  # now it does
    form.get_by_label("Send a message to this agent").fill(text)
    form.get_by_role("button", name="Send").click()
    expect(form).to_contain_text("Queued.")


def test_handoff_is_shown_as_text(story: Story, screen: Screen) -> None:
    path = story.daemon.folder / "handoff.md"
    story.report("one", full(10))
    for text in ("The first.", "# Where we are\n\n- the **parser** is done\n\n```\nrm -rf x\n```"):
        path.write_text(text)
        story.daemon.hand_over("one", path, "me")
    screen.open("#/session/one")
    prose = screen.find("handoff-text")
    expect(prose.locator(".heading")).to_have_text("Where we are")
    expect(prose.locator("li strong")).to_have_text("parser")
    expect(prose.locator("pre")).to_have_text("rm -rf x")
    panel = screen.page.get_by_role("region", name="Handoff")
    expect(panel).to_contain_text("by me, ")
    expect(panel).to_contain_text(str(path))
    panel.get_by_label("document").select_option(index=1)
    expect(prose).to_have_text("The first.")


def test_session_ids_with_special_characters_work(story: Story, screen: Screen) -> None:
    for id in ("a/b?c=d#e 100% ü", "a b/timeline"):
        story.report(id, full(10))
        screen.open()
        screen.row(id).click()
        expect(screen.find("session-page")).to_have_attribute("data-session", id)
        check_answers(story, screen, id)


def check_answers(story: Story, screen: Screen, id: str) -> None:
    """The API answers every request of a session's page for this id."""
    expect(screen.find("hover")).to_have_attribute("data-call", "c")
    screen.page.get_by_label("Send a message to this agent").fill("hi")
    screen.find("send").get_by_role("button", name="Send").click()
    expect(screen.find("unread")).to_have_text("1 unread")
    screen.find("messages").get_by_role("button", name="Cancel").click()
    expect(screen.find("messages").locator("li")).to_have_attribute("data-state", "cancelled")
    screen.find("audit").locator("summary").first.click()
    link = screen.page.get_by_role("link", name="timeline").get_attribute("href")
    assert story.daemon.get(str(link))["calls"][0]["session"] == id


def test_unknown_session_shows_the_error(screen: Screen) -> None:
    screen.open("#/session/nobody")
    expect(screen.find("missing")).to_contain_text("no session 'nobody'")
    screen.bad.clear()  # Chromium writes each 404 on the console.
    screen.find("missing").get_by_role("link").click()
    expect(screen.find("empty")).to_be_visible()


# The parts of the page in the order in which they are seen: by line, then by column.
PARTS = """() => {
  const names = ".percent, .head > .bar, .ends, .head-act, .panel h2";
  const parts = [...document.querySelectorAll(names)];
  const place = (element) => {
    const { left, top } = element.getBoundingClientRect();
    return [Math.round(top), Math.round(left)];
  };
  return parts.map((element) => [...place(element), element.id || element.className])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
    .map(([, , name]) => name);
}"""
ORDER = ["percent", "bar", "ends", "head-act", "explanation", "timeline", "messages", "handoff",
         "compactions", "threads", "facts", "audit", "calls"]  # fmt: skip


@pytest.mark.parametrize("width", [390, 1280, 2560])
def test_page_answers_the_same_questions_in_the_same_order_at_any_width(
    story: Story, opened: Opener, width: int
) -> None:
    """How full, what stops it, what to do, what fills it, what happened; each call at the end."""
    grown(story)
    screen = opened(width)
    opened_at(screen, "one")
    expect(screen.find("explanation")).to_contain_text("no transcript")
    assert screen.evaluate(PARTS) == ORDER
    expect(screen.find("calls")).to_have_count(0)


def test_one_screen_has_how_full_it_is_what_fills_it_and_the_curve(
    story: Story, opened: Opener
) -> None:
    grown(story)
    screen = opened(1_280)
    opened_at(screen, "one")
    for part in ("next", "actions", "explanation", "chart"):
        box = screen.find(part).bounding_box()
        assert box is not None
        assert box["y"] < 800
    canvas = screen.find("chart").bounding_box()
    assert canvas is not None
    assert canvas["y"] + canvas["height"] <= 800


def test_page_shows_what_stops_the_session_first(story: Story, screen: Screen) -> None:
    story.report("one", full(92))
    opened_at(screen, "one")
    first, second = screen.find("next").locator("li").all()
    expect(first).to_have_text("compaction of window 92.0%the limit is unknown")
    expect(second).to_have_text(re.compile(r"cache until \d\d:\d\d, then 184K again"))
    expect(screen.find("next").get_by_test_id("need")).to_contain_text("brimline handoff --ask one")
    assert first.get_attribute("data-urgent") == "true"
