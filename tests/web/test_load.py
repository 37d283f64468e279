"""Hundreds of sessions and dozens of changes per second: no change is lost."""

import random
import time

import pytest
from playwright.sync_api import expect

from .screen import Screen
from .story import Story, call

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("web")]

SESSIONS, A_SECOND, SECONDS = 500, 50, 4

SHOWN = """(wanted) => {
  const rows = [...document.querySelectorAll(".row")];
  const percents = rows.map((row) => [
    row.dataset.session, row.querySelector('[data-testid="percent"]').textContent,
  ]);
  return rows.length === Object.keys(wanted).length
    && percents.every(([id, percent]) => wanted[id] === percent);
}"""
IN_ORDER = """() => {
  const percents = [...document.querySelectorAll(".row .percent")];
  const shown = percents.map((percent) => parseFloat(percent.textContent));
  return shown.every((percent, at) => at === 0 || percent <= shown[at - 1]);
}"""


def test_page_shows_every_change_under_load(story: Story, screen: Screen) -> None:
    chance = random.Random(5)
    names = [f"s{at}" for at in range(SESSIONS)]
    story.report_all([story.event(name, call("c", chance.randrange(200_000))) for name in names])
    screen.open()
    expect(screen.find("session")).to_have_count(SESSIONS)
    begun = time.monotonic()
    for step in range(A_SECOND * SECONDS // 10):
        chosen = chance.sample(names, 10)
        calls = [call(f"c-{step}", chance.randrange(200_000)) for _ in chosen]
        story.report_all([story.event(*pair) for pair in zip(chosen, calls, strict=True)])
        time.sleep(max(0.0, begun + (step + 1) * 10 / A_SECOND - time.monotonic()))
    views = story.daemon.get("/v1/sessions")
    wanted = {view["session"]["id"]: f"{view['threads'][0]['percent']:.1f}%" for view in views}
    screen.until(SHOWN, wanted)
    screen.until(IN_ORDER)
