"""Text of an agent is shown as text: nothing of it runs, in any field, on any view."""

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from .screen import Screen
from .story import Story, call
from .transcripts import write_past

pytestmark = pytest.mark.slow

# Short enough for an agent's name.
EVIL = '"><img src=x onerror=hacked=1><script>hacked=1</script>&lt;'

LINKS = "[a](javascript:hacked=1) <a href='javascript:hacked=1'>b</a>"
MORE_EVIL = f"{EVIL} {LINKS} `{EVIL}`"
TAGS = """() => [...document.querySelectorAll("img, script, iframe, a[href^=javascript]")]
  .map((element) => element.outerHTML)"""
INJECT = """() =>
  document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=hacked=1>")"""
# Of a model only what is behind the last slash is shown.
MODEL, OTHER_MODEL = (f'"><img src=x onerror=hacked=1>&lt;-{name}' for name in ("model", "other"))


def report_evil(story: Story) -> Path:
    """Report a session whose every field is hostile; returns the path of its document."""
    daemon = story.daemon
    event = {"type": "SessionSeen", "title": f"{EVIL}-title", "version": f"{EVIL}-version"}
    packed = {"type": "Compacted", "trigger": "auto", "before": 100_000, "after": 20_000}
    main = [call(f"{EVIL}-{at}", 120_000, model=MODEL) for at in range(2)]
    subagent_call = call("plain", 20_000, model=OTHER_MODEL, thread=f"{EVIL}-thread")
    events = (event, main[0], packed, main[1], subagent_call)
    story.report(EVIL, *events, agent=f"{EVIL}-a", project=f"/p/{EVIL}", parent=f"{EVIL}-parent")
    path = daemon.folder / f"{EVIL}.md"
    path.parent.mkdir(parents=True)
    path.write_text(MORE_EVIL)
    place = f"/v1/sessions/{quote(EVIL, safe='')}"
    daemon.hand_over(EVIL, path, f"{EVIL}-author")
    daemon.post(f"{place}/messages", {"text": MORE_EVIL, "sender": f"{EVIL}-sender"})
    return path


def check_unharmed(screen: Screen) -> None:
    """Nothing ran, and no tag was added; our own script is the only one."""
    screen.page.wait_for_timeout(100)
    assert screen.evaluate("typeof hacked") == "undefined"
    (own,) = screen.evaluate(TAGS)
    assert own.startswith('<script type="module"')
    screen.check()


def shows_text(page: Page, selector: str, *words: str) -> None:
    """Whether a part of the page contains these words as text."""
    for each in words:
        expect(page.locator(selector).first).to_contain_text(each)


def test_hostile_text_is_text_on_the_overview(story: Story, screen: Screen) -> None:
    report_evil(story)
    screen.open()
    shows_text(screen.page, ".row", f"{EVIL}-a", MODEL, f"{EVIL}-title")
    expect(screen.find("open")).to_have_attribute("title", f"{EVIL}-title")
    expect(screen.find("about")).to_have_attribute("title", f"/p/{EVIL}")
    assert screen.find("session").get_attribute("data-session") == EVIL
    for field, value in (("agent", f"{EVIL}-a"), ("project", f"/p/{EVIL}")):
        screen.find(f"filter-{field}").select_option(value)
        expect(screen.find("session")).to_have_count(1)
    screen.find("search").fill(EVIL)
    expect(screen.find("session")).to_have_count(1)
    expect(screen.page).to_have_title(f"60.0% {EVIL}-title · Brimline")
    check_unharmed(screen)


def test_hostile_text_is_text_on_a_session(story: Story, screen: Screen) -> None:
    path = report_evil(story)
    screen.open()
    screen.find("open").click()
    page = screen.page
    page.locator(".u-over").wait_for()
    shows_text(page, ".head", f"{EVIL}-a", f"{EVIL}-title")
    facts = (MODEL, f"{EVIL}-a {EVIL}-version", f"/p/{EVIL}", f"{EVIL}-parent")
    shows_text(page, '[data-testid="session-facts"]', *facts)
    expect(page.locator('[data-fact="session"]')).to_have_text(EVIL)
    shows_text(page, '[data-testid="threads"]', f"{EVIL}-thread")
    screen.find("calls-panel").locator("summary").click()
    shows_text(page, '[data-testid="calls"]', MODEL, OTHER_MODEL)
    shows_text(page, '[data-testid="compactions"]', MODEL)
    shows_text(page, ".messages", MORE_EVIL, f"{EVIL}-sender")
    shows_text(page, ".prose", LINKS, EVIL)
    shows_text(page, '[aria-labelledby="handoff"]', f"by {EVIL}-author", str(path))
    shows_text(page, ".legend", f"{EVIL}-thread")
    screen.find("chart").focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    shows_text(page, '[data-testid="hover"]', f"{EVIL}-0", MODEL)
    shows_text(page, '[data-testid="json"]', "<img src=x onerror=hacked=1>")
    check_unharmed(screen)


def test_hostile_text_is_text_in_the_history(story: Story, screen: Screen) -> None:
    report_evil(story)
    write_past(story.daemon, "33333333-3333-4333-8333-333333333333", f"/p/{EVIL}", MODEL)
    screen.open("#/history")
    shows_text(screen.page, '[data-testid="limits"]', f"{EVIL}-a", f"{EVIL}-version", MODEL)
    shows_text(screen.page, '[data-testid="past-sessions"]', "script>&lt;", MODEL)
    check_unharmed(screen)


def test_hostile_address_is_harmless(story: Story, screen: Screen) -> None:
    screen.open(f"#/session/{quote(EVIL, safe='')}")
    expect(screen.find("missing")).to_contain_text("no session")
    expect(screen.find("missing")).to_contain_text("<img src=x onerror=hacked=1>")
    screen.bad.clear()  # Chromium writes each 404 on the console.
    check_unharmed(screen)


def test_text_is_shown_in_its_own_order(story: Story, screen: Screen) -> None:
    """A name cannot reverse the text after it: U+202E shows "gpj.exe" as "exe.jpg"."""
    seen = {"type": "SessionSeen", "version": "1\u202e2"}
    story.report("s1", seen, call("c1", 120_000, model="a\u202eb"), project="/p/\u2067gpj.exe")
    story.daemon.post("/v1/sessions/s1/messages", {"text": "one\u202etwo"})
    screen.open("#/session/s1")
    page = screen.page
    shows_text(page, '[data-testid="session-facts"]', "a\ufffdb", "1\ufffd2", "/p/\ufffdgpj.exe")
    shows_text(page, ".messages", "one\ufffdtwo")
    screen.go("#/")
    story.report("s1", call("c2", 130_000, model="c\u202ed"))  # as a change of the open page
    shows_text(page, ".row", "c\ufffdd")
    assert (
        screen.evaluate("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerHTML)") is False
    )


def test_content_policy_stops_injected_script(story: Story, screen: Screen) -> None:
    """Shows that the checks above can fail."""
    screen.open()
    screen.evaluate(INJECT)
    screen.until("() => window.violations.length > 0")
    assert screen.evaluate("typeof hacked") == "undefined"
    assert "script-src-attr" in screen.evaluate("window.violations.join()")
    assert any("Content Security Policy" in problem for problem in screen.bad)
    screen.page.reload()
    screen.bad.clear()
